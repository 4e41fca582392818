"""The planted bugs still fit the code; `make mutants` tells whether the tests notice them."""

from tests.mutants.__main__ import MUTANTS
from tests.mutants.harness import ROOT


def test_every_mutant_can_be_planted() -> None:
    """Its text is in its file exactly once. Code that changes takes its mutants along."""
    lost = [m.bug for m in MUTANTS if (ROOT / m.file).read_text().count(m.old) != 1]
    assert lost == []
