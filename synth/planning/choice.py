"""`auto`: the choice of a mechanism from public facts, with its reasons.

A release is resolved once, when it is submitted, and the resolved release is stored. Plans, prices,
journals and resumed jobs all use the named mechanism (docs/adr/0013-auto-at-submission.md).
"""

import math
from collections import defaultdict
from dataclasses import dataclass

from scrim.spec.choice import MechanismChoice, PassedOverMechanism
from scrim.spec.columns import LabelledColumn, OrdinalColumn
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import Auto, MechanismSpec, RapPlusPlus
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease, ReleaseSpec
from scrim.spec.schema import Schema
from synth.planning.accounting import FundedPlan, fund
from synth.planning.binning import with_bins, without_unread
from synth.planning.columns import complete, list_queries
from synth.planning.plan import ReleasePlan, refuse_large_blocks
from synth.planning.ranking import Candidate, rank
from synth.planning.spending import Draws, OneShot, Setting

_PUBLIC_UNUSED = "the public data is not used; see the reasons for each mechanism that needs it"


@dataclass(frozen=True)
class Resolved:
    """A release with a named mechanism, and its plan."""

    release: ReleaseSpec
    funded: FundedPlan
    choice: MechanismChoice | None
    """Why this mechanism was chosen; None if the request named it."""

    @property
    def plan(self) -> ReleasePlan:
        """How it spends its budget."""
        return self.funded.plan


def resolve(
    asked: AskedRelease,
    schema: Schema,
    protection: Protection,
    delta: float,
    *,
    public: Schema | None = None,
    memory_bytes: int | None = None,
    left: int | None = None,
) -> Resolved:
    """Return the release as requested, or with the first mechanism of the ranking that can work.

    Its workload then also asks about the columns of `outputs.columns`. `memory_bytes` is a worker's memory
    for a job, `left` what the population has left. Raises SpecError if the named mechanism, or for `auto`
    every mechanism, cannot work.
    """
    schema = with_bins(asked, schema)
    asked = complete(asked, schema)
    auto = asked.mechanism
    if not isinstance(auto, Auto):
        named = _by(auto, asked)
        funded = fund(named, schema, protection, delta, public=public, left=left)
        _refuse_unsuited(named, funded.plan)
        _refuse_too_large(funded.plan, memory_bytes)
        return Resolved(named, funded, None)
    queries = list_queries(asked, schema)
    # What no mechanism can answer is refused here, once, instead of once per mechanism.
    if queries.asked.unbinned is not None:
        raise SpecError(queries.asked.unbinned)
    refuse_large_blocks(schema, queries.asked)
    units = asked.budget.units(delta)
    setting = Setting(schema, protection, units, asked.expected_rows, queries.asked)
    ranking = rank(auto, setting, has_public_data=public is not None)
    refused: list[PassedOverMechanism] = []
    times: list[float] = []
    for position, candidate in enumerate(ranking):
        mechanism = candidate.mechanism
        used = public if mechanism.needs_public_data else None
        try:
            _refuse_known(candidate, asked)
            release = _by(mechanism.model_copy(update={"measure": auto.measure}), asked)
            funded = fund(
                release,
                without_unread(release, schema),
                protection,
                delta,
                public=used,
                queries=queries,
                left=left,
            )
            _refuse_unsuited(release, funded.plan)
            _refuse_slow(funded.plan, auto.seconds)
            _refuse_too_large(funded.plan, memory_bytes)
        except SpecError as error:
            if isinstance(error, TooSlow):
                times.append(error.seconds)
            refused.append(
                PassedOverMechanism(mechanism=mechanism.catalogue_name(), reason=str(error))
            )
            continue
        reasons = [candidate.reason, _in_words(funded.plan, asked.expected_rows)]
        reasons += [_PUBLIC_UNUSED] * (used is not public)
        passed_over = [*refused, *_ranked_lower(ranking[position + 1 :])]
        choice = MechanismChoice(asked=auto, reasons=reasons, passed_over=passed_over)
        return Resolved(release, funded, choice)
    if times:
        raise _nothing_in_time(min(times), auto.seconds)
    raise _nothing_works(refused)


def _by(mechanism: MechanismSpec, asked: AskedRelease) -> ReleaseSpec:
    """Return the requested release with that mechanism."""
    fields = {name: getattr(asked, name) for name in ReleaseSpec.model_fields}
    return ReleaseSpec.model_validate({**fields, "mechanism": mechanism})


