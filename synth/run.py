"""Run a release: the only module that accesses private rows through the door."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from scrim.spec.budget import rho_of_units
from scrim.spec.population import Protection
from scrim.spec.quality import Quality
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.basis import MeasuredQueries
from synth.certified import certify
from synth.device import choose_device
from synth.door import RowCount
from synth.fitting import Fitting, Notes, Progress
from synth.journal import Journal, MemoryJournal, Operation
from synth.measurements import Measurement
from synth.mechanisms.base import Cache
from synth.mechanisms.screen import Screened, screen_public_data
from synth.models.base import Model
from synth.models.error_bars import ErrorBars
from synth.models.noisy_marginals import NoisyMarginals
from synth.models.released import AnswerTable, ReleasedModel
from synth.planning.accounting import FundedPlan, fund
from synth.planning.columns import complete
from synth.planning.plan import ReleasePlan, screen_of
from synth.planning.spending import Draws
from synth.privacy.vault import Vault
from synth.queries import compile_blocks
from synth.redraws import Redraws
from synth.rules.reading import following_rules
from synth.table import Chunk, Table, align

__all__ = ["FinishedRelease", "JobProgress", "Journal", "MemoryJournal", "Operation", "run"]

CERTIFICATE_DELTAS = (1e-6, 1e-9, 1e-12)


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
    release = complete(release, table.schema)
    funded = fund(
        release,
        table.schema,
        protection,
        delta,
        public=public_schema,
        units=units,
        columns=columns,
    )
    planned = funded.plan
    # Before columns are left out, so that a row is mapped alike in every release of the table.
    table = following_rules(table).project(planned.schema)
    aligned = None if public is None else following_rules(align(public, table.schema))
    journal = MemoryJournal() if journal is None else journal
    vault = Vault(
        table,
        protection=protection,
        budget=funded.units,
        journal=journal,
        planned=funded.scales,
    )
    queries = compile_blocks(planned.asked, table.schema)
    notes: dict[str, float] = {}
    fitting = Fitting(
        release.mechanism,
        planned,
        queries,
        public=aligned,
        device=choose_device(device),
        cache=cache,
        threads=threads,
    )
    steps = _Steps(1 + release.redraws, progress)
    with fitting.threaded():
        report = steps.of(0, lambda: vault.spent)
        model, screened = _learn(fitting, release, vault, report, check, notes.update)
        rows, quality = None, None
        if release.synthetic_rows is not None:
            rows = model.sample(release.synthetic_rows, seed)
            if planned.certification is not None:
                quality = certify(release, vault, planned.certification, model, rows)
        answers = model.answer_queries(queries) if release.outputs.answers else None
    vault.close()
    return FinishedRelease(
        rows=rows,
        answers=answers,
        model=model,
        measurements=vault.measurements,
        redraws=_redraws(release, fitting, vault, journal, model, steps, seed),
        certificate=_certificate(
            release,
            table.schema,
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
    progress: Progress,
    check: Callable[[], None],
    note: Notes,
) -> tuple[ReleasedModel, Screened | None]:
    """Count the rows or groups, screen the public data if requested, then run the mechanism."""
    rows = fitting.count(vault)
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
        (measurement.query for measurement in vault.measurements),
        public_columns=[] if fitting.public is None else fitting.public.schema.names,
    )
    bars = _error_bars(model, vault.measurements, fitting, rows)
    return ReleasedModel(fitting.schema, rows.value, model, measured, bars), screened


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
        measurements=tuple(vault.measurements),
        operations=journal.operations(),
        protection=vault.protection,
        fitting=fitting,
        progress=lambda number: steps.of(number, lambda: spent),
    )


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


def _certificate(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    delta: float,
    journal: Journal,
    quality: Quality | None,
    screened: Screened | None,
    notes: Mapping[str, float],
    *,
    funded: FundedPlan,
) -> dict[str, Any]:
    """The certificate in plain values: what was done, under which protection, and at what price.

    The guarantee is that of the reserved amount, which the filter enforces (docs/privacy.md, 2.5), or of
    the planned noise (2.9). The spent amount is stated beside it.
    """
    operations = journal.operations()
    spent = sum(operation.price for operation in operations)
    deltas = sorted({delta, *CERTIFICATE_DELTAS})
    described = json.dumps(schema.model_dump(mode="json"), sort_keys=True).encode()
    return {
        "summary": None if quality is None else quality.summary,
        "software": f"scrim {version('scrim-server')}",
        "protection": protection.model_dump(mode="json", exclude_none=True),
        "accounting": funded.method(delta),
        "rho_reserved": rho_of_units(funded.units),
        "rho_units_reserved": funded.units,
        "epsilon_reserved": {f"{d:g}": funded.epsilon(d) for d in deltas},
        "rho": rho_of_units(spent),
        "rho_units": spent,
        "epsilon": {f"{d:g}": funded.epsilon(d, spent) for d in deltas},
        "release": release.model_dump(mode="json", include=set(ReleaseSpec.model_fields)),
        "schema_sha256": hashlib.sha256(described).hexdigest(),
        "operations": [
            {"kind": o.kind, "asked": o.asked, "scale": o.scale, "rho_units": o.price}
            for o in operations
        ],
        "quality": None if quality is None else quality.model_dump(mode="json"),
        "certified_max_error": None
        if quality is None
        else _max_error(quality, funded.plan, schema),
        "public_data_screen": None if screened is None else asdict(screened),
        "mechanism_report": dict(notes) or None,
    }


def _max_error(quality: Quality, planned: ReleasePlan, schema: Schema) -> dict[str, float]:
    """The largest error in the form that certificates had before they stated the quality."""
    return {
        "alpha": quality.max_error,
        "confidence": quality.confidence,
        "queries": sum(block.size(schema) for block in planned.asked),
    }
