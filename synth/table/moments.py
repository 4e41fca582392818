"""Arrow dates and timestamps as numbers of periods, and back. One cell never changes another."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns.periods import Resolution

Periods = npt.NDArray[np.int64]

# Periods are counted from the start of year 1, numpy's from 1970.
_YEARS, _DAYS = 1969, 719_162
_UNIT = {
    "year": ("Y", _YEARS),
    "month": ("M", _YEARS * 12),
    "day": ("D", _DAYS),
    "hour": ("h", _DAYS * 24),
    "minute": ("m", _DAYS * 24 * 60),
}
_SEVERAL: dict[str, tuple[str, int]] = {"quarter": ("month", 3), "week": ("day", 7)}
"""Resolutions that are several of another one."""


def is_temporal(kind: Any) -> bool:
    """Whether cells of an Arrow type are dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def periods_in(cells: Any, resolution: Resolution) -> tuple[Periods, npt.NDArray[np.bool_]]:
    """The period of each cell, and which cells are missing. Times with a zone are read in UTC."""
    missing = np.asarray(pc.is_null(cells))
    unit = "D" if pa.types.is_date32(cells.type) else getattr(cells.type, "unit", "ms")
    storage = pa.int32() if unit == "D" else pa.int64()
    numbers = np.asarray(pc.fill_null(cells.view(storage), 0)).astype(np.int64)
    moments = numbers.astype(f"datetime64[{unit}]")
    finer, count = _SEVERAL.get(resolution, (resolution, 1))
    name, start = _UNIT[finer]
    return (moments.astype(f"datetime64[{name}]").astype(np.int64) + start) // count, missing


def moments_of(periods: Periods, resolution: Resolution) -> npt.NDArray[np.datetime64]:
    """The first moment of each period."""
    finer, count = _SEVERAL.get(resolution, (resolution, 1))
    name, start = _UNIT[finer]
    return (periods * count - start).astype(f"datetime64[{name}]")
