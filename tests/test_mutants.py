"""The planted bugs still fit the code; `make mutants` checks that the tests detect them."""

import subprocess
import sys

from tests.mutants.__main__ import MUTANTS
from tests.mutants.harness import ROOT


def test_every_mutant_can_be_planted() -> None:
    """The text occurs in the file exactly once. When code changes, update its mutants."""
    lost = [m.bug for m in MUTANTS if (ROOT / m.file).read_text().count(m.old) != 1]
    assert lost == []


def test_every_mutant_uses_names_that_exist() -> None:
    """A mutant that fails because of an unknown name says nothing about the tests."""
    unknown = {}
    for mutant in MUTANTS:
        if mutant.file.endswith(".py"):
            planted = (ROOT / mutant.file).read_text().replace(mutant.old, mutant.new)
            checked = subprocess.run(
                [sys.executable, "-m", "ruff", "check", "--select", "F821", "--quiet", "-"],
                input=planted,
                capture_output=True,
                text=True,
                check=False,
            )
            if checked.returncode:
                unknown[mutant.bug] = checked.stdout
    assert unknown == {}
