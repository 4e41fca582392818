"""A file is compared with a declaration on this machine: structure, and what becomes of cells."""

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from scrim import UnusableInput
from scrim.cli import app
from scrim.form import FormReport, check_form
from scrim.form.cells import Verdict
from tests.scrim.support import TWO_LEVEL

SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "pid", "type": "identifier"},
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "smokes", "type": "boolean", "true": ["yes"], "false": ["no"]},
        {"name": "pain", "type": "ordinal", "values": ["low", "high"]},
        {"name": "icd", "type": "code", "values": ["A01", "B02"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "missing": ["999", "?"]},
        {"name": "cost", "type": "real", "lower": 0, "upper": 10},
        {"name": "born", "type": "date", "lower": "1990-01-01", "upper": "1999-12-31"},
    ]
}
HEADER = "pid,sex,smokes,pain,icd,age,cost,born,note"
GOOD = "1,F,yes,low,A01,31,2.5,1995-05-05,x"


def written(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "table.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def counts(report: FormReport) -> dict[str, dict[Verdict, int]]:
    (table,) = report.tables
    return {each.column.name: dict(each.counts) for each in table.columns}


def test_every_type_is_judged_by_its_declaration(tmp_path: Path) -> None:
    bad = "2,X,maybe,middle,C03,120,-1,1989-12-31,y"
    odd = "3, M ,,,,1.5,ten,31.12.1995,z"
    report = check_form(written(tmp_path, GOOD, bad, odd, "4,F,yes,low,A01,999,3,?,"), SCHEMA)
    assert report.fits and report.outside == 11
    assert report.tables[0].rows == 4 and report.tables[0].ignored == ["note"]
    found = counts(report)
    assert found["sex"] == {"fits": 3, "undeclared": 1}
    for name in ("smokes", "pain", "icd"):
        assert found[name] == {"fits": 2, "undeclared": 1, "missing": 1}
    assert found["age"] == {"fits": 1, "above": 1, "rounded": 1, "missing": 1}
    assert found["cost"] == {"fits": 2, "below": 1, "unreadable": 1}
    assert found["born"] == {"fits": 1, "below": 1, "unreadable": 2}
    told = [text for each in report.tables[0].columns for text in each.sentences()]
    assert "sex: 1 cell hold no declared value and become 'other' (such as 'X')" in told


@pytest.mark.parametrize(
    ("rows", "header", "fault"),
    [
        ([], "pid,sex", "column 'smokes' is missing"),
        ([GOOD], HEADER.replace("sex", "SEX"), "the file has 'SEX'"),
        ([GOOD + ",F"], HEADER + ",sex", "appears 2 times"),
        ([GOOD, "1,F"], HEADER, "row 2 has 2 fields where the header has 9"),
        ([GOOD, '"1,F'], HEADER, "cannot be read as CSV"),
    ],
)
def test_what_the_service_would_reject(
    tmp_path: Path, rows: list[str], header: str, fault: str
) -> None:
    report = check_form(written(tmp_path, *rows, header=header), SCHEMA)
    assert not report.fits and fault in "; ".join(report.tables[0].faults)


def test_broken_files_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "\n" + GOOD * 999).encode())[:-9])
    assert not check_form(path, SCHEMA).fits
    plain = tmp_path / "table.csv"
    for content in (b"", HEADER.encode() + b"\n\xff\xfe"):
        plain.write_bytes(content)
        assert not check_form(plain, SCHEMA).fits


def test_gzip_and_parquet(tmp_path: Path) -> None:
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(f"{HEADER}\n{GOOD}\n".encode()))
    assert check_form(packed, SCHEMA).outside == 0
    values = [["1"], ["F"], ["yes"], ["low"], ["A01"], [31], [2.5], [date(1995, 5, 5)], ["x"]]
    table = pa.table(dict(zip(HEADER.split(","), values, strict=True)))
    pq.write_table(table, tmp_path / "table.parquet")
    report = check_form(tmp_path / "table.parquet", SCHEMA)
    assert (report.fits, report.outside, report.tables[0].rows) == (True, 0, 1)


class TestTwoLevels:
    def test_links_are_remarks(self, tmp_path: Path) -> None:
        groups, people = tmp_path / "homes.csv", tmp_path / "people.csv"
        groups.write_text("hid,town\n1,a\n1,b\n2,c\n")
        people.write_text("hid,sex\n" + "1,F\n" * 5 + "7,M\n")
        report = check_form({"groups": groups, "individuals": people}, TWO_LEVEL)
        of_groups, of_people = report.tables
        assert report.fits and report.outside == 1
        assert of_groups.remarks == ["1 keys of groups appear in more than one row"]
        assert len(of_people.remarks) == 2

    def test_the_number_of_files_must_fit(self, tmp_path: Path) -> None:
        path = written(tmp_path, GOOD)
        for files, schema in ((path, TWO_LEVEL), ({"groups": path, "individuals": path}, SCHEMA)):
            with pytest.raises(UnusableInput, match="give"):
                check_form(files, schema)


def test_the_command_says_that_nothing_leaves_the_machine(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    path = written(tmp_path, GOOD, GOOD.replace("31", "120"))
    found = CliRunner().invoke(app, ["schema", "check", str(path), "--schema", str(schema)])
    assert found.exit_code == 0 and "sends nothing" in found.stderr
    assert "age: 1 cell are above \"upper\" and become it (such as '120')." in found.stdout
    path.write_text("sex\nF\n")
    arguments = ["schema", "check", str(path), "--schema", str(schema), "--json"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2 and json.loads(found.stdout)["fits"] is False
