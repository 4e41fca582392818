"""Each column of a public sample gets the type, bounds, bins and missing codes that fit it."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from scrim.profiles import Declaration, Profile, declare
from scrim.profiles.profile import MOST_TEXTS
from scrim.values import parse_schema

CHANCE = random.Random(1)
GAUSS = [round(CHANCE.gauss(130, 18)) for _ in range(1000)]
WORDS = ["seen", "in", "ward", "again", "with", "pain", "and", "cough"]


def declared(cells: Sequence[Any], name: str = "x") -> Declaration:
    profile = Profile(name)
    for cell in cells:
        profile.see(str(cell))
    made = declare(profile)
    if made.column is not None and made.column["type"] != "identifier":
        parse_schema({"columns": [made.column]})
    return made


def column(cells: Sequence[Any], name: str = "x") -> dict[str, Any]:
    made = declared(cells, name).column
    assert made is not None
    return made


class TestNumbers:
    @pytest.mark.parametrize("code", ["99999", "999", "-99", "9999.9"])
    def test_a_code_of_missing_does_not_widen_the_bins(self, code: str) -> None:
        found = column([*GAUSS, code])
        assert found["missing"] == [code]
        assert 0 < found["lower"] < found["upper"] < 250 and found["bins"]["width"] <= 10

    @pytest.mark.parametrize("text", ["N/A", "?", ".", "-", "NULL", "n.a."])
    def test_a_text_of_missing_leaves_numbers_numbers(self, text: str) -> None:
        found = column([*GAUSS, text])
        assert (found["type"], found["missing"]) == ("integer", [text])

    def test_kinds_of_missing_are_kept_apart(self) -> None:
        found = column([*GAUSS, "refused", "N/A"])
        assert found["missing"] == {"N/A": "missing", "refused": "refused"}

    def test_a_nine_among_the_values_is_a_value(self) -> None:
        assert "missing" not in column([number % 105 for number in range(1000)])

    def test_an_outlier_is_outside_the_bounds_and_told(self) -> None:
        made = declared([*GAUSS, 31_000])
        assert made.column is not None and made.column["upper"] < 250
        assert "1 numbers of the sample lie far outside" in made.note

    def test_skewed_numbers_get_bins_at_quantiles(self) -> None:
        cells = [round(CHANCE.lognormvariate(8, 1), 2) for _ in range(2000)]
        found = column(cells)
        edges = found["bins"]["edges"]
        counts = [sum(a <= c < b for c in cells) for a, b in pairwise(edges)]
        assert found["decimals"] == 2 and len(edges) <= 23
        assert max(counts) <= 0.1 * len(cells)

    def test_a_frequent_number_has_a_bin_of_its_own(self) -> None:
        made = declared([-1] * 500 + [round(CHANCE.expovariate(0.01)) for _ in range(500)])
        assert made.column is not None
        assert made.column["bins"]["edges"][:2] == [-1, 0] and "if -1 is a code" in made.note


class TestDates:
    @pytest.mark.parametrize(
        ("write", "form"),
        [
            ("{y}-{m:02}-{d:02}", None),
            ("{d:02}.{m:02}.{y}", "%d.%m.%Y"),
            ("{m:02}/{d:02}/{y}", "%m/%d/%Y"),
        ],
    )
    def test_the_format_is_found(self, write: str, form: str | None) -> None:
        cells = [write.format(y=2019 + i % 3, m=1 + i % 12, d=1 + i % 28) for i in range(300)]
        found = column([*cells, "?", "9999-12-31"])
        assert (found["type"], found.get("format")) == ("date", form)
        assert (found["lower"], found["upper"]) == ("2019-01-01", "2021-12-31")
        assert sorted(found["missing"]) == ["9999-12-31", "?"]
        assert len(found["bins"]["edges"]) <= 25

    def test_an_ambiguous_order_is_told(self) -> None:
        made = declared([f"{1 + i % 12:02}/{1 + i % 12:02}/2020" for i in range(60)])
        assert "the other way round" in made.note

    def test_times(self) -> None:
        found = column([f"2022-03-{1 + i % 28:02}T{i % 24:02}:15" for i in range(100)])
        assert (found["type"], found["upper"]) == ("datetime", "2022-12-31T23:59")


class TestTexts:
    @pytest.mark.parametrize(
        ("cells", "true"),
        [
            ("yn", ["y"]),
            (["Yes", "No"], ["Yes"]),
            ("10", ["1"]),
            (["TRUE", "FALSE", "true"], ["TRUE", "true"]),
        ],
    )
    def test_booleans(self, cells: Sequence[str], true: list[str]) -> None:
        found = column([*cells] * 20)
        assert (found["type"], found["true"]) == ("boolean", true)

    @pytest.mark.parametrize(
        "values",
        [
            ["low", "medium", "high"],
            ["<18", "18-24", "25-34", "65+"],
            ["stage 1", "stage 2", "stage 10"],
        ],
    )
    def test_ordered_categories_keep_their_order(self, values: list[str]) -> None:
        found = column([*reversed(values)] * 20)
        assert (found["type"], found["values"]) == ("ordinal", values)

    def test_codes_have_levels_and_public_shares(self) -> None:
        cells = [f"{CHANCE.choice('ABCJ')}{CHANCE.randint(0, 30):02}.{i % 10}" for i in range(3000)]
        found = column(cells, "icd")
        assert found["type"] == "code" and found["levels"][0] == 1 and found["levels"][-1] == 3
        assert sum(found["reference"].values()) == 3000

    def test_codes_with_leading_zeros_are_no_numbers(self) -> None:
        cells = [f"{1 + i % 16:02}{1 + i % 3}{i % 20:02}" for i in range(900)]
        assert column(cells, "municipality")["type"] == "code"

    def test_free_text_is_left_out_with_advice(self) -> None:
        made = declared([" ".join(CHANCE.choices(WORDS, k=8)) for _ in range(500)])
        assert made.column is None and "derive a column of categories" in made.note

    @pytest.mark.parametrize("name", ["patient_id", "caseID", "id"])
    def test_identifiers(self, name: str) -> None:
        cells = [f"P{i * 7919 % 100_000}" for i in range(300)]
        assert column(cells, name)["type"] == "identifier"
        assert declared(cells, "paid").column is None


def test_memory_is_bounded_and_the_rest_is_drawn_evenly() -> None:
    profile = Profile("x")
    for number in range(3 * MOST_TEXTS):
        profile.see(f"{number / 7:.2f}")
    assert len(profile.counts) == MOST_TEXTS and not profile.is_complete
    made = declare(profile).column
    assert made is not None and made["upper"] > 2.9 * MOST_TEXTS / 7
