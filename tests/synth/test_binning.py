"""Adaptive bins: where their edges are placed, what they cost, and that everything after them uses them."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scrim.spec.columns import Bins, IntegerColumn, RealColumn
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.binning import place_bins
from synth.journal import MemoryJournal
from synth.measurements import Measurement
from synth.models.released import ReleasedModel
from synth.planning.accounting import fund
from synth.planning.binning import with_bins
from synth.queries.grid import GridQueries
from synth.run import run
from synth.table import Table, store_numbers
from synth.table.encoding import attribute_codec
from tests.support import PROTECTIONS
from tests.synth.replay import check_replay

DELTA = 1e-9
DAYS: dict[str, Any] = {"name": "days", "type": "integer", "lower": -1, "upper": 1000}
KNOWN: dict[str, Any] = {
    "name": "known",
    "type": "categorical",
    "values": ["no", "yes"],
    "other": "no",
    "nullable": False,
}
PAY: dict[str, Any] = {"name": "pay", "type": "real", "lower": 0, "upper": 1e6, "decimals": 2}
SCHEMA = Schema.model_validate(
    {"columns": [KNOWN, DAYS, PAY, {"name": "who", "type": "identifier"}]}
)
ROWS = 600


def table(schema: Schema = SCHEMA, rows: int = ROWS) -> Table:
    """A third was never contacted, which is written as -1; pay is skewed, and often zero."""
    rng = np.random.default_rng(3)
    known = rng.random(rows) < 2 / 3
    numbers = {
        "known": known.astype(float),
        "days": np.where(known, np.round(rng.exponential(80, rows)), -1.0),
        "pay": np.where(rng.random(rows) < 0.2, 0.0, np.exp(rng.normal(8, 1.5, rows))),
    }
    return Table(schema, [store_numbers(schema, numbers)])


def column(**fields: Any) -> IntegerColumn:
    return IntegerColumn.model_validate({**DAYS, "bins": {"adaptive": 8}, **fields})


def placed(values: NDArray[np.float64], noise: float = 0.0, **fields: Any) -> IntegerColumn:
    """A column with bins placed from the counts of these values, with normal noise of a fixed seed."""
    declared = column(**fields)
    grid = GridQueries(("days",), Schema(columns=[declared]))
    counter = GridQueries.counter([grid])
    counter.add({"days": values})
    (counts,) = counter.totals()
    noisy = np.rint(counts + np.random.default_rng(1).normal(0, noise, len(counts)))
    measured = Measurement(grid, noisy.astype(np.int64), noise)
    return declared.with_edges(place_bins(declared, measured, float(len(values)), 0.0))


SPIKED = np.concatenate([np.full(500, -1.0), np.full(200, 365.0), np.arange(300) * 2.0])


def test_values_that_many_rows_have_get_bins_of_their_own() -> None:
    for noise in (0.0, 5.0):
        edges = placed(SPIKED, noise, bins={"adaptive": 16}).edges
        assert {(-1.0, 0.0), (365.0, 366.0)} <= set(pairwise(edges))


@pytest.mark.parametrize("special", [[], [0, 365]])
@pytest.mark.parametrize(
    "values",
    [np.zeros(0), np.full(9, 7.0), SPIKED, np.full(5, np.nan), np.full(9, 1000.0)],
    ids=["empty", "one value", "spiked", "missing", "upper bound"],
)
def test_the_number_of_codes_does_not_depend_on_the_data(
    values: NDArray[np.float64], special: list[int]
) -> None:
    declared = column(special=special)
    for noise in (0.0, 50.0):
        found = placed(values, noise, special=special)
        assert found.size == declared.size == 9 + len(special)
        assert set(map(float, special)) <= set(found.edges)


def test_values_follow_the_measured_shape_inside_their_bins() -> None:
    rng = np.random.default_rng(2)
    values = np.round(rng.exponential(60, 5000)).clip(0, 1000)
    final = placed(values, 3.0)
    codec = attribute_codec(final)
    codes = codec.discretise(codec.from_numbers(values))
    drawn = codec.draw(codes, rng)
    assert np.array_equal(codec.discretise(drawn), codes), "each value stays in its bin"
    assert final.bins is not None
    even = attribute_codec(final.with_edges(final.bins.model_copy(update={"shape": None})))
    shaped, flat = (distance(values, each.numbers(each.draw(codes, rng))) for each in (codec, even))
    assert shaped < 0.02 and shaped < flat / 2


def distance(true: NDArray[np.float64], drawn: NDArray[np.float64]) -> float:
    """The Kolmogorov-Smirnov distance."""
    places = np.unique(np.concatenate([true, drawn]))
    below = [np.searchsorted(np.sort(each), places, side="right") for each in (true, drawn)]
    return float(np.abs(below[0] - below[1]).max() / len(true))


def release(mechanism: dict[str, Any], **fields: Any) -> ReleaseSpec:
    body = {
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": mechanism,
        "budget": {"rho": 5.0},
        "outputs": {"rows": 300},
        "expected_rows": ROWS,
    }
    return ReleaseSpec.model_validate_json(json.dumps(body | fields))


PAIRS = release({"name": "mwem", "rounds": 3}, workload=[{"type": "marginals", "k": 1}])


@pytest.mark.random
def test_edges_are_paid_for() -> None:
    journal = MemoryJournal()
    done = run(PAIRS, table(), journal, protection=Protection(), delta=DELTA)
    kinds = [(each.kind, each.asked.split("(")[0]) for each in journal.operations()]
    assert kinds[:3] == [("rows", ""), ("measure", "grid"), ("measure", "grid")]
    units = PAIRS.budget.units(DELTA)
    for grid in journal.operations()[1:3]:
        assert 0.999 * 0.01 * units < grid.price <= 0.01 * units
    assert sum(each.price for each in journal.operations()) <= units
    assert done.certificate["placed_bins"].keys() == {"days", "pay"}


@pytest.mark.random
def test_the_final_edges_are_used_everywhere_and_follow_from_the_journal() -> None:
    journal = MemoryJournal()
    spec = PAIRS.model_copy(
        update={"outputs": PAIRS.outputs.model_copy(update={"draws": 2})}, deep=True
    )
    done = run(spec, table(), journal, protection=Protection(), delta=DELTA)
    assert done.rows is not None and done.answers is not None and done.redraws is not None
    days = done.model.schema.attribute("days")
    assert isinstance(days, IntegerColumn)
    assert list(days.edges) == done.certificate["placed_bins"]["days"]
    assert not days.awaits_edges and days.size == 33
    # The measurements that the model was fitted to, and nothing about grids.
    assert all(not isinstance(each.query, GridQueries) for each in done.measurements)
    assert [len(each["days"]) for each in done.redraws] == [300, 300]
    loaded = ReleasedModel.from_bytes(done.model.to_bytes())
    again = loaded.answer(spec.workload)
    assert np.allclose(again.counts, done.answers.counts, rtol=1e-3)
    # No rows are needed: the edges are a function of the journal.
    resumed = run(spec, Table(SCHEMA, []), journal, protection=Protection(), delta=DELTA)
    assert resumed.certificate == done.certificate
    assert resumed.rows is not None
    assert all(resumed.rows[n].tobytes() == done.rows[n].tobytes() for n in done.rows)


@pytest.mark.random
def test_grids_are_part_of_the_exact_curve() -> None:
    spec = release(
        {"name": "gaussian"},
        workload=[{"type": "marginals", "attributes": [["days"]]}],
        budget={"epsilon": 1.0},
        outputs={},
    )
    done = run(spec, table(), protection=Protection(), delta=DELTA)
    assert done.certificate["accounting"] == "exact_gaussian"
    assert [o["kind"] for o in done.certificate["operations"]] == ["rows", "measure", "measure"]


def test_numbers_get_adaptive_bins_only_where_they_are_read_as_cells() -> None:
    def adaptive(spec: ReleaseSpec) -> set[str]:
        schema = with_bins(spec, SCHEMA)
        return {c.name for c in schema.attributes if isinstance(c, IntegerColumn) and c.bins}

    trees: dict[str, Any] = {"workload": [{"type": "binary_tree", "k": 2}]}
    sex: dict[str, Any] = {"workload": [{"type": "marginals", "attributes": [["known"]]}]}
    assert adaptive(release({"name": "private_gsd"}, **trees)) == set()
    assert adaptive(release({"name": "private_gsd"}, **sex)) == set()
    assert adaptive(release({"name": "private_gsd"})) == {"days"}
    assert adaptive(release({"name": "gem"}, **sex)) == {"days"}
    # Declared ones are not paid for where nothing reads them.
    declared = Schema.model_validate({"columns": [KNOWN, {**DAYS, "bins": {"adaptive": 8}}]})
    unread = with_bins(release({"name": "private_gsd"}, **trees), declared)
    assert "days" not in unread.sizes


def test_releases_of_earlier_versions_keep_their_columns() -> None:
    schema = with_bins(PAIRS, SCHEMA, columns=["known"])
    assert schema.attribute("days") == SCHEMA.attribute("days")
    planned = fund(PAIRS, schema, Protection(), DELTA, columns=["known"]).plan
    assert planned.binning is None and planned.schema.names == ["known"]


def test_the_share_is_declared_and_divided() -> None:
    for share, part in ((None, 0.02), (0.3, 0.3)):
        spec = PAIRS.model_copy(update={"bins_share": share})
        planned = fund(spec, with_bins(spec, SCHEMA), Protection(), DELTA).plan
        assert planned.binning is not None
        assert planned.split.bins == pytest.approx(part * 5e12)
        assert planned.binning.each == planned.split.bins // 2


def test_what_cannot_be_is_refused_before_any_data_are_read() -> None:
    declared = {"columns": [{**DAYS, "bins": {"adaptive": 8}}, KNOWN]}
    schema = Schema.model_validate(declared)
    named = [{"type": "ranges", "queries": [{"days": [0, 30]}]}]
    with pytest.raises(SpecError, match="an interval of column 'days' ends inside one of its bins"):
        fund(release({"name": "gem"}, workload=named), schema, Protection(), DELTA)
    trees = [{"type": "binary_tree", "k": 1}]
    with pytest.raises(SpecError, match="column 'days' has no bins that are parts of"):
        fund(release({"name": "gem"}, workload=trees), schema, Protection(), DELTA)


@pytest.mark.random
@pytest.mark.parametrize("protection", PROTECTIONS[:4], ids=lambda p: f"{p.unit}-{p.relation}")
def test_the_same_draws_on_a_neighbour_give_the_same_release(protection: Protection) -> None:
    (rows,) = table().chunks()
    own = protection.max_rows_per_unit
    first = protection.relation == "replace_one"
    others = {
        name: np.concatenate([cells[first:], np.repeat(cells[-1:], own)])
        for name, cells in rows.items()
    }

    def carry(chunk: Any) -> Any:
        done = run(PAIRS, Table(SCHEMA, [chunk]), protection=protection, delta=DELTA)
        assert done.rows is not None
        drawn = {name: cells.tobytes() for name, cells in done.rows.items()}
        return done.certificate, drawn, done.model.schema

    seen = check_replay(lambda: carry(rows), lambda: carry(others))
    assert len(seen.draws) > 3


@pytest.mark.random
@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "private_gsd", "rows": 200, "generations": 200},
        {"name": "rap_plus_plus", "rounds": 2, "rows": 100, "steps": 20},
        {"name": "pmw_pub", "rounds": 2},
    ],
    ids=lambda mechanism: str(mechanism["name"]),
)
def test_special_values_and_adaptive_bins_work_with_other_kinds_of_models(
    mechanism: dict[str, Any],
) -> None:
    declared = {"columns": [KNOWN, {**DAYS, "special": [-1, 0], "bins": {"adaptive": 8}}]}
    schema = Schema.model_validate(declared)
    spec = release(mechanism, workload=[{"type": "marginals", "k": 1}])
    public = table(rows=200) if mechanism["name"] == "pmw_pub" else None
    done = run(spec, table().project(schema), protection=Protection(), delta=DELTA, public=public)
    days = done.model.schema.attribute("days")
    assert isinstance(days, IntegerColumn)
    assert days.size == 11 and {-1.0, 0.0, 1.0} <= set(days.edges)
    # A third of the rows has -1; the budget is so large that noise cannot hide it.
    assert done.rows is not None
    assert (done.rows["days"] == 0).mean() > 0.1


@pytest.mark.parametrize("bounds", [(0.0, 100.0), (-1e300, 1e300), (0.0, 1e-3)])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_numbers_that_are_clamped_to_the_upper_bound_get_a_bin(
    bounds: tuple[float, float], share: float
) -> None:
    line = RealColumn(
        name="v", type="real", lower=bounds[0], upper=bounds[1], bins=Bins(adaptive=8)
    )
    queries = GridQueries(("v",), Schema(columns=[line]))
    ends = np.cumsum([len(level) + 1 for level in line.grid.starts])
    counts = np.zeros(queries.size, np.int64)
    for end, level in zip(ends, line.grid.starts, strict=True):
        counts[end - 1 - len(level)] += round(1000 * (1 - share))
        counts[end - 2] += round(1000 * share)
    placed = place_bins(line, Measurement(queries, counts, 5.0), 1000.0, 1.0)
    assert placed.edges is not None and placed.shape is not None
    assert placed.edges[-2:] == [bounds[1], bounds[1]]
    assert sum(placed.shape.weights) == pytest.approx(256 * 1000, rel=0.05)


def test_a_special_value_next_to_the_upper_bound_has_a_bin() -> None:
    near = RealColumn(
        name="v",
        type="real",
        lower=0,
        upper=99.95,
        decimals=1,
        special=[99.9],
        bins=Bins(adaptive=8),
    )
    queries = GridQueries(("v",), Schema(columns=[near]))
    counts = np.zeros(queries.size, np.int64)
    placed = near.with_edges(place_bins(near, Measurement(queries, counts, 5.0), 1000.0, 1.0))
    assert 99.9 in placed.edges and len(placed.edges) == near.size - len(near.kinds) + 1
