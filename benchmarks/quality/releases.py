"""Measured releases of tables, with what is needed to forecast them."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from benchmarks.comparison.job import REPLACE_ONE, delta_of, release_of
from benchmarks.comparison.outcomes import Outcome, read
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.quality.fitting import Measured
from scrim.spec.errors import SpecError
from synth.planning.choice import resolve
from synth.planning.expected import Expected, drawn_rows
from synth.planning.forecast import forecast
from synth.planning.knowledge import knowledge_of
from synth.planning.subject import Subject

FITTED_BLOCKS = 10
"""Tables of each release that the fit forecasts, evenly spaced; the others would only take time."""


def measured(comparisons: Iterable[Comparison], results: Iterable[Path]) -> list[Measured]:
    """The releases of these comparisons in the files; the median of repeated ones."""
    outcomes: dict[str, dict[tuple[str, float], list[Outcome]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for path in results:
        for task, outcome in read(path).items():
            outcomes[task.comparison][task.mechanism, task.epsilon].append(outcome)
    found = []
    for comparison in comparisons:
        if comparison.name in outcomes:
            problem = comparison.load()
            for (mechanism, epsilon), runs in outcomes[comparison.name].items():
                each = _measured(comparison, problem, mechanism, epsilon, runs)
                found += [] if each is None else [each]
    return found


def _measured(
    comparison: Comparison,
    problem: Problem,
    mechanism: str,
    epsilon: float,
    runs: list[Outcome],
) -> Measured | None:
    """One release; None if it can no longer be planned."""
    private = problem.private
    parameters = comparison.parameters.get(mechanism, {})
    try:
        asked = release_of(problem, mechanism, parameters, epsilon=epsilon)
        public = (
            problem.public.schema if problem.public and asked.mechanism.needs_public_data else None
        )
        resolved = resolve(asked, private.schema, REPLACE_ONE, delta_of(problem), public=public)
    except SpecError:
        return None
    subject = Subject("rows", private.schema, REPLACE_ONE)
    blocks = [*resolved.plan.asked]
    queries, tables = runs[0].queries, len(blocks)
    delivered = [run.released_rows or run.answers for run in runs]
    mean = median(errors.mean for errors in delivered)
    # Half the summed errors of a table, in the mean over the tables.
    errors = Expected(mean, mean * queries / 2 / tables, median(each.max for each in delivered))
    return Measured(
        table=comparison.name,
        mechanism=resolved.release.mechanism.name,
        epsilon=epsilon,
        known=knowledge_of(resolved, subject),
        schema=private.schema,
        blocks=blocks[:: max(1, tables // FITTED_BLOCKS)],
        queries=queries,
        tables=tables,
        rows=drawn_rows(resolved) if resolved.release.mechanism.releases_rows else 0,
        errors=errors,
        stated=forecast(resolved, subject).expected,
    )
