"""Run a release: the only module that accesses private rows through the door."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.basis import MeasuredQueries
from synth.binning import with_placed_bins
from synth.certificate import certificate_of
from synth.certified import certify
from synth.device import choose_device
from synth.door import RowCount
from synth.fitting import Fitting, Notes, Progress, count_rows
from synth.journal import Journal, MemoryJournal, Operation
from synth.measurements import Measurement
from synth.mechanisms.base import Cache
from synth.mechanisms.screen import Screened, screen_public_data
from synth.models.base import Model
from synth.models.error_bars import ErrorBars
from synth.models.noisy_marginals import NoisyMarginals
from synth.models.released import AnswerTable, ReleasedModel
from synth.planning.accounting import fund
from synth.planning.binning import with_bins
from synth.planning.columns import complete
from synth.planning.plan import ReleasePlan, screen_of
from synth.planning.spending import Draws
from synth.privacy.vault import Vault
from synth.queries import compile_blocks
from synth.redraws import Redraws
from synth.rules.reading import following_rules
from synth.table import Chunk, Table, align

__all__ = ["FinishedRelease", "JobProgress", "Journal", "MemoryJournal", "Operation", "run"]


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job: rounds and spent budget; nothing in it depends on the rows."""

    done: int
    total: int
    spent: int
    """Units of 1e-12 rho."""


@dataclass(frozen=True)
class FinishedRelease:
    """The complete output of a release: rows, answers, the model, and the certificate."""

    rows: Chunk | None
    answers: AnswerTable | None
    model: ReleasedModel
    measurements: Sequence[Measurement]
    """The noisy counts that the model was fitted to, in order."""
    certificate: dict[str, Any]
    redraws: Redraws | None = None
    """Further sets of rows, from refitted models, if they are requested."""


def ignore(progress: JobProgress) -> None:
    """Discard progress reports."""


def go_on() -> None:
    """Never stop a job."""


def run(
    release: ReleaseSpec,
    table: Table,
    journal: Journal | None = None,
    progress: Callable[[JobProgress], None] = ignore,
    *,
    protection: Protection,
    delta: float,
    units: int | None = None,
    public: Table | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    cache: Cache | None = None,
    check: Callable[[], None] = go_on,
    columns: Sequence[str] | None = None,
) -> FinishedRelease:
    """Run a release, or resume it from its journal.

    It contains the columns that its queries mention or `outputs.columns` names, and no others; or
    `columns`, if they were already decided.
    `units` are those reserved for it; without them, it takes the most that its budget allows. `public`
    is a public table with its own schema, for mechanisms that use one. `seed` determines the
    random choices after the noise (drawing rows); it does not affect the noise. `device` is the device on
    which models are fitted. `threads` is the largest number of threads; small models use one
    (synth/threads.py). `cache` stores models of public data for later releases. `check` stops the job by
    raising. Unlike `progress`, the number of its calls depends on the rows, so it must not log or record
    anything.
    """
    public_schema = None if public is None else public.schema
    declared = with_bins(release, table.schema, columns)
    release = complete(release, declared)
    funded = fund(
        release,
        declared,
        protection,
        delta,
        public=public_schema,
        units=units,
        columns=columns,
    )
    # Before columns are left out, so that a row is mapped alike in every release of the table.
    table = following_rules(table).project(funded.plan.schema)
    journal = MemoryJournal() if journal is None else journal
    vault = Vault(
        table,
        protection=protection,
        budget=funded.units,
        journal=journal,
        planned=funded.scales,
    )
    rows = count_rows(funded.plan, vault)
    planned = with_placed_bins(funded.plan, vault, rows)
    table.use_bins(planned.schema)
    queries = compile_blocks(planned.asked, planned.schema)
    notes: dict[str, float] = {}
    fitting = Fitting(
        release.mechanism,
        planned,
        queries,
        public=None if public is None else following_rules(align(public, planned.schema)),
        device=choose_device(device),
        cache=cache,
        threads=threads,
    )
    steps = _Steps(1 + release.redraws, progress)
    with fitting.threaded():
        report = steps.of(0, lambda: vault.spent)
        model, screened = _learn(fitting, release, vault, rows, report, check, notes.update)
        drawn, quality = None, None
        if release.synthetic_rows is not None:
            drawn = model.sample(release.synthetic_rows, seed)
            if planned.certification is not None:
                quality = certify(release, vault, planned.certification, model, drawn)
        answers = model.answer_queries(queries) if release.outputs.answers else None
    vault.close()
    return FinishedRelease(
        rows=drawn,
        answers=answers,
        model=model,
        measurements=_fitted(fitting, vault),
        redraws=_redraws(release, fitting, vault, journal, model, steps, seed),
        certificate=certificate_of(
            release,
            planned.schema,
            protection,
            delta,
            journal,
            quality,
            screened,
            notes,
            funded=funded,
        ),
    )


