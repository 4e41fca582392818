"""Warnings that a finished release adds to those of its preview, from numbers that were paid for."""

from synth.models.released import ReleasedModel
from synth.planning.forecast_warnings import of_counted_rows
from worker.jobs import ReleaseJob


def warnings_of(job: ReleaseJob, model: ReleasedModel) -> list[dict[str, str]]:
    """The warnings of a finished job; a dry run counts no private rows, so it has none."""
    if job.is_dry_run:
        return []
    found = of_counted_rows(
        job.spec, model.estimated_rows, sigma=model.rows_sigma, noun=model.schema.row_noun
    )
    return [vars(each) for each in found]
