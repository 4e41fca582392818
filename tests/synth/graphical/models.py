"""Random small graphical models, and the distributions they stand for, cell by cell."""

import string
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from hypothesis import strategies as st

from synth.domain import Domain
from synth.planning.triangulation import Attributes

MAX_ATTRIBUTES = 6


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    """One to six attributes of one to four codes."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=MAX_ATTRIBUTES))
    return Domain(tuple(string.ascii_lowercase[: len(sizes)]), tuple(sizes))


@st.composite
def sets_of(draw: st.DrawFn, domain: Domain) -> list[Attributes]:
    """Some sets of one to three attributes, each once, in the domain's order."""
    some = st.sets(st.sampled_from(domain.names), min_size=1, max_size=3)
    chosen = draw(st.lists(some, max_size=7))
    return list(dict.fromkeys(domain.project(names).names for names in chosen))


@st.composite
def models(draw: st.DrawFn) -> tuple[Domain, dict[Attributes, torch.Tensor]]:
    """A domain, and potentials over some sets of its attributes."""
    domain = draw(domains())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.0, 1.0, 10.0, 1000.0]))
    sets = draw(sets_of(domain))
    return domain, {
        names: torch.from_numpy(scale * rng.normal(size=domain.project(names).sizes))
        for names in sets
    }


def by_hand(domain: Domain, potentials: Mapping[Attributes, torch.Tensor]) -> torch.Tensor:
    """The whole distribution, one axis for each attribute."""
    logits = torch.zeros(domain.sizes, dtype=torch.float64)
    for names, table in potentials.items():
        logits += table.reshape([s if n in names else 1 for n, s in domain.size_of.items()])
    return logits.flatten().softmax(0).reshape(domain.sizes)


def summed(whole: torch.Tensor, domain: Domain, kept: Sequence[str]) -> torch.Tensor:
    """The cross table of some attributes, in the order in which they are given."""
    others = [axis for axis, name in enumerate(domain.names) if name not in kept]
    table = whole.sum(others) if others else whole
    remaining = domain.project(kept).names
    return table.permute([remaining.index(name) for name in kept])
