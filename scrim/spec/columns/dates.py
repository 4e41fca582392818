"""Columns of dates and times, as numbers of periods since the first one."""

from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from scrim.spec.columns.attribute import NumberColumn
from scrim.spec.columns.bins import MAX_EDGES, Bins
from scrim.spec.columns.declared import MAX_CODES, Declared
from scrim.spec.columns.numeric import LARGEST_INTEGER, IntegerColumn
from scrim.spec.columns.periods import DateResolution, Resolution, period_of, start_of
from scrim.spec.columns.time_format import TimeFormat, iso_moment

Moment = Annotated[str, Field(max_length=40)]
Format = Annotated[str, Field(min_length=2, max_length=100)]


class DateBins(Declared):
    """The division of dates into half-open bins [a, b); the last one is closed. Give exactly one field."""

    width: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    """Bins of this number of periods, starting from `lower`; the last one may be narrower."""
    count: Annotated[int, Field(ge=1, le=MAX_CODES)] | None = None
    """Number of bins of about equal width."""
    edges: Annotated[list[Moment], Field(min_length=2, max_length=MAX_EDGES)] | None = None
    """Increasing dates; the first is `lower`, the last is `upper`."""

    def refuse_faults(self) -> None:
        """Require exactly one field."""
        given = [name for name in ("width", "count", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of width, count and edges")


class _TimeColumn(NumberColumn):
    is_date: ClassVar[bool]

    bins: DateBins | None = None
    """Bins in periods, which mechanisms on discrete domains need."""
    nullable: bool = True
    """Whether a missing or unreadable value is kept as missing; if not, it becomes `lower`."""
    lower: Moment
    """The first date in ISO 8601, such as `2015-01-01`; earlier ones become it."""
    upper: Moment
    """The last date in ISO 8601; later ones become it."""
    format: Annotated[Format | None, Field(exclude_if=lambda value: value is None)] = None
    """The format of the cells with the directives of strptime, such as `%d.%m.%Y`; `%q` is the quarter.
    Values are released in it. Default: ISO 8601."""

    if TYPE_CHECKING:
        resolution: Resolution

    def refuse_faults(self) -> None:
        """Require consistent bounds, bins and format."""
        for bound in ("lower", "upper"):
            if iso_moment(getattr(self, bound), self.resolution) is None:
                raise ValueError(
                    f'"{bound}" must be a date in ISO 8601 that determines the {self.resolution}, such '
                    "as 2015-01-31"
                )
        if self.last_period < self.first_period:
            raise ValueError('"lower" must not be later than "upper"')
        self.time_format.refuse_faults()
        if "%y" in (self.format or "") and not (
            self.moment(0).year >= 1969 and self.moment(self.line.upper).year <= 2068
        ):
            raise ValueError('"format" has %y, which means 1969 to 2068; use %Y for other years')
        if self.bins is not None and self.bins.edges is not None:
            self._refuse_edges(self.bins.edges)
        self.refuse_missing()
        self.line.refuse_faults()

    def _refuse_edges(self, edges: list[str]) -> None:
        if any(iso_moment(edge, self.resolution) is None for edge in edges):
            raise ValueError(
                f"the edges must be dates in ISO 8601 that determine the {self.resolution}"
            )
        periods = [self.read(edge) for edge in edges]
        if any(a >= b for a, b in pairwise(periods)):
            raise ValueError(f"edges must increase by at least one {self.resolution}")

    @cached_property
    def first_period(self) -> int:
        """The period of `lower`."""
        return self._period(self.lower)

    @cached_property
    def last_period(self) -> int:
        """The period of `upper`."""
        return self._period(self.upper)

    def _period(self, text: str) -> int:
        moment = iso_moment(text, self.resolution)
        if moment is None:
            raise ValueError(
                f"column {self.name!r} needs dates in ISO 8601 that determine the {self.resolution}, "
                "such as 2015-01-31"
            )
        return period_of(moment, self.resolution)

    @cached_property
    def line(self) -> IntegerColumn:
        """Periods since that of `lower`."""
        # Not validated here: `refuse_faults` does it once.
        return IntegerColumn.model_construct(
            name=self.name,
            type="integer",
            lower=0,
            upper=self.last_period - self.first_period,
            bins=self._line_bins,
            nullable=self.nullable,
            missing=self.missing,
        )

    @property
    def _line_bins(self) -> Bins | None:
        if self.bins is None:
            return None
        edges = self.bins.edges
        return Bins.model_construct(
            width=self.bins.width,
            count=self.bins.count,
            edges=None if edges is None else [self.read(edge) for edge in edges],
        )

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges of the bins, in periods."""
        return self.line.edges

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.line.size

    @property
    def time_format(self) -> TimeFormat:
        """How cells are read and written."""
        return TimeFormat.of(self.format, self.resolution, self.is_date)

    def moment(self, number: float) -> datetime:
        """The start of a period."""
        return start_of(self.first_period + int(number), self.resolution)

    def write(self, number: float) -> str:
        """The start of a period, as in a release."""
        return self.time_format.write(self.moment(number))

    def read(self, value: Any) -> float:
        """The number of periods between `lower` and a date in ISO 8601."""
        return self._period(value if isinstance(value, str) else "") - self.first_period

    def is_value(self, text: str) -> bool:
        """Whether a cell with this text is a date."""
        return self.time_format.read(text) is not None


class DateColumn(_TimeColumn):
    """A column of dates between two declared bounds, both included."""

    is_date: ClassVar[bool] = True

    type: Literal["date"]
    """Always `date`."""
    resolution: DateResolution = "day"
    """What is kept of a date; the first day of that period is released."""


class DatetimeColumn(_TimeColumn):
    """A column of dates with times between two declared bounds, both included. Times with an offset are
    converted to UTC."""

    is_date: ClassVar[bool] = False

    type: Literal["datetime"]
    """Always `datetime`."""
    resolution: Resolution = "minute"
    """What is kept of a time; the first minute of that period is released."""
