"""Parametrised mixtures of products, whose weights an optimiser fits.

Each has `forward`, the probabilities of every component (one row per component, the attributes side
by side), `start`, which starts from given one-way shares, and `constrain`, called after each step.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn

from synth.domain import Domain
from synth.models.product import ProductMixture

INITIALISATION_SEED = 0
"""Seed of the optimiser's start, where nothing else is said. It is public; privacy does not depend on it."""
SPREAD = 1.0
"""Spread of the components before a fit; identical components could not model dependence."""

SHORT = 16
"""If attributes have fewer codes than this on average, the softmax runs over the transposed table, in
less than half of the time."""


class Generator(nn.Module):
    """Weights that represent a mixture of products."""

    stiffness: ClassVar[float] = 1.0
    """Share of the measurement noise left unfitted, relative to a network."""
    steps_at_rate: ClassVar[float] = math.inf
    """The step size of a longer fit grows in proportion to its number of steps."""

    def __init__(self, domain: Domain) -> None:
        super().__init__()
        self.domain = domain

    @abstractmethod
    def forward(self) -> torch.Tensor:
        """Return the probabilities of each component, all attributes side by side."""

    @abstractmethod
    def start(self, shares: torch.Tensor) -> None:
        """Start from components whose attributes have approximately these one-way shares.

        Codes without a share (nan) are unchanged.
        """

    def constrain(self) -> None:
        """Project the weights back onto the allowed range, after a step."""

    def fitted(self) -> ProductMixture:
        """Return the mixture for the current weights."""
        return ProductMixture(self.domain, self())

    def released(self) -> ProductMixture:
        """Return the mixture to release: without gradient, in main memory."""
        with torch.no_grad():
            return ProductMixture(self.domain, self().cpu())

    def softmax(self, logits: torch.Tensor) -> torch.Tensor:
        """Apply a softmax to each attribute's block."""
        sizes = list(self.domain.sizes)
        if sum(sizes) < SHORT * len(sizes):
            blocks = torch.split(logits.T.contiguous(), sizes)
            return torch.cat([block.softmax(dim=0) for block in blocks]).T
        blocks = torch.split(logits, sizes, dim=1)
        return torch.cat([block.softmax(dim=1) for block in blocks], dim=1)


class SoftmaxTable(Generator):
    """A table of logits, one row per component (RAP-softmax)."""

    stiffness: ClassVar[float] = 0.9

    def __init__(self, domain: Domain, components: int, seed: int = INITIALISATION_SEED) -> None:
        super().__init__(domain)
        self.logits = nn.Parameter(SPREAD * _normal(components, sum(domain.sizes), seed))

    def forward(self) -> torch.Tensor:
        """The softmax of each row's blocks."""
        return self.softmax(self.logits)

    def start(self, shares: torch.Tensor) -> None:
        """Shift every row by the logarithm of the shares."""
        with torch.no_grad():
            self.logits.add_(shares.log().nan_to_num(0.0))


class ClippedTable(Generator):
    """A table of numbers between 0 and 1 that need not sum to one: the original relaxation (RAP)."""

    def __init__(self, domain: Domain, components: int) -> None:
        super().__init__(domain)
        noise = SPREAD * _normal(components, sum(domain.sizes), INITIALISATION_SEED)
        self.values = nn.Parameter(self.softmax(noise))

    def forward(self) -> torch.Tensor:
        """Return the numbers unchanged."""
        return self.values

    def start(self, shares: torch.Tensor) -> None:
        """Scale every row from the uniform shares to the given ones, and clip it."""
        uniform = torch.cat([torch.full((size,), 1 / size) for size in self.domain.sizes])
        with torch.no_grad():
            self.values.mul_((shares / uniform.to(shares.device)).nan_to_num(1.0))
        self.constrain()

    def constrain(self) -> None:
        """Clip to the relaxed domain."""
        with torch.no_grad():
            self.values.clamp_(0, 1)

    def released(self) -> ProductMixture:
        """Return a nearby distribution: every block is divided by its sum."""
        with torch.no_grad():
            blocks = torch.split(self.values.cpu(), list(self.domain.sizes), dim=1)
            shares = [(block + 1e-9) / (block + 1e-9).sum(1, keepdim=True) for block in blocks]
        return ProductMixture(self.domain, torch.cat(shares, dim=1))


class GeneratorNetwork(Generator):
    """A network that maps fixed Gaussian noise to one product distribution per noise vector (GEM).

    Its layers also pass on their input, so the last layer also receives the noise itself. The
    components share weights, so the network fits noise less than a table of free logits does
    (docs/defaults.md).
    """

    steps_at_rate: ClassVar[float] = 1000

    def __init__(
        self,
        domain: Domain,
        components: int,
        seed: int = INITIALISATION_SEED,
        *,
        latent: int,
        hidden: Sequence[int],
    ) -> None:
        super().__init__(domain)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            widths = [latent]
            for width in hidden:
                widths.append(widths[-1] + width)
            self.layers = nn.ModuleList(
                nn.Linear(given, width) for given, width in zip(widths, hidden, strict=False)
            )
            self.last = nn.Linear(widths[-1], sum(domain.sizes))
        self.register_buffer("noise", _normal(components, latent, seed))

    def forward(self) -> torch.Tensor:
        """The network's output for every noise vector."""
        state = self.get_buffer("noise")
        for layer in self.layers:
            state = torch.cat([layer(state).relu(), state], dim=1)
        return self.softmax(self.last(state))

    def start(self, shares: torch.Tensor) -> None:
        """Put the shares into the last layer's bias."""
        with torch.no_grad():
            self.last.bias.copy_(torch.where(shares.isnan(), self.last.bias, shares.log()))


def _normal(rows: int, columns: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
