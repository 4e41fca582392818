"""Warnings for the curator: limits of a release, each with its remedy."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from scrim.spec.mechanism import DualQuery, Fem, PrivateGsd, PublicDataSpec, RapPlusPlus
from scrim.spec.release import ReleaseSpec
from scrim.spec.rules import impossible_values
from scrim.spec.workload import Block
from scrim.spec.workload.marginals import MAX_TABLE_CELLS
from synth.planning.candidates import MAX_COUNTS, left_out
from synth.planning.choice import Resolved
from synth.planning.constants import CONSTANTS
from synth.planning.expected import Expected
from synth.planning.knowledge import knowledge_of
from synth.planning.plan import ReleasePlan
from synth.planning.rap_plus_plus import ROW_COPIES
from synth.planning.reference import ReferenceTable, rows_below
from synth.planning.rounds import is_measured_singly
from synth.planning.spending import AnnealedRounds, Draws, OneShot, Rounds
from synth.planning.subject import Subject

NAMED_COLUMNS = 10
"""Largest number of columns that a warning names."""
NAMED_TABLES = 5
"""Largest number of marginals that a warning names."""
NOT_KEPT, KEPT = 0.8, 0.5
"""How far noise alone would move tables, per the distance of independent columns, above which relations
count as lost, and at which they count as kept."""
BELOW_NOISE = 0.5
"""Share of the rows in cells below their noise above which there is a warning."""
FAR_OFF = 2.0
"""The factor between the declared and the counted number of rows above which there is a warning."""


@dataclass(frozen=True)
class Warning:
    """A limit of a release: its type, and one sentence with the remedy."""

    type: str
    detail: str


def warn(kind: str, detail: str) -> Warning:
    """A warning of that kind."""
    return Warning(f"/warnings/{kind}", detail)


def warnings_of(resolved: Resolved, subject: Subject) -> list[Warning]:
    """All warnings that follow from the plan."""
    release, planned = resolved.release, resolved.plan
    return [
        *_of_pairs(release, planned),
        *_of_noise(resolved, subject),
        *_of_rounds(release, planned),
        *_of_draws(release, planned),
        *_of_rows(release, planned),
        *_of_public_data(release),
        *_of_groups(planned, subject),
        *_of_columns(planned),
        *_of_tables(planned),
        *_of_rules(planned),
    ]


def loses_relations(expected: Expected) -> bool:
    """Whether relations between columns are expected to be lost."""
    return expected.lost is not None and expected.lost > NOT_KEPT


def keeps_relations(expected: Expected) -> bool:
    """Whether relations between columns are expected to be kept."""
    return expected.lost is None or expected.lost <= KEPT


def relations_not_kept(epsilon: float | None) -> Warning:
    """Warn that relations are lost; `epsilon` is what would keep them, if it is known."""
    larger = "a larger budget" if epsilon is None else f"epsilon {epsilon:g}"
    return warn(
        "relations-not-kept",
        "Relations between columns will not be kept at this budget: ask for fewer columns, coarser "
        f"bins, or {larger}.",
    )


def _of_rules(planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about values that rules together exclude, though no rule alone does."""
    found = list(impossible_values(planned.schema.rule_set)) if planned.schema.rules else []
    if found:
        named = ", ".join(f"{value} of {column}" for column, value in found[:NAMED_COLUMNS])
        yield warn(
            "impossible-values",
            f"By the rules together, no row can have {named}{' and others' * (len(found) > NAMED_COLUMNS)}: "
            "check the rules; if this is meant, state it in a rule about the column alone.",
        )


def of_counted_rows(
    release: ReleaseSpec, counted: int, *, sigma: float, noun: str
) -> Iterator[Warning]:
    """Warn, once the rows are counted with that noise, if the declared number is far from it."""
    declared, slack = release.expected_rows, 2 * sigma
    is_too_large = declared > FAR_OFF * (counted + slack)
    if not is_too_large and FAR_OFF * declared >= counted - slack:
        return
    shown = _two_digits(counted)
    yield warn(
        "expected-rows-far-off",
        f"The release counted about {shown:,} {noun}, and expected_rows is {declared:,}: the forecast "
        f"errors were too {'small' if is_too_large else 'large'}, and what was measured was chosen for "
        f"{declared:,} {noun}; set expected_rows to {shown:,} in further releases.",
    )


