"""DDI Codebooks: what is declared is converted, statistics of the rows are not, and no entity expands."""

import pytest

from scrim.importers import from_ddi
from scrim.spec.columns import CategoricalColumn, IntegerColumn, OrdinalColumn, RealColumn
from scrim.spec.errors import SpecError

SEX = """<var ID="V1" name="sex" intrvl="discrete" files="F1">
<labl>Sex</labl><valrng><range min="1" max="2" UNITS="INT"/></valrng>
<sumStat type="vald">4711</sumStat>
<catgry><catValu>1</catValu><labl>male</labl><catStat type="freq">2000</catStat></catgry>
<catgry><catValu>2</catValu></catgry><catgry missing="Y"><catValu>9</catValu></catgry>
<varFormat type="numeric"/></var>"""
PAIN = """<var name="pain" intrvl="discrete" nature="ordinal" files="F1">
<catgry><catValu>none</catValu></catgry><catgry><catValu>some</catValu></catgry></var>"""
AGE = """<var name="age" intrvl="contin" files="F1"><valrng><range min="0" max="99"/></valrng>
<invalrng><item VALUE="999"/><item VALUE="998"/></invalrng></var>"""
WEIGHT = """<var name="weight" intrvl="contin" dcml="2" files="F1">
<valrng><range min="0.5" max="10"/></valrng></var>"""


def book(*variables: str, namespace: str = ' xmlns="ddi:codebook:2_5"') -> str:
    content = "".join(variables)
    return f'<?xml version="1.0"?><codeBook{namespace}><dataDscr>{content}</dataDscr></codeBook>'


@pytest.mark.parametrize("namespace", ["", ' xmlns="ddi:codebook:2_5"'])
def test_variables_become_columns(namespace: str) -> None:
    imported = from_ddi(book(SEX, PAIN, AGE, WEIGHT, namespace=namespace))
    sex, pain, age, weight = imported.schema.columns
    assert isinstance(sex, CategoricalColumn)
    assert (sex.values, sex.missing) == (["1", "2"], ["9"])
    assert isinstance(pain, OrdinalColumn) and pain.values == ["none", "some"]
    assert isinstance(age, IntegerColumn) and (age.lower, age.upper) == (0, 99)
    assert age.missing == ["999", "998"]
    assert isinstance(weight, RealColumn) and (weight.lower, weight.decimals) == (0.5, 2)
    assert imported.protection is None and "4711" not in imported.schema.model_dump_json()


def test_one_of_several_files_is_chosen() -> None:
    other = AGE.replace('name="age"', 'name="rent"').replace("F1", "F2")
    with pytest.raises(SpecError, match="there are: F1, F2"):
        from_ddi(book(SEX, other))
    found = from_ddi(book(SEX, other), table="F2")
    assert [column.name for column in found.schema.columns] == ["rent"]


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ('<var name="x" intrvl="contin"/>', "valid range with min and max"),
        ('<var name="x"><valrng><range min="0"/></valrng></var>', "valid range with min and max"),
        ('<var name="x"><varFormat type="character"/></var>', "add its categories"),
        ('<var name="x"><varFormat type="numeric" category="date"/></var>', "type date"),
        ("<var/>", "has no name"),
        ("", "no variables"),
        (AGE + AGE, "declared twice"),
    ],
)
def test_what_has_no_counterpart_is_refused(variable: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        from_ddi(book(variable))


BOMB = (
    '<!DOCTYPE codeBook [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    "<codeBook><dataDscr>&b;</dataDscr></codeBook>"
)
OUTSIDE = '<!DOCTYPE x SYSTEM "file:///etc/passwd"><codeBook/>'


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (BOMB, "DOCTYPE"),
        (OUTSIDE, "DOCTYPE"),
        ("<codeBook>", "not XML"),
        ("<codeBook>&lt;secret", "not XML"),
        ("<DDIInstance/>", "not a DDI Codebook"),
    ],
)
def test_other_documents_are_refused_unquoted(document: str, told: str) -> None:
    with pytest.raises(SpecError, match=told) as refused:
        from_ddi(document)
    assert "secret" not in str(refused.value) and refused.value.__cause__ is None
