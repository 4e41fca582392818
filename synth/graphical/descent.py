"""Minimising a smooth convex function: limited-memory quasi-Newton steps (L-BFGS).

Book: Nocedal, Wright (2006), Numerical Optimization, algorithms 7.4 and 7.5. The first guess of the
curvature is the function's own diagonal instead of a multiple of the identity.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch

MEMORY = 20
"""Number of past steps that are stored."""
DECREASE = 1e-4
"""Smallest accepted decrease, as a share of the decrease that the slope predicts (Armijo condition)."""
SHORTEST = 2.0**-30


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
) -> Point:
    """Take steps until the point is close enough to the minimum, or the steps are used up."""
    point = evaluate(start)
    pairs: deque[tuple[torch.Tensor, torch.Tensor]] = deque(maxlen=MEMORY)
    for _ in range(steps):
        if is_close(point):
            break
        following = _step(evaluate, point, _direction(point, pairs))
        if following is None:
            break
        moved, turned = following.place - point.place, following.gradient - point.gradient
        if moved @ turned > 0:
            pairs.append((moved, turned))
        point = following
    return point


def _direction(point: Point, pairs: deque[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """The two-loop recursion: the gradient times an estimate of the inverse Hessian."""
    direction = -point.gradient
    along = []
    for moved, turned in reversed(pairs):
        share = (moved @ direction) / (moved @ turned)
        direction = direction - share * turned
        along.append(share)
    scale = 1.0
    if pairs:
        moved, turned = pairs[-1]
        scale = float((moved @ turned) / (turned @ (turned / point.diagonal)))
    direction = scale * direction / point.diagonal
    for (moved, turned), share in zip(pairs, reversed(along), strict=True):
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
