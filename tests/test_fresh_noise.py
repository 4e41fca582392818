"""The guard against undeclared noise has no misses and no false alarms."""

import pytest

from tests.fresh_noise import FreshNoise

pytest_plugins = "pytester"

TESTS = """
import numpy as np
import pytest
from synth.privacy import noise
from tests.fresh_noise import announce_noise

def draw():
    return noise.gaussian(1, budget=10**12).release(np.zeros(1, dtype=np.int64))

@pytest.fixture(scope="module")
def drawn():
    return draw()

def test_without_noise(): pass
def test_with_noise_of_its_own(): draw()
def test_with_noise_elsewhere(): announce_noise()
def test_with_the_noise_of_a_fixture(drawn): pass
def test_with_a_fixture_that_drew_before(drawn): pass

@pytest.mark.random
def test_declared(drawn): draw()

@pytest.mark.statistical
def test_declared_as_statistical(): draw()
"""


@pytest.mark.random
def test_undeclared_noise_fails_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    found = pytester.runpytest_inprocess("-p", "no:xdist", plugins=[FreshNoise()])
    found.assert_outcomes(passed=3, failed=4)
    found.stdout.fnmatch_lines(["*This test draws privacy noise, which has no seed*"])
