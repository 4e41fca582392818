"""What `auto` says about its choice of a mechanism."""

from scrim.spec.base import Spec
from scrim.spec.mechanism import Auto


class PassedOverMechanism(Spec):
    """A mechanism that was not chosen."""

    mechanism: str
    """Its name."""
    reason: str
    """Why not."""


class MechanismChoice(Spec):
    """Why `auto` chose a mechanism. It follows from what is declared and asked, never from the rows."""

    asked: Auto
    """What was asked for."""
    reasons: list[str]
    """What speaks for the chosen one."""
    passed_over: list[PassedOverMechanism]
    """Others, and what speaks against them."""
