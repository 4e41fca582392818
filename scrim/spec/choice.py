"""The explanation of a choice by `auto`."""

from scrim.spec.base import Spec
from scrim.spec.mechanism import Auto


class PassedOverMechanism(Spec):
    """A mechanism that was not chosen."""

    mechanism: str
    """Its name."""
    reason: str
    """Why it was not chosen."""


class MechanismChoice(Spec):
    """Why `auto` chose a mechanism. The choice depends on the schema and the request, never on the rows."""

    asked: Auto
    """The `auto` mechanism as requested."""
    reasons: list[str]
    """Why it was chosen."""
    passed_over: list[PassedOverMechanism]
    """The other mechanisms, and why each was not chosen."""
