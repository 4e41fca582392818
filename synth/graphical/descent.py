"""Minimising a smooth convex function: limited-memory quasi-Newton steps (L-BFGS).

Book: Nocedal, Wright (2006), Numerical Optimization, algorithms 7.4 and 7.5. The first guess of the
curvature is the function's own diagonal instead of a multiple of the identity.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from synth.planning.memory import FIT_STEP_ENTRIES, FIT_STEPS

DECREASE = 1e-4
"""Smallest accepted decrease, as a share of the decrease that the slope predicts (Armijo condition)."""
SHORTEST = 2.0**-30
"""Steps shorter than this part of the full one are not tried."""


Step = tuple[torch.Tensor, torch.Tensor]
"""How far a step moved the place, and how that changed the gradient."""


@dataclass(frozen=True)
class Point:
    """A place, and the function's value and derivatives there."""

    place: torch.Tensor
    value: float
    gradient: torch.Tensor
    diagonal: torch.Tensor
    """The diagonal of the matrix of second derivatives, or an approximation; positive."""


def minimise(
    evaluate: Callable[[torch.Tensor], Point],
    start: torch.Tensor,
    *,
    is_close: Callable[[Point], bool],
    steps: int,
    past: Iterable[Step] = (),
) -> tuple[Point, Sequence[Step]]:
    """Take steps until the point is close enough to the minimum, or the steps are used up.

    `past` are the last steps on a similar function: they are a first estimate of the curvature. Returns
    the point and the last steps.
    """
    point = evaluate(start)
    stored = min(FIT_STEPS, max(1, FIT_STEP_ENTRIES // len(start)))
    known: deque[Step] = deque(past, maxlen=stored)
    for _ in range(steps):
        if is_close(point):
            break
        following = _step(evaluate, point, _direction(point, known))
        if following is None:
            if not known:
                break
            known.clear()  # The estimate was wrong: start again with the diagonal.
            continue
        moved, turned = following.place - point.place, following.gradient - point.gradient
        if moved @ turned > 0:
            known.append((moved, turned))
        point = following
    return point, known


def _direction(point: Point, known: Sequence[Step]) -> torch.Tensor:
    """The two-loop recursion: the gradient times an estimate of the inverse Hessian."""
    direction = -point.gradient
    along = []
    for moved, turned in reversed(known):
        share = (moved @ direction) / (moved @ turned)
        direction = direction - share * turned
        along.append(share)
    scale = 1.0
    if known:
        moved, turned = known[-1]
        scale = float((moved @ turned) / (turned @ (turned / point.diagonal)))
    direction = scale * direction / point.diagonal
    for (moved, turned), share in zip(known, reversed(along), strict=True):
        direction = direction + (share - (turned @ direction) / (moved @ turned)) * moved
    return direction


def _step(
    evaluate: Callable[[torch.Tensor], Point], point: Point, direction: torch.Tensor
) -> Point | None:
    """Halve the step until it decreases the function enough; None if no step does."""
    slope = float(point.gradient @ direction)
    length = 1.0
    while length > SHORTEST:
        found = evaluate(point.place + length * direction)
        if found.value <= point.value + DECREASE * length * slope:
            return found
        length /= 2
    return None