def _learn(
    fitting: Fitting,
    release: ReleaseSpec,
    vault: Vault,
    rows: RowCount,
    progress: Progress,
    check: Callable[[], None],
    note: Notes,
) -> tuple[ReleasedModel, Screened | None]:
    """Screen the public data if requested, then run the mechanism."""
    screen, screened = screen_of(release), None
    if screen is not None:
        assert fitting.public is not None
        screened = screen_public_data(
            vault,
            screen,
            fitting.queries,
            fitting.public,
            rows=rows.value,
            budget=fitting.planned.split.screen,
            check=check,
        )
    model = fitting.fit(vault, rows, progress=progress, note=note)
    measured = MeasuredQueries.of(
        (measurement.query for measurement in _fitted(fitting, vault)),
        public_columns=[] if fitting.public is None else fitting.public.schema.names,
    )
    bars = _error_bars(model, _fitted(fitting, vault), fitting, rows)
    return ReleasedModel(fitting.schema, rows.value, model, measured, bars), screened


def _fitted(fitting: Fitting, vault: Vault) -> list[Measurement]:
    """The measurements that the model is fitted to: all but those that placed bins, which come first."""
    binning = fitting.planned.binning
    return vault.measurements[0 if binning is None else len(binning.blocks) :]


def _error_bars(
    model: Model, measurements: Sequence[Measurement], fitting: Fitting, rows: RowCount
) -> ErrorBars | None:
    """What standard errors follow from, unless the model states its own."""
    if isinstance(model, NoisyMarginals):
        return None
    spending = fitting.planned.spending
    return ErrorBars.of(
        model,
        measurements,
        rows=rows.value,
        rows_sigma=rows.sigma,
        candidates=fitting.candidates,
        drawn_rounds=len(spending.prices) if isinstance(spending, Draws) else 0,
    )


def _redraws(
    release: ReleaseSpec,
    fitting: Fitting,
    vault: Vault,
    journal: Journal,
    model: ReleasedModel,
    steps: "_Steps",
    seed: int,
) -> Redraws | None:
    """The further sets of rows, if they are requested. They are computed later, and without the vault."""
    if not release.redraws or release.synthetic_rows is None:
        return None
    spent = vault.spent
    return Redraws(
        number=release.redraws,
        rows=release.synthetic_rows,
        seed=seed,
        model=model,
        measurements=tuple(_fitted(fitting, vault)),
        operations=_without_bins(journal, fitting.planned),
        protection=vault.protection,
        fitting=fitting,
        progress=lambda number: steps.of(number, lambda: spent),
    )


def _without_bins(journal: Journal, planned: ReleasePlan) -> list[Operation]:
    """The operations of a release, without those that placed bins."""
    operations = list(journal.operations())
    if planned.binning is not None:
        first = [each.kind for each in operations].index("measure")
        del operations[first : first + len(planned.binning.blocks)]
    return operations


@dataclass(frozen=True)
class _Steps:
    """Progress over all fits of a release: the first, and one for each further set of rows."""

    fits: int
    report: Callable[[JobProgress], None]

    def of(self, number: int, spent: Callable[[], int]) -> Progress:
        """The progress reports of a fit, by its number from 0."""
        return lambda done, total: self.report(
            JobProgress(number * total + done, self.fits * total, spent())
        )
