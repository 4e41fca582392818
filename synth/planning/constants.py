"""The constants of the expected errors; `python -m benchmarks.quality.forecasts fit` prints them."""

from collections.abc import Mapping
from dataclasses import dataclass

DEPENDENCE = 0.055
"""How fast tables move away from independent columns with the logarithm of their cells. Measured, not
fitted: 0.044 to 0.081 on pairs and triples of ADULT, pairs of LOANS, and ACS of Ohio; 0.020 on five triples
of LOANS."""


@dataclass(frozen=True)
class MechanismFit:
    """Constants of a mechanism."""

    noise: float
    """How much of the noise of a measured table is left."""
    misfit: float
    """The share of the dependence between columns that its model misses at any budget."""
    peak: float = 1.0
    """How much of the noise of a cell is left where the error is largest."""


@dataclass(frozen=True)
class Power:
    """An error that is `factor * noise ** exponent`, at most 1."""

    factor: float
    exponent: float

    def at(self, noise: float) -> float:
        """The error at this noise of one count, as a share of the rows."""
        return float(min(1.0, self.factor * noise**self.exponent))


@dataclass(frozen=True)
class Constants:
    """The constants of the model of tables."""

    spread: float
    """Of the logarithms of the shares of cells, per logarithm of their number."""
    lost: float
    """The share of the dependence between columns that noise can hide."""
    drawn: float
    """The error of drawing rows, as a part of that of independent draws."""
    fits: Mapping[str, MechanismFit]
    others: MechanismFit = MechanismFit(1.0, 0.15)
    """For mechanisms without constants of their own."""


CONSTANTS = Constants(
    spread=0.55,
    lost=0.26,
    drawn=0.035,
    fits={
        "aim": MechanismFit(0.96, 0.28, 0.95),
        "dual_query": MechanismFit(3.7, 2.5, 1),
        "fem": MechanismFit(4.6, 2.1, 1),
        "gem": MechanismFit(2, 0.15, 2.7),
        "gem_plus": MechanismFit(1.5, 0.08, 2.3),
        "gem_pub": MechanismFit(1.2, 0.17, 2.1),
        "generative_network": MechanismFit(0.84, 0.0057, 1.1),
        "generative_network_pub": MechanismFit(0.093, 0.038, 0.59),
        "mwem": MechanismFit(1.9, 0.073, 1.1),
        "pep": MechanismFit(2.8, 0.13, 1.2),
        "pep_pub": MechanismFit(0.28, 0.05, 0.8),
        "pgm_em": MechanismFit(2, 0.1, 2.5),
        "pmw_pub": MechanismFit(0.33, 0.04, 0.62),
        "private_gsd": MechanismFit(1.2, 0.12, 0.94),
        "query_gan": MechanismFit(4.4, 1.2, 8),
        "rap": MechanismFit(2.9, 0.22, 7.5),
        "rap_plus_plus": MechanismFit(6.8, 0.99, 14),
        "rap_softmax": MechanismFit(2.4, 0.18, 2.6),
        "relaxed_projection": MechanismFit(0.98, 0.041, 1.1),
    },
)
POWERS: Mapping[str, tuple[Power, Power]] = {
    "ranges": (Power(0.53, 0.63), Power(12.5, 0.69)),
    "prefixes": (Power(0.53, 0.63), Power(12.5, 0.69)),
    "halfspaces": (Power(0.15, 0.38), Power(1.5, 0.41)),
    "binary_tree": (Power(0.41, 0.75), Power(30, 0.98)),
    "hierarchical": (Power(0.56, 0.74), Power(1.0, 0.53)),
}
"""Mean and maximum error of queries that are not tables, by the type of their item, fitted to
docs/results/mixed.jsonl and households.jsonl. No ranges were measured: they have the constants of prefixes.
"""


@dataclass(frozen=True)
class Range:
    """The factors between which a measured error is, per its forecast, in about 80% of releases."""

    low: float
    high: float


@dataclass(frozen=True)
class Reach:
    """The ranges that previews state.

    With their table left out of the fit, 83% of mean total variations and 81% of maximum errors were within
    them (docs/results/forecasts.md).
    """

    mean: Range
    """Of the mean absolute error and the mean total variation."""
    largest: Range
    """Of the maximum error."""


REACH = Reach(mean=Range(1 / 1.5, 1.5), largest=Range(1 / 1.7, 1.7))
