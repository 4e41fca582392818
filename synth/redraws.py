"""Further sets of rows whose differences show the error that the privacy noise causes.

Rows drawn twice from one model share its error. So every set comes from a model of its own, fitted to
measurements that are simulated from the released model (synth/simulated_door.py): a parametric bootstrap
(Efron, Tibshirani 1993, chapter 6). The rule that combines their estimates is in
docs/adr/0023-draws-from-refitted-models.md. This module has no access to private rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrim.spec.population import Protection
from synth.fitting import Fitting, Progress, count_rows
from synth.journal import Operation
from synth.measurements import Measurement
from synth.models.fitted import fitted_counts
from synth.models.released import ReleasedModel
from synth.simulated_door import SimulatedDoor
from synth.table import Chunk


@dataclass(frozen=True)
class Redraws:
    """The sets of rows of a release, each computed when it is read, so that one at a time is in memory."""

    number: int
    rows: int
    """The number of rows (groups, if rows are linked) of each set."""
    seed: int
    """Public: it determines the simulated noise and the drawn rows."""
    model: ReleasedModel
    measurements: Sequence[Measurement]
    """Those that the model was fitted to, in order."""
    operations: Sequence[Operation]
    """The journal of the release, without the measurements that placed bins: these are kept."""
    protection: Protection
    fitting: Fitting
    progress: Callable[[int], Progress]
    """The progress reports of each fit, by its number from 1."""

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[Chunk]:
        return map(self._drawn, range(1, self.number + 1))

    def _drawn(self, number: int) -> Chunk:
        """Set `number`: simulate the measurements, fit them, draw rows."""
        random = np.random.default_rng((self.seed, number))
        door = SimulatedDoor(
            self.operations,
            protection=self.protection,
            rows=self.model.estimated_rows,
            counts=self._counts,
            random=random,
        )
        with self.fitting.threaded():
            rows = count_rows(self.fitting.planned, door)
            model = self.fitting.fit(door, rows, progress=self.progress(number))
            door.close()
            refitted = ReleasedModel(self.model.schema, rows.value, model)
            return refitted.sample(self.rows, int(random.integers(2**48)))

    @cached_property
    def _counts(self) -> list[NDArray[np.float64]]:
        """The released model's counts, for each measurement."""
        return fitted_counts(self.model.model, self.model.estimated_rows, self.measurements)
