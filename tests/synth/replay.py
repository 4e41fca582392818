"""Record and replay (arXiv 2602.17454): the same draws on other data, and the remaining differences.

The door's noise is recorded on one table. On a neighbouring table the recorded outcomes come out
again, so both runs have the same history. Then two things must hold. The true values that meet the
noise differ by no more than the operation was priced for. Everything else is the same.
"""

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synth.privacy import noise

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """One operation: what it was priced for, the true values, and what came out."""

    sampler: str
    norm: str
    """`l2_squared` or `linf`."""
    sensitivity: int
    scale: float
    price: int
    true_values: Counts
    outcome: Counts

    @property
    def question(self) -> tuple[Any, ...]:
        """Everything that must be equal in two runs with the same history."""
        return self.sampler, self.norm, self.sensitivity, self.scale, self.price, self.outcome.shape

    def distance(self, other: "Draw") -> int:
        """How far the true values are apart, in the norm that was paid for."""
        if self.true_values.shape != other.true_values.shape:
            raise AssertionError(f"{self.sampler}: {self.true_values.shape} values, then others")
        moved = [
            abs(int(a) - int(b)) for a, b in zip(self.true_values, other.true_values, strict=True)
        ]
        return max(moved, default=0) if self.norm == "linf" else sum(step**2 for step in moved)


class Tape:
    """Records every draw. If recorded draws are given, replays them instead of drawing noise."""

    def __init__(self, played: Sequence[Draw] | None = None) -> None:
        self.draws: list[Draw] = []
        self._played = None if played is None else deque(played)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make every sampler of the door use this tape during the block."""
        with pytest.MonkeyPatch.context() as patch:
            for name in samplers():
                patch.setattr(noise, name, self._taped(name))
            yield

    def _taped(self, name: str) -> Callable[..., noise.Sampler]:
        real = getattr(noise, name)
        norm = next(iter(inspect.signature(real).parameters))

        def taped(sensitivity: int, *arguments: Any, **named: Any) -> noise.Sampler:
            sampler: noise.Sampler = real(sensitivity, *arguments, **named)

            def release(true_values: Counts) -> Counts:
                outcome = sampler.release(true_values) if self._played is None else self._next()
                self.draws.append(
                    Draw(
                        *(name, norm, sensitivity, sampler.scale, sampler.price),
                        true_values.copy(),
                        outcome,
                    )
                )
                return outcome

            return replace(sampler, release=release)

        return taped

    def _next(self) -> Counts:
        assert self._played is not None
        assert self._played, "the neighbour asked for more than was recorded"
        return self._played.popleft().outcome.copy()


def samplers() -> list[str]:
    """Every function with which the door draws noise."""
    return [
        name
        for name, found in vars(noise).items()
        if not name.startswith("_")
        and inspect.isfunction(function := inspect.unwrap(found))
        and function.__annotations__.get("return") is noise.Sampler
    ]


def unpriced(first: Sequence[Draw], second: Sequence[Draw]) -> dict[int, str]:
    """The draws of two runs with the same outcomes that differ by more than was paid for."""
    found = {}
    for position, (a, b) in enumerate(zip(first, second, strict=True)):
        assert a.question == b.question, f"operation {position} is another one on the neighbour"
        if (moved := a.distance(b)) > a.sensitivity:
            found[position] = f"{a.norm} {moved}, paid for {a.sensitivity}"
    return found


@dataclass(frozen=True)
class Seen:
    """One run: its draws and its outputs."""

    draws: list[Draw]
    shown: Any


def watch(run: Callable[[], Any], played: Sequence[Draw] | None = None) -> Seen:
    """Run once; an exception is an output too."""
    tape = Tape(played)
    with tape.running():
        try:
            shown = run()
        except AssertionError:
            raise
        except Exception as error:
            shown = (type(error), str(error))
    return Seen(tape.draws, shown)


def check_replay(on_table: Callable[[], Any], on_neighbour: Callable[[], Any]) -> Seen:
    """Run on a table, then with the same draws on its neighbour; returns the first run."""
    first = watch(on_table)
    second = watch(on_neighbour, first.draws)
    leaks = unpriced(first.draws, second.draws)
    assert not leaks, f"operations that moved too far: {leaks}"
    assert first.shown == second.shown, f"what leaves differs: {first.shown} and {second.shown}"
    return first
