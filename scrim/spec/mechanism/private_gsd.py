"""`private_gsd`: its parameters."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.rows import RowsSpec, SearchedRows


class PrivateGsd(RowsSpec):
    """A genetic search for rows whose counts are close to the measured ones."""

    paper: ClassVar[str] = (
        "Liu, Tang, Vietri, Wu (2023), section 4, algorithms 1 and 2 (Private-GSD)"
    )

    name: Literal["private_gsd"]
    """Always `private_gsd`."""
    mode: Literal["adaptive", "one_shot"] | None = None
    """Whether to measure in rounds what the rows answer worst, or everything once. Default: once, unless
    the candidates include single queries, most of which are not worth measuring."""
    rows: SearchedRows = 2000
    """Number of rows of the search (the paper's N'). A release with another number of rows repeats them
    evenly."""
    mutations: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Candidates of a generation in which one cell gets a random value (P_mut)."""
    crossovers: Annotated[int, Field(ge=0, le=10_000)] = 50
    """Candidates of a generation in which one cell gets the value of another row (P_cross)."""
    elites: Annotated[int, Field(ge=1, le=100)] = 2
    """Number of the best tables that survive a generation (E)."""
    generations: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    """Upper bound on the generations (per round, if there are rounds); the search stops earlier when it
    no longer improves."""
