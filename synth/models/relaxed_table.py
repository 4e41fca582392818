"""A table of relaxed rows that gradients can move, and its conversion to rows of declared values."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from synth.missing import numbers_of_kinds
from synth.models.relaxed import RelaxedRows
from synth.models.rows import Rows
from synth.table import store_numbers

INITIALISATION_SEED = 0
"""Seed of the optimiser's start. It is public; privacy does not depend on it."""
MISSING_AT_FIRST = -2.0
"""Initial logit of being missing: about one row in eight."""


class RelaxedTable(nn.Module):
    """Logits of categories, places of numbers between their bounds, logits of missing numbers."""

    def __init__(self, schema: Schema, rows: int) -> None:
        super().__init__()
        self.schema = schema
        random = torch.Generator().manual_seed(INITIALISATION_SEED)
        self.logits, self.places, self.missing = (nn.ParameterList() for _ in range(3))
        for column in schema.attributes:
            if isinstance(column, LabelledColumn):
                self.logits.append(torch.randn(rows, column.size, generator=random))
                continue
            self.places.append(torch.rand(rows, generator=random))
            if column.apart:
                drawn = torch.randn(rows, len(column.apart), generator=random)
                self.missing.append(drawn + MISSING_AT_FIRST - math.log(len(column.apart)))

    def forward(self, temperature: float) -> RelaxedRows:
        """Return the relaxed rows at an inverse temperature."""
        logits, places, missing = iter(self.logits), iter(self.places), iter(self.missing)
        shares: dict[str, torch.Tensor] = {}
        between: dict[str, torch.Tensor] = {}
        absent: dict[str, torch.Tensor] = {}
        for column in self.schema.attributes:
            if isinstance(column, LabelledColumn):
                shares[column.name] = next(logits).softmax(dim=1)
                continue
            between[column.name] = next(places)
            if column.apart:
                absent[column.name] = _shares_of_kinds(next(missing))
        return RelaxedRows(self.schema, shares, between, absent, temperature)

    def constrain(self) -> None:
        """Clip places to the bounds, after a step."""
        with torch.no_grad():
            for place in self.places:
                place.clamp_(0, 1)

    def harden(self, copies: int) -> Rows:
        """Return rows of declared values: `copies` per relaxed row, with categories in their shares."""
        rng = np.random.default_rng(INITIALISATION_SEED)
        with torch.no_grad():
            relaxed = self(1.0)
        numbers: dict[str, NDArray[np.float64]] = {}
        for column in self.schema.attributes:
            name = column.name
            if isinstance(column, LabelledColumn):
                numbers[name] = _draw(relaxed.categories[name], copies, rng)
                continue
            places = relaxed.places[name].detach().double().cpu().numpy().repeat(copies)
            line = column.line
            numbers[name] = line.lower + places * (line.upper - line.lower)
            if column.apart:
                missing = relaxed.missing[name]
                present = 1 - missing.sum(dim=1, keepdim=True)
                kind = _draw(torch.cat([present, missing], dim=1), copies, rng).astype(np.int64)
                is_missing = kind > 0
                numbers[name][is_missing] = numbers_of_kinds(len(column.apart))[
                    kind[is_missing] - 1
                ]
        return Rows(self.schema, store_numbers(self.schema, numbers))


def _shares_of_kinds(logits: torch.Tensor) -> torch.Tensor:
    """The probability of each kind of missing values; the logit of present ones is 0."""
    with_present = torch.cat([torch.zeros_like(logits[:, :1]), logits], dim=1)
    return with_present.softmax(dim=1)[:, 1:]


def _draw(shares: torch.Tensor, copies: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw codes for the copies of each row, systematically and in random order."""
    cumulative = shares.double().cpu().numpy().cumsum(axis=1)
    steps = (np.arange(copies) + rng.random((len(cumulative), 1))) / copies
    points = rng.permuted(steps, axis=1) * cumulative[:, -1:]
    codes = (points[:, :, None] >= cumulative[:, None, :-1]).sum(axis=2)
    return np.asarray(codes.ravel(), np.float64)
