"""How long a release takes, in seconds of one processor, from public numbers alone.

Only of mixtures that are fitted once, because they take a number of steps that can be forecast. Each step
answers all measured counts with every product of the mixture. The constants were measured on ADULT, ADULT
reduced and LOANS at epsilon 0.1, 1 and 10. On these and ACS Pennsylvania forecasts were within a factor of
2; for tables of logits on ADULT reduced, whose fits stop early, up to 4 times too long.
"""

from collections.abc import Sequence

from scrim.spec.mechanism import NetworkSpec, OneShotMixtureSpec
from scrim.spec.release import ReleaseSpec
from scrim.spec.workload import Block
from synth.planning.memory import network_weights
from synth.planning.mixture import members_of
from synth.planning.one_shot import steps_for
from synth.planning.scale import gaussian_scale
from synth.planning.spending import OneShot, Plan, Setting

SQUARED_DEPENDENCE = 0.008
"""The sum of the squared differences between a table of shares and that of independent columns."""
SECONDS_OF_STEP, SECONDS_PER_BLOCK = 1.1e-3, 1.8e-5
"""Seconds of one step of a fit, and of each measured block in it."""
SECONDS_PER_WEIGHT, SECONDS_PER_COUNT = 1e-10, 9e-11
"""Seconds of one step for each product of the mixture: per weight of a network, and per measured count."""
SECONDS_AROUND, SECONDS_PER_CELL = 0.3, 1.2e-5
"""Seconds of counting, drawing rows and answering: fixed, and per cell of the asked tables."""


def expected_seconds(
    release: ReleaseSpec, measured: Sequence[Block], spending: Plan, setting: Setting
) -> float | None:
    """The expected processor seconds of a release with all its sets of rows; None if they are not known."""
    mechanism = release.mechanism
    if not isinstance(mechanism, OneShotMixtureSpec) or not isinstance(spending, OneShot):
        return None
    sizes = [block.size(setting.schema) for block in measured]
    steps = steps_for(_excess(measured, spending, setting), mechanism.steps)
    codes = sum(setting.schema.sizes.values())
    weights = 0
    if isinstance(mechanism, NetworkSpec):
        weights = network_weights(latent=mechanism.latent, hidden=mechanism.hidden, outputs=codes)
    per_product = SECONDS_PER_WEIGHT * weights + SECONDS_PER_COUNT * sum(sizes)
    step = SECONDS_OF_STEP + SECONDS_PER_BLOCK * len(sizes) + mechanism.components * per_product
    asked = sum(block.size(setting.schema) for block in setting.asked)
    fits = members_of(mechanism, sum(sizes)) * steps * step
    return (1 + release.redraws) * (fits + SECONDS_AROUND + SECONDS_PER_CELL * asked)


def _excess(measured: Sequence[Block], spending: OneShot, setting: Setting) -> float:
    """How far the counts stand out from those of independent columns, in units of their noise squared."""
    apart = 0.0
    for block, units in zip(measured, spending.measure, strict=True):
        l2_squared = block.sensitivity(setting.schema, setting.protection).l2_squared
        if len(block.attributes) > 1 and l2_squared:
            apart += (setting.expected_rows / gaussian_scale(l2_squared, units)) ** 2
    return SQUARED_DEPENDENCE * apart
