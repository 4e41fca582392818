"""The parts of a report: bars, dependence, residuals, bounds and words."""

from statistics import NormalDist
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from scrim.spec.mechanism import MECHANISMS
from scrim.spec.schema import Schema
from scrim.spec.workload import WorkloadItem
from synth.domain import Domain
from synth.measurements import Measurement
from synth.models.released import ReleasedModel
from synth.models.rows import Rows
from synth.queries import ConjunctionQueries, Marginal, QuerySet, Single, compile_workload
from synth.table import Chunk, store_numbers
from tests.support import coded_schema, coded_table, random_rows
from worker.report import texts
from worker.report.columns import MAX_CATEGORIES, cramers_v, distributions
from worker.report.descriptions import item_in_words, parameters
from worker.report.guarantee import WRONG, right_at_most
from worker.report.residuals import SHOWN, columns_of, measured_pairs, residuals

MANY = [f"v{i}" for i in range(30)]
SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "many", "type": "categorical", "values": MANY, "other": "v0"},
            {"name": "few", "type": "categorical", "values": ["x", "y"], "nullable": False},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 25}},
            {"name": "small", "type": "integer", "lower": -2, "upper": 2, "nullable": False},
            {"name": "pay", "type": "real", "lower": 0.0, "upper": 1000.0},
            {"name": "id", "type": "identifier"},
        ]
    }
)
NUMBERS = {
    "many": [29, 29, 29, 3, 30, 3, 1, 2],  # 30 is missing
    "few": [0, 1, 2, 0, 0, 0, 0, 0],
    "age": [0, 24, 25, 99, np.nan, 75, 74, 50],
    "small": [-2, 2, 0, 0, 0, 1, 1, 1],
    "pay": [0, 49.99, 50, 1000, np.nan, np.nan, 950, 500],
}


def rows() -> Chunk:
    return store_numbers(SCHEMA, {name: np.array(values) for name, values in NUMBERS.items()})


class TestDistributions:
    def test_numbers_and_categories(self) -> None:
        many, few, age, small, pay = distributions(SCHEMA, rows())
        assert many.labels[:2] == ["v29", "v3"] and many.labels[-1] == "21 others"
        assert len(many.labels) == MAX_CATEGORIES and many.shares[:2] == [3 / 8, 2 / 8]
        assert many.missing == 1 / 8 and many.is_gathered
        assert (few.labels, few.shares) == (["x", "y", "other"], [6 / 8, 1 / 8, 1 / 8])
        assert few.missing is None and not few.is_gathered
        assert age.labels == ["[0, 25)", "[25, 50)", "[50, 75)", "[75, 99]"]
        assert age.shares == [2 / 8, 1 / 8, 2 / 8, 2 / 8] and age.missing == 1 / 8
        assert small.labels == ["-2", "-1", "0", "1", "2"]
        assert small.shares == [1 / 8, 0, 3 / 8, 3 / 8, 1 / 8]
        assert pay.ends == ("0", "1000") and len(pay.shares) == 20
        assert [i for i, share in enumerate(pay.shares) if share] == [0, 1, 10, 19]

    def test_the_shares_make_a_whole(self) -> None:
        for column in distributions(SCHEMA, rows()):
            assert sum(column.shares) + (column.missing or 0) == pytest.approx(1)

    def test_dependence(self) -> None:
        rng = np.random.default_rng(0)
        first = rng.integers(4, size=20_000).astype(np.uint8)
        other = rng.integers(5, size=20_000).astype(np.uint8)
        assert cramers_v(first, first) == pytest.approx(1, abs=1e-3)
        assert cramers_v(first, 3 - first) == pytest.approx(1, abs=1e-3)
        assert cramers_v(first, other) < 0.03
        assert cramers_v(first, np.zeros_like(first)) == 0
        mixed = np.where(rng.random(20_000) < 0.5, first, rng.integers(4, size=20_000))
        assert cramers_v(first, mixed.astype(np.uint8)) == pytest.approx(0.5, abs=0.03)


