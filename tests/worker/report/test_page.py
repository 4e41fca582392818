"""The report as a whole: complete, safe, small, and reproducible."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.journal import MemoryJournal
from synth.run import FinishedRelease, run
from synth.table import Table
from tests.support import (
    ADD_REMOVE,
    PROTECTIONS,
    REPLACE_ONE,
    coded_schema,
    coded_table,
    public_table,
    random_rows,
    release,
)
from tests.synth.linked import Household, household, linked_table, two_level_schema
from tests.worker.report.support import DELTA, Page, about, drawn_rows, made_release
from worker.report import render, texts
from worker.report.columns import distributions
from worker.report.guarantee import right_at_most
from worker.report.texts import percent_at_most

pytestmark = pytest.mark.random

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ALWAYS = ["released", "protected", "guarantee", "budget", "fit", "accuracy", "caution", "cite"]
OF_ROWS = ["columns", "dependence", "fitness"]
KINDS: dict[str, dict[str, Any]] = {
    "histogram": {"name": "mwem", "rounds": 2},
    "histogram, single queries": {"name": "pep", "select": "queries", "rounds": 2},
    "noisy marginals": {"name": "gaussian"},
    "noisy marginals, raw": {"name": "gaussian", "consistent": False},
    "product": {"name": "relaxed_projection", "components": 20, "steps": 20},
    "support": {"name": "pmw_pub", "rounds": 2},
    "rows": {"name": "private_gsd", "mode": "one_shot", "rows": 50, "generations": 50},
}


def carry_out(
    spec: ReleaseSpec,
    table: Table,
    journal: MemoryJournal | None = None,
    protection: Protection = REPLACE_ONE,
) -> FinishedRelease:
    public = public_table(table.schema) if spec.mechanism.needs_public_data else None
    return run(spec, table, journal, protection=protection, delta=DELTA, public=public)


@pytest.mark.parametrize("mechanism", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("sizes", "rows", "k"),
    [(SIZES, 60, 2), ({"only": 3}, 20, 1), ({"constant": 1}, 20, 1), ({"a": 1, "b": 30}, 0, 2)],
    ids=["plain", "one column", "one value", "no rows"],
)
def test_every_kind_of_model_has_its_report(
    mechanism: dict[str, Any], sizes: dict[str, int], rows: int, k: int
) -> None:
    schema = coded_schema(sizes)
    spec = release(mechanism, workload=[{"type": "marginals", "k": k}])
    done = carry_out(spec, coded_table(schema, random_rows(sizes, rows)))
    provenance = "a test" if spec.mechanism.needs_public_data else None
    page = Page(render(done, about(spec, REPLACE_ONE, provenance=provenance)))
    expected = [*ALWAYS[:4], *(OF_ROWS if spec.synthetic_rows else []), *ALWAYS[4:6]]
    expected += ["public"] if provenance else []
    assert list(page.headings) == [*expected, *ALWAYS[6:]]
    links = [value for _, name, value in page.attributes if name == "href"]
    assert {link for link in links if link != "#budget"} | {"#budget"} == {
        f"#{name}" for name in page.headings
    }
    assert spec.mechanism.paper in page.text and "nan" not in page.text.lower().split()


@pytest.mark.parametrize("name", ["h_mwem", "h_gem"])
def test_groups_are_counted_as_groups(name: str) -> None:
    schema = two_level_schema({"town": 2}, {"sex": 2}, size=2).linked
    # Every group in town 1 has two individuals, so two thirds of these live there and half the groups.
    homes: list[Household] = [((0,), ((0,),)), ((1,), ((0,), (1,)))] * 5000
    spec = release(
        {"name": name, "rounds": 2},
        workload=[{"type": "hierarchical", "k": 2}],
        budget={"rho": 100.0},
        outputs={"rows": 1000, "certify": {}},
    )
    done = carry_out(spec, linked_table(schema, homes), protection=household(2))
    page = Page(render(done, about(spec, household(2))))
    assert list(page.headings) == [*ALWAYS[:4], *OF_ROWS, *ALWAYS[4:]]
    assert "in 1,000 groups, 2 columns" in page.text and "Groups of the private table" in page.text
    (town,) = (each for each in distributions(schema, done.rows or {}) if each.name == "town")
    # Five standard deviations of 1,000 groups: 4e-7 by chance.
    assert town.shares == pytest.approx([0.5, 0.5], abs=0.08)


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
def test_it_says_who_is_protected(protection: Protection) -> None:
    spec = release({"name": "mwem"})
    text = Page(render(made_release(SCHEMA, spec), about(spec, protection))).text
    assert f"one {protection.unit}" in text
    assert ("replaced by another" in text) == (protection.relation == "replace_one")
    assert (f"up to {protection.max_rows_per_unit}." in text) == (protection.unit != "row")


def test_what_was_bought_is_shown() -> None:
    spec = release({"name": "mwem", "rounds": 2}, outputs={"rows": 50, "certify": {}})
    done = carry_out(spec, coded_table(SCHEMA, random_rows(SIZES, 60)))
    text = Page(render(done, about(spec))).text
    assert "With probability 95.0%, no answer of the released rows" in text
    assert done.certificate["summary"] in text
    for column in done.certificate["quality"]["columns"]:
        assert f"{column['name']} {texts.percent(column['estimate'])}" in " ".join(text.split())
    assert "Bounding the error of the released rows" in text
    without = release({"name": "mwem"})
    assert (
        "This release has no certified error bound"
        in Page(render(made_release(SCHEMA, without), about(without))).text
    )


@pytest.mark.parametrize("protection", [ADD_REMOVE, REPLACE_ONE], ids=lambda each: each.relation)
def test_errors_of_shares_and_of_counts_are_told_apart(protection: Protection) -> None:
    spec = release({"name": "gaussian"})
    table = coded_table(SCHEMA, [[0, 0, 0]] * 600)
    done = carry_out(spec, table, protection=protection)
    assert done.answers is not None and done.answers.standard_errors is not None
    assert done.answers.count_standard_errors is not None
    text = Page(render(done, about(spec, protection))).text
    largest = done.answers.standard_errors.max(), done.answers.count_standard_errors.max()
    shown = f"Largest {percent_at_most(largest[0])} {largest[1]:,.1f}"
    assert shown in re.sub(r"\s+", " ", text)
    assert ("number of rows is noisy too" in text) == (protection == ADD_REMOVE)


def test_the_screen_of_public_data_is_shown() -> None:
    screened = {"name": "pmw_pub", "rounds": 2, "screen": {"share": 0.1, "max_error": 1.0}}
    # With this number of rows, noise cannot move the error above one.
    table = coded_table(SCHEMA, random_rows(SIZES, 1000))
    for mechanism, words in (
        (screened, "The release would have stopped above 100.0%"),
        ({"name": "pmw_pub", "rounds": 2}, "No part of the budget was spent on measuring"),
    ):
        spec = release(mechanism)
        text = Page(render(carry_out(spec, table), about(spec, provenance="a census"))).text
        assert words in text and "Declared source: a census" in text


def test_the_budget_before_and_after() -> None:
    spec = release({"name": "mwem"})
    text = Page(render(made_release(SCHEMA, spec), about(spec))).text
    for amount in ("0.300000", "0.100000", "0.400000", "1.700000", "1.600000"):
        assert amount in text
    dry = Page(render(made_release(SCHEMA, spec), about(spec, balance=None, is_dry_run=True))).text
    assert "This is a dry run" in dry and "A dry run is not charged" in dry


def test_the_guarantee_is_that_of_what_was_reserved() -> None:
    """The amount spent is stated separately, and is not a guarantee."""
    spec = release({"name": "mwem"})
    made = made_release(SCHEMA, spec)
    text = " ".join(Page(render(made, about(spec))).text.split())
    reserved, spent = made.certificate["rho_units_reserved"], made.certificate["rho_units"]
    assert "satisfies ρ-zCDP (zero-concentrated differential privacy) with ρ = 0.12:" in text
    assert "Spent of it ρ = 0.1" in text and "(ρ = 0.12; ε ≤" in text
    assert texts.percent_at_most(right_at_most(reserved, 0.01)) in text
    assert texts.percent_at_most(right_at_most(spent, 0.01)) not in text
    for delta in ("1e-06", "1e-09"):
        pair = (made.certificate[name][delta] for name in ("epsilon_reserved", "epsilon"))
        assert " ".join(map(texts.rounded_up, pair)) in text


def test_a_replayed_journal_gives_the_same_page_whatever_the_rows() -> None:
    """Nothing but priced outcomes is in it (docs/privacy.md, sections 2 and 7)."""
    spec = release({"name": "mwem", "rounds": 2}, outputs={"rows": 50, "certify": {}})
    journal = MemoryJournal()
    first = carry_out(spec, coded_table(SCHEMA, random_rows(SIZES, 60)), journal)
    again = carry_out(spec, coded_table(SCHEMA, random_rows(SIZES, 90, seed=1)), journal)
    assert render(first, about(spec)) == render(again, about(spec))


def test_it_depends_on_nothing_else() -> None:
    spec = release({"name": "mwem"})
    content = render(made_release(SCHEMA, spec), about(spec))
    page = Page(content)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "form"}
    assert all(
        value.startswith("#") for _, name, value in page.attributes if name in {"href", "src"}
    )
    assert not re.search(rb"url\(|@import|//", content)
    assert ("meta", ("http-equiv", "content")) in page.tags


def test_it_can_be_read_out() -> None:
    spec = release({"name": "mwem"})
    content = render(made_release(SCHEMA, spec), about(spec)).decode()
    assert content.count("<svg") == content.count('role="img"') == len(SIZES) + 3
    assert all(part.startswith("<title>") for part in re.findall(r"<svg[^>]*>(.{7})", content))
    assert content.count("<h1") == 1 and '<html lang="en">' in content
    for table in re.findall(r"<table.*?</table>", content, re.DOTALL):
        assert 'scope="' in table
    ids = [value for _, name, value in Page(content.encode()).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def wide_schema(columns: int) -> Schema:
    long = [
        f"category {j} of a list in which everything is spelled out at length" for j in range(99)
    ]
    return Schema.model_validate(
        {
            "columns": [
                {"name": f"{'a long name ' * 9}{i}", "type": "categorical", "values": long}
                if i % 2
                else {
                    "name": f"n{i}",
                    "type": "real",
                    "lower": 0,
                    "upper": 1,
                    "bins": {"count": 40},
                }
                for i in range(columns)
            ]
        }
    )


def test_wide_tables_stay_small() -> None:
    schema = wide_schema(55)
    spec = release({"name": "mwem"})
    made = made_release(schema, spec, rows=500)
    content = render(replace(made, measurements=made.measurements[:5]), about(spec))
    assert len(content) < 300_000
    wider = wide_schema(90)
    made = made_release(wider, spec, rows=500)
    content = render(replace(made, measurements=made.measurements[:5]), about(spec))
    assert len(content) < 400_000
    assert "the first 60 of 90 columns" in Page(content).text


NASTY = st.one_of(
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "</style></title></svg><b>",
            "{{ 7 * 7 }}{% raw %}",
            "&lt;b&gt; &amp;amp; &#60;",
            "<!-- ]]> <![CDATA[",
            "\u202egnp.exe\u2066",
            "x\x00\x0b\ufffe",
            "javascript:alert(1)",
        ]
    ),
    st.text(min_size=1, max_size=30),
)


@cache
def harmless_elements() -> list[tuple[str, tuple[str, ...]]]:
    return elements(rendered([f"text {i}" for i in range(8)]))


@settings(max_examples=50)
@given(st.lists(NASTY, min_size=8, max_size=8, unique=True))
def test_no_text_becomes_markup(texts: list[str]) -> None:
    """Whatever names and categories are: the same elements, and the texts as texts."""
    page = rendered(texts)
    assert elements(page) == harmless_elements()
    # These are written in full, except invisible characters.
    for text in texts[:3]:
        assert not text.isprintable() or text in page.text
    assert not set("\x00\x0b\u202e\u2066\ufffe").intersection(page.text)


def elements(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """Its elements with their attributes; how long labels stand is a matter of their class."""
    return [(tag, tuple(n for n in names if n != "class")) for tag, names in page.tags]


def rendered(texts: list[str]) -> Page:
    """A page with these texts in every place that a curator fills."""
    dataset, population, provenance, first, second, *values = texts
    names = [re.sub(r"[\x00-\x1f]", "?", name) + str(i) for i, name in enumerate((first, second))]
    columns = [
        {"name": name, "type": "categorical", "values": values, "other": values[0]}
        for name in names
    ]
    schema = Schema.model_validate({"columns": columns})
    named = [{"type": "marginals", "attributes": [names]}]
    spec = release({"name": "pep_pub", "measure": named}, workload=named)
    told: dict[str, Any] = {"dataset": dataset, "population": population, "provenance": provenance}
    return Page(render(made_release(schema, spec), about(spec, **told)))


def test_columns_without_measurements_are_named() -> None:
    spec = release({"name": "mwem"})
    made = made_release(SCHEMA, spec)
    some = replace(made, measurements=made.measurements[:1])
    assert "Nothing was measured about c." in Page(render(some, about(spec))).text
    assert "Nothing was measured about" not in Page(render(made, about(spec))).text
    none = Page(render(replace(made, measurements=[]), about(spec)))
    assert "Nothing was measured with noise" in none.text


def test_many_rows_are_counted_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = release({"name": "mwem"})
    made = replace(made_release(SCHEMA, spec), rows=drawn_rows(SCHEMA, 1000))
    whole = render(made, about(spec))
    monkeypatch.setattr("worker.report.columns.CHARTED_AT_ONCE", 7)
    assert render(made, about(spec)) == whole
    monkeypatch.setattr("worker.report.columns.PAIR_ROWS", 300)
    assert "Computed on 250 of the rows" in Page(render(made, about(spec))).text