def _two_digits(number: int) -> int:
    """Round to two digits."""
    return round(number, 2 - len(str(number)))


def _of_pairs(release: ReleaseSpec, planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about pairs of columns that are asked about together and not measured together."""
    if not isinstance(planned.spending, OneShot) or not release.mechanism.releases_rows:
        return
    missing = left_out(planned.asked.marginals, planned.measured)
    if not missing:
        return
    if all(len(block.attributes) == 1 for block in planned.measured):
        yield warn(
            "single-columns-only",
            "Only single columns are measured, because counts of pairs would be lost in their noise: "
            "relations between columns will not be kept; ask about fewer columns, declare wider bins, or "
            "use a larger budget.",
        )
        return
    yield warn(
        "pairs-not-measured",
        f"{len(missing):,} pairs of columns are not measured together, because a fit takes at most "
        f"{MAX_COUNTS:,} counts: {_in_words(missing)}; what is released about them follows from other "
        "pairs; declare wider bins, or ask about fewer columns, to measure them.",
    )


def _of_noise(resolved: Resolved, subject: Subject) -> Iterator[Warning]:
    """Warn if most rows fall into cells of measured tables that are smaller than their noise."""
    if isinstance(resolved.plan.spending, Draws):
        return
    known = knowledge_of(resolved, subject)
    sizes = subject.schema.sizes
    shares = [
        rows_below(ReferenceTable(math.prod(sizes[n] for n in names), CONSTANTS.spread), noise)
        for names, noise in known.noise.items()
        if noise > 0 and len(names) > 1
    ]
    if not shares or fmean(shares) <= BELOW_NOISE:
        return
    yield warn(
        "cells-below-noise",
        f"About {fmean(shares):.0%} of the rows fall into cells that are smaller than the noise on them: "
        "ask for fewer columns, declare wider bins, or use a larger budget.",
    )


def _of_rounds(release: ReleaseSpec, planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about marginals that rounds do not measure or that have no noise, and about annealing."""
    spending = planned.spending
    if not isinstance(spending, Rounds):
        return
    known, most = set(spending.public), spending.rounds * spending.per_round
    moved = [block for block in planned.measured if block not in known]
    public = len(planned.measured) - len(moved)
    singly = any(is_measured_singly(block, release.mechanism) for block in moved)
    if most < len(moved) and not singly:
        yield warn(
            "marginals-not-measured",
            f"At most {most} of {len(moved)} marginals are measured, those with the largest errors, and the "
            "others are answered from the model: ask for fewer marginals, or use a larger budget, to "
            "measure more.",
        )
    if public:
        yield warn(
            "read-without-noise",
            f"{public} of {len(planned.measured)} marginals are read without noise, because no protected "
            "unit can change them: use a population with another unit if they are confidential.",
        )
    if isinstance(spending, AnnealedRounds):
        yield warn(
            "annealed-rounds",
            f"There are at most {spending.rounds} rounds; whenever a round improves the model by less than "
            "its noise, the noise is halved and fewer rounds remain; sigma is the noise of the first "
            "round.",
        )


def _of_draws(release: ReleaseSpec, planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about queries that are answered without being measured themselves."""
    if isinstance(planned.spending, Draws):
        rounds, draws = len(planned.spending.prices), planned.spending.per_round
        later = (
            "request outputs.certify to measure it"
            if release.outputs.certify is None
            else "the certificate will state it"
        )
        yield warn(
            "nothing-measured",
            f"Nothing is measured: {draws} queries are drawn in each of {rounds} rounds, so the forecast of "
            f"the error is rough; {later}.",
        )
    elif release.mechanism.measure is not None and release.mechanism.releases_rows:
        yield warn(
            "measured-otherwise",
            "The workload is answered from the queries in mechanism.measure, and sigma is their noise: "
            "leave mechanism.measure out to measure what is asked.",
        )


def _of_rows(release: ReleaseSpec, planned: ReleasePlan) -> Iterator[Warning]:
    """Warn if the released rows repeat a few."""
    rows, found = release.synthetic_rows, _most_distinct(release, planned)
    if rows is None or found is None or rows <= found[0]:
        return
    most, ones, parameter = found
    yield warn(
        "few-distinct-rows",
        f"The {rows:,} released rows repeat at most {most:,} different {ones}: set mechanism.{parameter} "
        "higher, or use another mechanism, for more.",
    )


def _most_distinct(release: ReleaseSpec, planned: ReleasePlan) -> tuple[int, str, str] | None:
    """How many different rows a model of rows has at most, what they are, and what raises the number."""
    mechanism, spending = release.mechanism, planned.spending
    if isinstance(mechanism, PrivateGsd):
        return mechanism.rows, "ones", "rows"
    if isinstance(mechanism, RapPlusPlus):
        return ROW_COPIES * mechanism.rows, "ones", "rows"
    if isinstance(spending, Draws):
        rounds, records = len(spending.prices), "combinations of categories and bins"
        if isinstance(mechanism, DualQuery):
            return rounds, records, "rounds"
        if isinstance(mechanism, Fem):
            return (1 + rounds) * mechanism.samples, records, "samples"
    return None


def _of_public_data(release: ReleaseSpec) -> Iterator[Warning]:
    """Warn if nothing tests whether the public rows are close enough."""
    mechanism = release.mechanism
    if isinstance(mechanism, PublicDataSpec) and mechanism.screen is None:
        yield warn(
            "public-data-too-far",
            "The errors are several times larger if the public rows lack kinds of rows that the private "
            "table has: set mechanism.screen to check this first.",
        )


def _of_groups(planned: ReleasePlan, subject: Subject) -> Iterator[Warning]:
    """Warn if the unit is a person: only that person's rows are protected, not the columns of groups."""
    if subject.protection.unit != "person":
        return
    blocks: tuple[Block, ...] = (*planned.asked, *planned.measured)
    if (
        not {name for block in blocks for name in block.attributes}
        & subject.schema.columns_of_groups
    ):
        return
    yield warn(
        "columns-of-groups",
        "The release covers columns of groups, but only each person's own rows are protected: this is "
        "sound only if no person can change a group's columns; use a population whose unit is household "
        "otherwise.",
    )


def _of_columns(planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about declared columns that are not released, because no query mentions them."""
    names = planned.left_out
    if not names:
        return
    further = f" and {len(names) - NAMED_COLUMNS:,} more" if len(names) > NAMED_COLUMNS else ""
    named = ", ".join(names[:NAMED_COLUMNS]) + further
    noun, verb, them = ("Column", "is", "it") if len(names) == 1 else ("Columns", "are", "them")
    yield warn(
        "unasked-columns",
        f"{noun} {named} {verb} not released, because no query mentions {them}: ask about {them} in the "
        f"workload, or name {them} in outputs.columns.",
    )


def _of_tables(planned: ReleasePlan) -> Iterator[Warning]:
    """Warn about marginals that are not answered, because they are too large."""
    if planned.asked.left_out:
        yield warn(
            "tables-too-large",
            f"Marginals with more than {MAX_TABLE_CELLS:,} cells are left out: "
            f"{_in_words(planned.asked.left_out)}; declare wider bins to include them.",
        )


def _in_words(tables: Sequence[tuple[str, ...]]) -> str:
    """The first of these marginals, and how many more there are."""
    named = ", ".join(f"({', '.join(names)})" for names in tables[:NAMED_TABLES])
    more = len(tables) - NAMED_TABLES
    return f"{named} and {more:,} more" if more > 0 else named