class TestResiduals:
    SIZES = {"a": 2, "b": 3, "c": 4}

    def model(self) -> ReleasedModel:
        schema = coded_schema(self.SIZES)
        (chunk,) = coded_table(schema, random_rows(self.SIZES, 100)).chunks()
        return ReleasedModel(schema, 200, Rows(schema, chunk))

    def test_in_units_of_the_noise(self) -> None:
        model = self.model()
        domain = Domain.of(model.schema)
        whole, cell = Marginal.of(("a", "b"), domain), Marginal.of(("b", "c"), domain)
        counts = model.model.answer(QuerySet([whole, cell])).values * 200
        noise = np.array([0.0, 1, -2, 3, 0, 9])
        measurements = [
            Measurement(whole, counts[:6] - 5.0 * noise, 5.0),
            Measurement(Single(cell, 4), counts[6 + 4 : 6 + 5] + 4.0, 2.0),
            Measurement(whole, counts[:6], 0.0),  # public: there is no noise to compare with
        ]
        found = residuals(model, measurements)
        assert found is not None
        assert (found.number, found.measurements) == (7, 2)
        assert found.largest == pytest.approx(9)
        assert [v.residual for v in found.worst_values[:4]] == pytest.approx([9, 3, -2, -2])
        assert found.worst_values[0].query == "a=[1, 1] & b=[2, 2]"
        assert found.within_two == pytest.approx(3 / 7)
        assert [found.histogram[-1], sum(found.histogram)] == pytest.approx([1 / 7, 1])
        assert [m.name for m in found.worst_measurements] == ["a,b", "b,c[4]"]
        assert found.worst_measurements[0].root_mean_square == pytest.approx((95 / 6) ** 0.5)
        assert residuals(model, measurements[2:]) is None

    def test_predicates_are_answered_alone(self) -> None:
        model = self.model()
        item: dict[str, Any] = {"type": "prefixes", "count": 30, "seed": 1, "categorical": 0}
        (block,) = compile_workload([validated(item)], model.schema).blocks
        exact = model.model.answer(QuerySet([block])).values * 200
        singles = [Measurement(Single(block, i), exact[[i]] + 3, 3.0) for i in (7, 2, 7)]
        found = residuals(model, [*singles, Measurement(block, exact, 1.0)])
        assert found is not None and found.number == 33
        assert [round(v.residual, 9) for v in found.worst_values[:4]] == [-1, -1, -1, 0]
        assert len(found.worst_values) == SHOWN
        assert isinstance(block, ConjunctionQueries)
        asked = {c.column for c in block.conjunctions[7]}
        assert measured_pairs(singles[:1]) == {frozenset(asked)}
        assert columns_of(singles) == set(self.SIZES)

    def test_pairs_that_were_measured_together(self) -> None:
        schema = coded_schema(self.SIZES)
        domain = Domain.of(schema)
        some = [Measurement(Marginal.of(("a", "c"), domain), np.zeros(8), 1.0)]
        assert measured_pairs(some) == {frozenset("ac")}
        (planes,) = compile_workload(
            [validated({"type": "halfspaces", "count": 3, "seed": 0})], schema
        ).blocks
        assert measured_pairs([Measurement(Single(planes, 0), np.zeros(1), 1.0)]) == set()


def validated(item: dict[str, Any]) -> Any:
    return TypeAdapter(WorkloadItem).validate_python(item)


