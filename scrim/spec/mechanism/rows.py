"""Mechanisms that keep rows of declared values: categories, and numbers without bins."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.adaptive import AdaptiveSpec
from scrim.spec.mechanism.base import (
    Plan,
    Setting,
    divide,
    one_way_apart,
)
from scrim.spec.mechanism.orders import as_asked, by_forecast_error
from scrim.spec.mechanism.product import STUDIED_MARGINALS, Rate, Steps, worth_measuring
from scrim.spec.memory import rows_bytes
from scrim.spec.workload import Group

ONE_WAY_SHARE = 0.05
"""Share of the budget for one-way marginals, where everything is measured once."""

RELAXED_ROUNDS = 5
"""Rounds of RAP++ where nobody said."""
QUERIES_FOR_A_MARGINAL = 7
"""How many single queries are measured where one marginal of a common table would be."""
QUERIES_PER_ROUND = 20
"""How many of them in one round of a genetic search."""

SearchedRows = Annotated[int, Field(ge=1, le=1_000_000)]


class RowsSpec(AdaptiveSpec):
    """A mechanism whose model is a table of rows in the declared types."""

    needs_bins: ClassVar[bool] = False
    query_types: ClassVar[tuple[str, ...]] = (
        "marginals",
        "ranges",
        "binary_tree",
        "prefixes",
        "halfspaces",
    )

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Share of the budget for measuring the distribution of every column once, before the first
    round: one-way marginals, and binary trees of numbers without bins."""


class PrivateGsd(RowsSpec):
    """A genetic search for rows whose counts are near the measured ones."""

    paper: ClassVar[str] = (
        "Liu, Tang, Vietri, Wu (2023), section 4, algorithms 1 and 2 (Private-GSD)"
    )

    name: Literal["private_gsd"]
    """Always `private_gsd`."""
    mode: Literal["adaptive", "one_shot"] | None = None
    """Whether to measure round by round where the rows are worst, or everything once. Where not given:
    once, unless there are single queries among the candidates, of which most are not worth it."""
    rows: SearchedRows = 2000
    """How many rows the search evolves (the paper's N'). A release of another number repeats them
    evenly."""
    mutations: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Candidates of a generation in which one cell gets a random value (P_mut)."""
    crossovers: Annotated[int, Field(ge=0, le=10_000)] = 50
    """Candidates of a generation in which one cell gets the value of another row (P_cross)."""
    elites: Annotated[int, Field(ge=1, le=100)] = 2
    """How many of the best tables survive a generation (E)."""
    generations: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    """Upper bound on the generations (in each round, where there are rounds); the search stops
    earlier when it no longer improves."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """What is asked: pairs would lose what the rows of a search can hold (docs/defaults.md)."""
        return as_asked(setting)

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """As mixtures do; of single queries more, several in a round."""
        if not are_single(measured):
            return worth_measuring(self.candidates(measured, setting.schema), setting), 1
        return round(single_queries(setting) / QUERIES_PER_ROUND), QUERIES_PER_ROUND

    def plan(self, measured: Sequence[Group], setting: Setting) -> Plan:
        """Rounds, or a single measurement of everything."""
        mode = self.mode or ("adaptive" if are_single(measured) else "one_shot")
        if mode == "one_shot":
            return divide(setting.units, one_way_apart(measured, ONE_WAY_SHARE))
        return super().plan(measured, setting)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """The rows, the counts of everything measured, and what each row satisfies."""
        return rows_bytes(self.rows, setting.schema, measured)


class RapPlusPlus(RowsSpec):
    """Rows moved by gradients, through thresholds that are soft at first and harden."""

    paper: ClassVar[str] = (
        "Vietri et al. (2022); Liu, Tang, Vietri, Wu (2023), appendix B.3, algorithm 3 (RAP++)"
    )

    name: Literal["rap_plus_plus"]
    """Always `rap_plus_plus`."""
    rows: SearchedRows = 1000
    """How many rows are moved (the paper's N')."""
    steps: Steps = 100
    """Upper bound on the optimiser's steps at each temperature of a round."""
    learning_rate: Rate = 0.005
    """Step size of the optimiser (Adam)."""
    first_temperature: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    """The first inverse temperature of the sigmoids (sigma_1); it doubles until the last."""
    last_temperature: Annotated[float, Field(gt=0, le=1e6)] = 512.0
    """The last inverse temperature."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """Marginals of the orders with the least forecast error; all else that is asked, as it is."""
        return by_forecast_error(setting)

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """Few rounds of many queries, as in the paper: each anneals from the beginning."""
        candidates = self.candidates(measured, setting.schema)
        single = are_single(measured)
        wanted = single_queries(setting) if single else worth_measuring(candidates, setting)
        return RELAXED_ROUNDS, round(wanted / RELAXED_ROUNDS)


def single_queries(setting: Setting) -> int:
    """How many of a large class of queries are worth a measurement."""
    return QUERIES_FOR_A_MARGINAL * worth_measuring(STUDIED_MARGINALS, setting)


def are_single(measured: Sequence[Group]) -> bool:
    """Whether candidates are single queries rather than whole tables."""
    return any(not group.is_whole for group in measured)
