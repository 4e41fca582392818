"""The constants of the expected errors; `python -m benchmarks.quality.forecasts fit` prints them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MechanismFit:
    """Constants of a mechanism."""

    noise: float
    """How much of the noise of a measured table is left."""
    misfit: float
    """The share of the dependence between columns that its model misses at any budget."""
    peak: float = 1.0
    """The largest error of a cell, per largest noise."""


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
    dependence: float
    """How fast tables move away from independent columns with the logarithm of their cells. Measured, not
    fitted: 0.044 to 0.081 on pairs and triples of ADULT, pairs of LOANS, and ACS of Ohio;
    0.020 on five triples of LOANS."""
    unmeasured: float
    """The share of the dependence that is missed in tables that rounds do not select."""
    drawn: float
    """The error of drawing rows, as a part of that of independent draws."""
    peak: float
    """The largest error of a cell, per mean total variation, in addition to noise."""
    fits: Mapping[str, MechanismFit]
    others: MechanismFit = MechanismFit(1.0, 0.15)
    """For mechanisms without constants of their own."""


CONSTANTS = Constants(
    spread=1.0,
    dependence=0.055,
    unmeasured=0.11,
    drawn=0.046,
    peak=0.027,
    fits={
        "aim": MechanismFit(1.3, 0.044, 2.5),
        "dual_query": MechanismFit(4.7, 2.5, 8.8),
        "fem": MechanismFit(1.8, 2.3, 12.0),
        "gem": MechanismFit(1.8, 0.044, 1.4),
        "gem_plus": MechanismFit(1.1, 0.046, 1.1),
        "gem_pub": MechanismFit(1.2, 0.11, 1.2),
        "generative_network": MechanismFit(0.76, 0.035, 0.72),
        "mwem": MechanismFit(2.8, 0.073, 1.0),
        "pep": MechanismFit(3.1, 0.11, 0.7),
        "pep_pub": MechanismFit(0.75, 0.077, 1.9),
        "pgm_em": MechanismFit(1.5, 0.045, 1.1),
        "pmw_pub": MechanismFit(0.82, 0.068, 1.4),
        "private_gsd": MechanismFit(0.88, 0.14, 0.55),
        "query_gan": MechanismFit(3.0, 1.2, 7.7),
        "rap": MechanismFit(2.5, 0.053, 4.2),
        "rap_plus_plus": MechanismFit(12.0, 0.16, 16.0),
        "rap_softmax": MechanismFit(2.1, 0.047, 1.3),
        "relaxed_projection": MechanismFit(0.76, 0.17, 0.75),
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
class Reach:
    """The factors around the expected errors that are stated as a range, meant to hold about 80% of releases.

    With its table left out of the fit, 83% of maximum errors were within 3, and of mean total variations
    64% within 1.5 and 91% within 2 (docs/results/forecasts.md); 1.8 lies between these.
    """

    mean: float
    """Of the mean absolute error and the mean total variation."""
    largest: float
    """Of the maximum error."""


REACH = Reach(mean=1.8, largest=3.0)