def _refuse_known(candidate: Candidate, asked: AskedRelease) -> None:
    """Refuse a candidate for reasons that its own plan does not check."""
    if candidate.refusal is not None:
        raise SpecError(candidate.refusal)
    outputs = asked.outputs
    wants_rows = (
        outputs.rows is not None
        or outputs.certify is not None
        or outputs.draws > 1
        or not outputs.answers
    )
    if wants_rows and not candidate.mechanism.releases_rows:
        raise SpecError("it releases answers only, but rows are requested")


def _refuse_unsuited(release: ReleaseSpec, planned: ReleasePlan) -> None:
    """Refuse what a mechanism can answer, but with errors that are too large to publish."""
    if not isinstance(release.mechanism, RapPlusPlus):
        return
    if all(
        isinstance(column, LabelledColumn | OrdinalColumn) for column in planned.schema.attributes
    ):
        raise SpecError(
            "rap_plus_plus is for numbers: on categories alone its largest error was 8 to 25 times that of "
            "generative_network (docs/mechanisms.md); use generative_network, or auto"
        )


def _refuse_slow(planned: ReleasePlan, seconds: float | None) -> None:
    """Refuse a release that is expected to take longer than that, or whose time is not known."""
    if seconds is None:
        return
    if planned.seconds is None:
        raise SpecError("how long it takes is not known; name it, without mechanism.seconds")
    if planned.seconds > seconds:
        raise TooSlow(planned.seconds, seconds)


class TooSlow(SpecError):
    """A release takes longer than `mechanism.seconds` allows."""

    def __init__(self, seconds: float, allowed: float) -> None:
        super().__init__(
            f"it would take about {seconds:,.1f} processor seconds, more than mechanism.seconds "
            f"({allowed:g})"
        )
        self.seconds = seconds


def _refuse_too_large(planned: ReleasePlan, memory_bytes: int | None) -> None:
    """Refuse a release that will not fit in memory, with the figure and what to change."""
    if memory_bytes is None:
        return
    has = f"workers have {memory_bytes / 2**20:,.0f} MiB for a job"
    peak = planned.peak_bytes
    if planned.redraws is not None and peak is not None and peak > memory_bytes:
        raise SpecError(
            f"the further sets of rows need about {peak / 2**20:,.0f} MiB, because the first model and its "
            f"rows stay in memory, but {has}; leave outputs.draws out, or ask for fewer rows"
        )
    if planned.output_bytes > memory_bytes:
        raise SpecError(
            f"drawing and writing the outputs needs about {planned.output_bytes / 2**20:,.0f} MiB, but "
            f"{has}; ask for fewer rows (outputs.rows), or for fewer queries"
        )
    fit = planned.memory_bytes
    if fit is not None and fit > memory_bytes:
        raise SpecError(
            f"its fit needs about {fit / 2**20:,.0f} MiB, but {has}; use a smaller mechanism (fewer "
            "components, rows or cells), ask about fewer columns, or declare wider bins"
        )


def _in_words(planned: ReleasePlan, rows: int) -> str:
    """Describe how the mechanism uses the budget for the declared number of rows."""
    spending, measured = planned.spending, len(planned.measured)
    if isinstance(spending, OneShot):
        does = f"it measures {measured:,} blocks of queries once"
    elif isinstance(spending, Draws):
        does = f"it draws {spending.per_round:,} queries in each of {len(spending.prices):,} rounds"
    else:
        does = (
            f"it measures {spending.per_round:,} of {measured:,} blocks of queries in each of "
            f"{spending.rounds:,} rounds"
        )
    return f"with this budget and about {rows:,} rows, {does}"


def _ranked_lower(candidates: list[Candidate]) -> list[PassedOverMechanism]:
    return [
        PassedOverMechanism(
            mechanism=candidate.mechanism.catalogue_name(), reason=candidate.drawback
        )
        for candidate in candidates
        if candidate.drawback is not None
    ]


def _nothing_in_time(fastest: float, allowed: float | None) -> SpecError:
    return SpecError(
        f"no mechanism is expected to finish within mechanism.seconds ({allowed:g}); the fastest takes about "
        f"{math.ceil(fastest):,} processor seconds: allow more, ask for fewer tables or columns, or declare "
        "wider bins"
    )


def _nothing_works(refused: list[PassedOverMechanism]) -> SpecError:
    """List every reason once, with the mechanisms it applies to."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for each in refused:
        by_reason[each.reason].append(each.mechanism)
    if len(by_reason) == 1:
        return SpecError(refused[0].reason)
    reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
    return SpecError(f"no mechanism supports this request. {reasons}")
