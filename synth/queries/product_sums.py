"""Sums over a mixture's components of products of its probabilities, with gradients written by hand.

The derivative of the sums is again a few matrix products. Written by hand, they need half of the work
of autograd for pairs, because P^T P is symmetric, and no table of joint probabilities is kept for them.

Codes are rows here and components are columns, because tables of joint probabilities are then products
of long rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import torch
from torch.autograd.function import FunctionCtx, once_differentiable

PANEL = 48
"""Least rows of a panel."""
MAX_PANELS = 8
"""The upper half of P^T P is computed in up to 8 panels of at least 48 rows, each from its diagonal on.
Narrower panels make slower matrix products than they save."""


@dataclass(frozen=True)
class PairSums:
    """The sums of all pairs of some codes, and those of the codes alone."""

    runs: tuple[slice, ...]
    """The codes, as runs of adjacent rows."""

    @cached_property
    def width(self) -> int:
        """The number of codes."""
        return sum(run.stop - run.start for run in self.runs)

    @cached_property
    def edges(self) -> list[int]:
        """The first row of each panel, and the end of the last."""
        panels = max(1, min(MAX_PANELS, self.width // PANEL))
        return [round(self.width * i / panels) for i in range(panels + 1)]

    @property
    def size(self) -> int:
        """The number of sums: of the panels one after another, then of the codes alone."""
        return self.width + sum((b - a) * (self.width - a) for a, b in pairwise(self.edges))

    def write_sums(self, codes: torch.Tensor, to: torch.Tensor, *, limit: int) -> None:
        """Write all sums. No table is built, so no limit applies."""
        table = _rows(codes, self.runs)
        start = 0
        for a, b in pairwise(self.edges):
            panel = to[start : start + (b - a) * (self.width - a)].view(b - a, -1)
            torch.mm(table[a:b], table[a:].T, out=panel)
            start += panel.numel()
        torch.sum(table, 1, out=to[start:])

    def add_gradient(
        self, codes: torch.Tensor, given: torch.Tensor, to: torch.Tensor, *, limit: int
    ) -> None:
        """Add the gradient of the codes, given that of the sums."""
        table = _rows(codes, self.runs)
        # Both halves: a sum of products depends on either factor.
        both = given.new_zeros(self.width, self.width)
        start = 0
        for a, b in pairwise(self.edges):
            panel = given[start : start + (b - a) * (self.width - a)].view(b - a, -1)
            both[a:b, a:] += panel
            both[a:, a:b] += panel.T
            start += panel.numel()
        alone = given[start:, None]
        first = 0
        for run in self.runs:
            rows = slice(first, first + run.stop - run.start)
            to[run].addmm_(both[rows], table).add_(alone[rows])
            first = rows.stop


@dataclass(frozen=True)
class JointSums:
    """The sums of all combinations of codes of some attributes with each of some other codes."""

    leading: tuple[slice, ...]
    """The codes of each attribute."""
    following: tuple[slice, ...]
    """The other codes, as runs of adjacent rows."""

    @cached_property
    def height(self) -> int:
        """The number of combinations."""
        return math.prod(rows.stop - rows.start for rows in self.leading)

    @cached_property
    def width(self) -> int:
        """The number of other codes."""
        return sum(run.stop - run.start for run in self.following)

    @property
    def size(self) -> int:
        """The number of sums: a row for each combination."""
        return self.height * self.width

    def write_sums(self, codes: torch.Tensor, to: torch.Tensor, *, limit: int) -> None:
        """Write all sums; no table has more entries than the limit, or one component."""
        total = to.view(self.height, self.width).zero_()
        for batch in torch.split(codes, max(1, limit // self.height), dim=1):
            total.addmm_(self._tables(batch)[-1], _rows(batch, self.following).T)

    def add_gradient(
        self, codes: torch.Tensor, given: torch.Tensor, to: torch.Tensor, *, limit: int
    ) -> None:
        """Add the gradient of the codes, given that of the sums."""
        matrix = given.view(self.height, self.width)
        at_once = max(1, limit // self.height)
        for batch, into in zip(
            torch.split(codes, at_once, dim=1), torch.split(to, at_once, dim=1), strict=True
        ):
            tables = self._tables(batch)
            first = 0
            for run in self.following:
                columns = slice(first, first + run.stop - run.start)
                into[run].addmm_(matrix[:, columns].T, tables[-1])
                first = columns.stop
            self._unfold(matrix @ _rows(batch, self.following), tables, batch, into)

    def _tables(self, codes: torch.Tensor) -> list[torch.Tensor]:
        """The joint probabilities of none, the first, the first two ... attributes in each component."""
        tables = [codes.new_ones(1, codes.shape[1])]
        for rows in self.leading:
            shared = tables[-1]
            joint = (
                codes[rows] if len(tables) == 1 else (shared[:, None] * codes[rows]).flatten(0, 1)
            )
            tables.append(joint)
        return tables

    def _unfold(
        self,
        given: torch.Tensor,
        tables: Sequence[torch.Tensor],
        codes: torch.Tensor,
        to: torch.Tensor,
    ) -> None:
        """Add the gradient of each attribute, given that of the table of all of them."""
        for rows, before in zip(self.leading[:0:-1], tables[-2::-1], strict=False):
            cells = given.view(len(before), -1, given.shape[1])
            to[rows] += (cells * before[:, None]).sum(0)
            given = (cells * codes[rows]).sum(1)
        if self.leading:
            to[self.leading[0]] += given


Sums = PairSums | JointSums


def all_sums(probabilities: torch.Tensor, parts: Sequence[Sums], *, limit: int) -> torch.Tensor:
    """The sums of all parts, one after another, differentiably; `limit` bounds the entries of a table."""
    return cast(torch.Tensor, cast(Any, _AllSums.apply)(probabilities, tuple(parts), limit))


class _AllSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, probabilities: torch.Tensor, parts: tuple[Sums, ...], limit: int
    ) -> torch.Tensor:
        ctx.save_for_backward(probabilities)
        ctx.parts, ctx.limit = parts, limit  # type: ignore[attr-defined]
        codes = _as_rows(probabilities, parts)
        # All sums have their place from the start: if they were allocated between the large tables, glibc
        # could not join the freed tables, and memory would grow with each of them.
        sizes = [part.size for part in parts]
        sums = codes.new_empty(sum(sizes))
        for part, of_part in zip(parts, sums.split(sizes), strict=True):
            part.write_sums(codes, of_part, limit=limit)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (probabilities,) = ctx.saved_tensors
        codes = _as_rows(probabilities, ctx.parts)
        gradient = torch.zeros_like(codes)
        for part, of_part in zip(
            ctx.parts, given.split([part.size for part in ctx.parts]), strict=True
        ):
            part.add_gradient(codes, of_part, gradient, limit=ctx.limit)
        return gradient.T, None, None


def _as_rows(probabilities: torch.Tensor, parts: Sequence[Sums]) -> torch.Tensor:
    """Codes as rows, adjacent in memory where tables of joint probabilities are built from them."""
    has_tables = any(isinstance(part, JointSums) and len(part.leading) > 1 for part in parts)
    return probabilities.T.contiguous() if has_tables else probabilities.T


def _rows(codes: torch.Tensor, runs: Sequence[slice]) -> torch.Tensor:
    """Some codes; a view if they are adjacent."""
    pieces = [codes[run] for run in runs]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)
