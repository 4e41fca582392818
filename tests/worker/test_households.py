"""Groups of individuals: two uploads become linked rows, and releases read the rows they are about."""

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from scrim.verify import verify
from synth.table.linking import starts_of_groups
from tests.worker.support import H_GEM, HOUSEHOLDS, TWO_LEVEL, Stack, households
from tests.worker.test_ingest import column, state_of, stored
from worker import chunks, linking, people, releases
from worker.errors import Abandoned
from worker.ingest import ingest_dataset
from worker.models import ModelCache
from worker.releases import run_release

OWNED: dict[str, Any] = TWO_LEVEL | {
    "individuals": {
        "group_key": "hid",
        "columns": [*TWO_LEVEL["individuals"]["columns"], {"name": "pid", "type": "identifier"}],
    }
}
GROUPS, INDIVIDUALS = b"hid,town\n", b"hid,sex,age\n"


def ingested(
    stack: Stack, population: UUID | None, schema: Any, groups: bytes, rows: bytes
) -> UUID:
    dataset = stack.dataset(population, schema)
    stack.upload(dataset, groups, table="groups")
    stack.upload(dataset, rows, table="individuals")
    ingest_dataset(stack.context, dataset)
    return dataset


def linked(stack: Stack, dataset: UUID) -> list[tuple[int, list[int]]]:
    """For each linked group its town, as a code, and the ages in it; 4 is a missing town."""
    assert state_of(stack, dataset) == ("ready", None)
    found = []
    for chunk in stored(stack, dataset, "linked"):
        starts = starts_of_groups(chunk["hid"])
        assert len(starts) == len({bytes(each) for each in chunk["hid"]}), "a group is in one piece"
        for start, end in zip(starts, [*starts[1:], len(chunk["hid"])], strict=True):
            (town,) = set(chunk["town"][start:end].tolist())
            found.append((town, sorted(chunk["age"][start:end].tolist())))
    return sorted(found)


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tables were much larger than memory."""
    monkeypatch.setattr(people, "OWNERS_AT_ONCE", 30)
    monkeypatch.setattr(linking, "BYTES_AT_ONCE", 400)
    monkeypatch.setattr(chunks, "STORED_CHUNK_BYTES", 300)


class TestLinking:
    def test_nobody_is_dropped_and_nobody_is_invented(self, stack: Stack) -> None:
        """An orphan gets a group with missing values; an empty group is left out."""
        dataset = ingested(
            stack,
            stack.population(**HOUSEHOLDS),
            TWO_LEVEL,
            GROUPS + b"1,a\n2,b\n2,b\n3,a\n",
            INDIVIDUALS + b"2,F,20\n1,M,1\nlost,F,50\n2,M,21\n1,F,2\nlost,F,51\n",
        )
        assert linked(stack, dataset) == [(0, [1, 2]), (1, [20, 21]), (4, [50, 51])]
        assert len(column(stored(stack, dataset, "groups"), "hid")) == 3
        assert stack.show("datasets", dataset)["reason"] is None

    def test_without_groups_or_without_individuals(self, stack: Stack) -> None:
        population = stack.population(**HOUSEHOLDS)
        orphans = ingested(stack, population, TWO_LEVEL, GROUPS, INDIVIDUALS + b"1,F,20\n2,F,30\n")
        assert linked(stack, orphans) == [(4, [20]), (4, [30])]
        nobody = ingested(stack, population, TWO_LEVEL, GROUPS + b"1,a\n", INDIVIDUALS)
        assert linked(stack, nobody) == []

    @pytest.mark.usefixtures("few_bytes")
    def test_tables_larger_than_memory(self, stack: Stack) -> None:
        """Read share by share: every group is truncated, described and in one chunk."""
        groups, rows = households(300, seed=1)
        dataset = ingested(stack, stack.population(**HOUSEHOLDS), TWO_LEVEL, groups, rows)
        towns = dict(line.split(",") for line in groups.decode().split()[1:])
        ages: dict[str, list[int]] = {}
        for line in rows.decode().split()[1:]:
            key, _, age = line.split(",")
            ages.setdefault(key, []).append(int(age))
        found = linked(stack, dataset)
        assert len(stored(stack, dataset, "linked")) > 5
        expected = Counter(("ab".index(towns[key]), min(3, len(ages[key]))) for key in ages)
        assert Counter((town, len(each)) for town, each in found) == expected
        assert max(map(len, ages.values())) > 3, "there was something to truncate"
        everybody = Counter((towns[key], age) for key in ages for age in ages[key])
        kept = Counter(("ab"[town], age) for town, each in found for age in each)
        assert kept <= everybody
        assert not [path for path in stack.objects(f"datasets/{dataset}") if "staged" in str(path)]

    @pytest.mark.usefixtures("few_bytes")
    def test_the_table_of_individuals_has_the_same_ones(self, stack: Stack) -> None:
        """The kept rows of a group are chosen once, for all later releases."""
        dataset = ingested(stack, stack.population(**HOUSEHOLDS), TWO_LEVEL, *households(100))

        def members(table: str) -> Counter[tuple[bytes, int]]:
            found = stored(stack, dataset, table)
            pairs = zip(column(found, "hid"), column(found, "age"), strict=True)
            return Counter((bytes(key), int(age)) for key, age in pairs)

        assert members("linked") == members("individuals")

    def test_a_person_is_bounded_first_and_a_group_truncated_then(self, stack: Stack) -> None:
        """In the other order, rows that the person may not keep would displace others."""
        population = stack.population(unit="person", max_rows_per_person=1)
        homes = range(10)
        owners = [*["anna"] * 5, "bert", "carl", "dora"]
        lines = [
            f"{home},F,{age},{home}{owner}" for home in homes for age, owner in enumerate(owners)
        ]
        described = "".join(f"{home},a\n" for home in homes).encode()
        content = "\n".join(["hid,sex,age,pid", *lines]).encode()
        dataset = ingested(stack, population, OWNED, GROUPS + described, content)
        assert [len(ages) for _, ages in linked(stack, dataset)] == [3] * 10
        alone = Counter(
            bytes(each) for each in column(stored(stack, dataset, "individuals"), "pid")
        )
        assert sorted(alone.values()) == [1] * 40, "the table alone is not truncated"

    def test_the_groups_in_which_a_person_stays_do_not_depend_on_values(self, stack: Stack) -> None:
        """Forty people of different ages in the same three homes, of whom each may keep one row."""
        population = stack.population(unit="person", max_rows_per_person=1, relation="replace_one")
        lines = [f"{home},F,{age},p{age}" for age in range(40) for home in (1, 2, 3)]
        content = "\n".join(["hid,sex,age,pid", *lines]).encode()
        dataset = ingested(stack, population, OWNED, GROUPS + b"1,a\n2,a\n3,a\n", content)
        kept = column(stored(stack, dataset, "individuals"), "hid")
        assert len(kept) == 40
        assert len({bytes(home) for home in kept}) == 1

    @pytest.mark.parametrize(
        ("protection", "schema", "rows", "told"),
        [
            (HOUSEHOLDS, TWO_LEVEL, INDIVIDUALS + b",F,20\n", "'hid'"),
            (
                {"unit": "person", "max_rows_per_person": 2},
                OWNED,
                b"hid,sex,age,pid\n,F,20,p\n",
                "'hid'",
            ),
            (
                {"unit": "person", "max_rows_per_person": 2},
                OWNED,
                b"hid,sex,age,pid\n1,F,20,\n",
                "'pid'",
            ),
        ],
    )
    def test_every_individual_needs_a_group_and_an_owner(
        self, stack: Stack, protection: dict[str, Any], schema: Any, rows: bytes, told: str
    ) -> None:
        population = stack.population(**protection)
        dataset = ingested(stack, population, schema, GROUPS + b"1,a\n", rows)
        state, reason = state_of(stack, dataset)
        assert state == "rejected" and reason is not None and told in reason
        assert not stack.objects(f"datasets/{dataset}")

    def test_public_groups_are_read_as_well(self, stack: Stack) -> None:
        dataset = ingested(stack, None, TWO_LEVEL, GROUPS + b"1,b\n", INDIVIDUALS + b"1,F,20\n")
        assert linked(stack, dataset) == [(1, [20])]


@pytest.fixture(scope="module")
def two_level(stack_of_session: Stack) -> UUID:
    """An ingested dataset of households of at most three; the population allows four."""
    stack = stack_of_session
    groups, rows = households(300)
    return ingested(stack, stack.population(**HOUSEHOLDS), TWO_LEVEL, groups, rows)


class TestOneTableAlone:
    @pytest.mark.random
    def test_prices_are_those_of_a_household(self, stack: Stack, two_level: UUID) -> None:
        """One group, or three individuals: the noise is three times as large at the same price."""
        journals = {}
        for table in ("groups", "individuals"):
            release = stack.submit(
                two_level,
                table=table,
                workload=[{"type": "marginals", "k": 1}],
                mechanism={"name": "gaussian", "consistent": False},
                budget={"rho": 0.5},
                outputs={},
            )
            run_release(stack.context, release)
            assert stack.release(release)["state"] == "succeeded"
            journals[table] = stack.journal(release)
            certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
            assert certificate["release"]["table"] == table
            most = {"groups": 1, "individuals": 3}[table]
            assert certificate["protection"]["max_household_size"] == most

        def noise(table: str, operation: int) -> float:
            """The scale if the whole price of the release paid for it."""
            found = journals[table][operation]
            return float(found.scale * (found.price_units / 1e12) ** 0.5)

        for operation in (0, 1):
            ratio = noise("individuals", operation) / noise("groups", operation)
            assert ratio == pytest.approx(3, rel=1e-3)
        assert noise("groups", 1) == pytest.approx(0.5**0.5, rel=1e-3)

    @pytest.mark.random
    @pytest.mark.parametrize(("table", "header"), [("groups", "town"), ("individuals", "sex,age")])
    @pytest.mark.parametrize("dry_run", [False, True])
    def test_one_file_of_rows(
        self, stack: Stack, two_level: UUID, table: str, header: str, dry_run: bool
    ) -> None:
        release = stack.submit(
            two_level, table=table, workload=[{"type": "marginals", "k": 1}], dry_run=dry_run
        )
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
        first, *lines = stack.artifact(release, "synthetic.csv").decode().splitlines()
        assert first == header and len(lines) == 60

    @pytest.mark.random
    def test_it_reads_that_table_alone(self, stack: Stack) -> None:
        groups, rows = households(20)
        dataset = ingested(stack, stack.population(**HOUSEHOLDS), TWO_LEVEL, groups, rows)
        for table in ("individuals", "linked"):
            for path in stack.objects(f"datasets/{dataset}/tables/1/{table}"):
                path.write_bytes(b"nobody reads this")
        release = stack.submit(dataset, table="groups", workload=[{"type": "marginals", "k": 1}])
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"


@pytest.mark.random
def test_noisy_answers_about_both_tables_have_standard_errors_and_a_report(
    stack: Stack, two_level: UUID
) -> None:
    release = stack.submit(
        two_level, workload=H_GEM["workload"], mechanism={"name": "gaussian"}, outputs={}
    )
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded", shown["error"]
    answers = rows_of(stack.artifact(release, "answers.csv"))
    assert {row["basis"] for row in answers} == {"measured"}
    for name in ("standard_error", "count_standard_error"):
        assert all(float(row[name]) > 0 for row in answers)
    assert b"Median" in stack.artifact(release, "report.html")


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def check_that_they_join(groups: bytes, individuals: bytes, *, count: int) -> None:
    """Every individual has its group, and no group is empty or larger than it may be."""
    described, people = rows_of(groups), rows_of(individuals)
    assert [row["hid"] for row in described] == [str(1 + each) for each in range(count)]
    members = Counter(row["hid"] for row in people)
    assert members.keys() == {row["hid"] for row in described}
    assert set(members.values()) <= {1, 2, 3}
    assert list(described[0]) == ["hid", "town"] and list(people[0]) == ["hid", "sex", "age"]
    assert {row["sex"] for row in people} <= {"F", "M", "other"}


@pytest.fixture(scope="module")
def released(stack_of_session: Stack, two_level: UUID) -> UUID:
    """A release of both tables, which some tests only look at."""
    outputs = {"rows": 60, "formats": ["csv", "parquet"], "certify": {"share": 0.2}}
    release = stack_of_session.submit(two_level, **H_GEM | {"outputs": outputs})
    run_release(stack_of_session.context, release)
    shown = stack_of_session.release(release)
    assert shown["state"] == "succeeded", shown["error"]
    return release


class TestBothTables:
    @pytest.mark.random
    def test_two_files_that_join(self, stack: Stack, released: UUID, tmp_path: Path) -> None:
        names = {each["name"] for each in stack.release(released)["artifacts"]}
        tables = {f"synthetic_{table}" for table in ("groups", "individuals")}
        assert names == {
            *(f"{name}.{form}" for name in (*tables, "answers") for form in ("csv", "parquet")),
            *("model", "report.html", "certificate.json"),
        }
        files = {name: stack.artifact(released, name) for name in names}
        check_that_they_join(
            files["synthetic_groups.csv"], files["synthetic_individuals.csv"], count=60
        )
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        for table in tables:
            columns = pq.read_table(tmp_path / f"{table}.parquet").to_pydict()
            written = rows_of(files[f"{table}.csv"])
            assert [str(key) for key in columns["hid"]] == [row["hid"] for row in written]
        report = verify(tmp_path / "certificate.json", [tmp_path / name for name in names])
        assert report.ok and report.unchecked == ()
        assert report.certificate is not None
        assert report.certificate["protection"]["unit"] == "household"

    @pytest.mark.random
    def test_prices_are_those_of_a_household(self, stack: Stack, released: UUID) -> None:
        """At one price each: individuals move by three, the sizes of groups by one."""
        journal = stack.journal(released)
        assert [each.kind for each in journal][-1] == "certify"
        individuals, sizes = journal[1:3]
        assert individuals.price_units == pytest.approx(sizes.price_units, rel=1e-6)
        assert individuals.scale == pytest.approx(3 * sizes.scale, rel=1e-3)
        assert sum(each.price_units for each in journal) <= 10**12

    @pytest.mark.random
    def test_answers_are_at_both_levels(self, stack: Stack, released: UUID) -> None:
        answers = rows_of(stack.artifact(released, "answers.csv"))
        fractions: defaultdict[str, float] = defaultdict(float)
        for each in answers:
            fractions[each["item"]] += float(each["value"])
        # Every individual, and every group by its size, is in exactly one cell.
        wholes = [item for item in fractions if item.startswith("individuals") or "size" in item]
        assert len(wholes) == 4
        assert all(fractions[item] == pytest.approx(1, abs=1e-4) for item in wholes)

    @pytest.mark.random
    def test_the_model_is_asked_and_gives_more_groups(self, stack: Stack, released: UUID) -> None:
        models = ModelCache(stack.context)
        asked = [{"type": "hierarchical", "attributes": [["sex"]], "levels": ["group"]}]
        assert [each["item"] for each in models.answer(released, asked)] == ["groups by sex"] * 3
        lines = rows_of(models.sample(released, 7).encode())
        assert list(lines[0]) == ["hid", "town", "sex", "age"]
        assert {line["hid"] for line in lines} == {str(1 + each) for each in range(7)}
        assert len({(line["hid"], line["town"]) for line in lines}) == 7

    @pytest.mark.random
    def test_dry_run(self, stack: Stack) -> None:
        """It needs no rows, and produces the same files."""
        population = stack.population(**HOUSEHOLDS)
        dataset = stack.dataset(population, TWO_LEVEL)
        release = stack.submit(dataset, dry_run=True, **H_GEM)
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
        check_that_they_join(
            stack.artifact(release, "synthetic_groups.csv"),
            stack.artifact(release, "synthetic_individuals.csv"),
            count=60,
        )
        assert stack.account(population).spent_units == 0

    @pytest.mark.random
    def test_people_are_protected_by_their_own_rows(self, stack: Stack) -> None:
        population = stack.population(unit="person", max_rows_per_person=2)
        groups, rows = households(50)
        lines = rows.decode().split()
        owned = [f"{line},p{number // 2}" for number, line in enumerate(lines[1:])]
        content = "\n".join([f"{lines[0]},pid", *owned]).encode()
        dataset = ingested(stack, population, OWNED, groups, content)
        release = stack.submit(dataset, **H_GEM)
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
        check_that_they_join(
            stack.artifact(release, "synthetic_groups.csv"),
            stack.artifact(release, "synthetic_individuals.csv"),
            count=60,
        )
        counted, individuals, sizes = stack.journal(release)[:3]
        # Each of two rows may bring a group, or take one from a size to the next.
        noise = [each.scale * (each.price_units / 1e12) ** 0.5 for each in (counted, individuals)]
        assert noise == pytest.approx([2 / 2**0.5] * 2, rel=1e-2)
        assert sizes.scale == pytest.approx(2**0.5 * individuals.scale, rel=1e-3)

    @pytest.mark.random
    def test_a_resumed_release_reads_no_row(
        self, stack: Stack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset = ingested(stack, stack.population(**HOUSEHOLDS), TWO_LEVEL, *households(30))
        release = stack.submit(dataset, **H_GEM)

        def stop(label: str) -> None:
            if label == "before-artifacts":
                raise Abandoned

        monkeypatch.setattr(releases, "crash_at", stop)
        run_release(stack.context, release)
        monkeypatch.undo()
        journal = stack.journal(release)
        for path in stack.objects(f"datasets/{dataset}/tables/1/linked"):
            path.write_bytes(b"a resumed job reads no row")
        stack.expire_lease(release)
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
        assert stack.journal(release) == journal
