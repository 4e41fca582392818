"""What is compared: columns of ACS persons, their workloads, and the mechanisms.

Paper: Liu, Tang, Vietri, Wu (2023), Generating Private Synthetic Data with Genetic Algorithms,
section 5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.acs import COLUMN_SETS, TREE_LEAVES, ColumnSet, persons
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import adult
from scrim.spec.workload import BinaryTree, Halfspaces, Marginals, Prefixes, WorkloadItem

STATE = "NY"
"""The available state whose sets are closest in size to the paper's sets of California."""
SETS = ("mobility", "employment", "income", "coverage", "travel")
PREFIXES, HALFSPACES = 20_000, 5_000
"""Number of queries; the paper has 200,000 of each."""
SEED = 0

ADAPTIVE = {"private_gsd": {"mode": "adaptive"}}
ONE_SHOT = {"private_gsd": {"mode": "one_shot"}}


@dataclass(frozen=True)
class Questions:
    """One kind of query, and the mechanisms that can answer it."""

    name: str
    title: str
    mechanisms: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, object]]
    ask: Callable[[ColumnSet], WorkloadItem]
    of_numbers: bool = True
    """Whether the table has numbers, or only the categorical columns."""
    bins: int | None = None
    """Bins of the numbers, for mechanisms that need bins."""

    def problem(self, column_set: ColumnSet, state: str) -> Problem:
        """These questions about the persons of a state."""
        data = persons(state, column_set, bins=self.bins)
        asked = data if self.of_numbers else data.keep_columns(column_set.categorical)
        return Problem(asked, [self.ask(column_set)])

    def comparisons(self, sets: Sequence[str], state: str) -> dict[str, Comparison]:
        """Comparisons by the name of the column set."""
        return {
            name: Comparison(
                f"{state}-{name}-{self.name}",
                f"{self.title}: {name}",
                self.mechanisms,
                partial(self.problem, COLUMN_SETS[name], state),
                self.parameters,
            )
            for name in sets
        }


def all_questions(
    *, prefixes: int = PREFIXES, halfspaces: int = HALFSPACES
) -> dict[str, Questions]:
    """All kinds of queries, by a short name for the command line."""
    return {
        "prefixes": Questions(
            f"prefixes-{prefixes}",
            f"{prefixes:,} random prefixes, adaptive",
            ("private_gsd", "rap_plus_plus"),
            ADAPTIVE,
            lambda columns: Prefixes(
                type="prefixes", count=prefixes, seed=SEED, numeric=min(2, len(columns.numeric))
            ),
        ),
        "halfspaces": Questions(
            f"halfspaces-{halfspaces}",
            f"{halfspaces:,} random halfspaces, adaptive",
            ("private_gsd", "rap_plus_plus"),
            ADAPTIVE,
            lambda columns: Halfspaces(type="halfspaces", count=halfspaces, seed=SEED),
        ),
        "trees": Questions(
            "trees",
            "2-way binary trees, one-shot",
            ("private_gsd", "relaxed_projection", "generative_network"),
            ONE_SHOT,
            lambda columns: BinaryTree(type="binary_tree", k=2),
            bins=TREE_LEAVES,
        ),
        "marginals-2": Questions(
            "marginals-2",
            "2-way categorical marginals, one-shot",
            ("private_gsd", "relaxed_projection", "generative_network", "gaussian"),
            ONE_SHOT,
            lambda columns: Marginals(type="marginals", k=2),
            of_numbers=False,
        ),
        "marginals-3": Questions(
            "marginals-3",
            "3-way categorical marginals",
            ("private_gsd", "rap_softmax", "gem", "pgm_em", "gaussian"),
            {},
            lambda columns: Marginals(type="marginals", k=3),
            of_numbers=False,
        ),
    }


ADULT = Comparison(
    "adult-marginals-2",
    "ADULT, 13 columns, all 78 two-way marginals, one-shot",
    ("private_gsd",),
    lambda: Problem(adult(), [Marginals(type="marginals", k=2)]),
    ONE_SHOT,
)
"""The comparison on which the paper's own code was measured too."""