class TestGuarantee:
    @pytest.mark.parametrize("rho", [1e-6, 0.01, 0.1, 0.5, 3.0])
    @pytest.mark.parametrize("wrong", WRONG)
    def test_it_bounds_the_best_test_against_gaussian_noise(self, rho: float, wrong: float) -> None:
        """The power of that test is Phi(Phi^-1(a) + sqrt(2 rho))."""
        normal = NormalDist()
        exact = normal.cdf(normal.inv_cdf(wrong) + (2 * rho) ** 0.5)
        bound = right_at_most(round(rho * 10**12), wrong)
        assert exact <= bound < 1
        # Conversion through (epsilon, delta) loses more if rho is large.
        assert rho > 0.5 or bound <= exact + 0.2

    def test_no_spending_gives_no_advantage(self) -> None:
        assert right_at_most(0, 0.05) == pytest.approx(0.05, abs=1e-9)
        assert right_at_most(1000 * 10**12, 0.05) == 1


class TestWords:
    ITEMS: tuple[dict[str, Any], ...] = (
        {"type": "marginals", "k": 1},
        {"type": "marginals", "k": 3},
        {"type": "marginals", "k": 2, "count": 4, "seed": 0},
        {"type": "marginals", "attributes": [["few", "age"]] * 9},
        {"type": "ranges", "k": 2, "count": 4, "seed": 0},
        {"type": "ranges", "queries": [{"age": [0, 25]}]},
        {"type": "binary_tree", "k": 1},
        {"type": "binary_tree", "attributes": [["few", "age"]]},
        {"type": "prefixes", "count": 5, "seed": 0},
        {"type": "halfspaces", "count": 5, "seed": 0},
        {"type": "hierarchical", "k": 2},
        {"type": "hierarchical", "attributes": [["few", "age"]], "levels": ["group"]},
        {"type": "group_sizes"},
    )

    def test_every_kind_of_question_has_its_words(self) -> None:
        said = [item_in_words(validated(item)) for item in self.ITEMS]
        assert len(set(said)) == len(said) and all(said)
        kinds = {get_args(k.model_fields["type"].annotation)[0] for k in _item_types()}
        assert {item["type"] for item in self.ITEMS} == kinds
        assert said[3].endswith("and 1 more, every cell")

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.catalogue_name())
    def test_every_parameter_has_a_meaning(self, mechanism: Any) -> None:
        spec = mechanism(name=mechanism.catalogue_name())
        assert all(each.meaning and each.value for each in parameters(spec))


def _item_types() -> tuple[Any, ...]:
    return get_args(get_args(WorkloadItem)[0])


class TestTexts:
    @given(st.text(), st.integers(1, 50))
    def test_shortened_texts_fit(self, text: str, width: int) -> None:
        short = texts.shortened(text, width)
        assert texts.width_of(short) <= width
        assert short == texts.visible(text) or short.endswith("…")

    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            (texts.percent(0.00001), "<0.1%"),
            (texts.percent(0), "0.0%"),
            (texts.percent_at_most(0.0412), "4.2%"),
            (texts.percent_at_most(0.00521), "0.53%"),
            (texts.percent_at_most(0.000012), "0.0012%"),
            (texts.rounded_up(1.0001), "1.001"),
            (texts.rho_spent(100_000_000_001), "0.100001"),
            (texts.rho_left(199_999_999_999), "0.199999"),
            (texts.rho_left(2 * 10**12), "2"),
            (texts.rho_spent(2 * 10**12, aligned=True), "2.000000"),
            (texts.power(1e-9), "10⁻⁹"),
            (texts.power(2.5e-7), "2.5×10⁻⁷"),
            (texts.power(0.001), "10⁻³"),
            (texts.whole(-1234.4), "−1,234"),
            (texts.counted(1, "row"), "1 row"),
            (texts.size_of(999), "999 bytes"),
            (texts.size_of(999_499), "999 kB"),
            (texts.size_of(12_345_678), "12.3 MB"),
            (texts.visible("a\u202eb\x00c"), "a\\u{202e}b\\u{0}c"),
            (texts.shortened("東京都千代田区", 7), "東京都…"),
        ],
    )
    def test_numbers_and_characters(self, written: str, expected: str) -> None:
        assert written == expected
