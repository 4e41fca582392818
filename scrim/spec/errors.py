"""Errors of the public contract.

SpecError (ValueError)        a release that cannot work, with the reason and the fix
├── DomainTooLarge            too many cells for a mechanism that keeps one weight per cell
└── PublicDataTooFar          the screen of a release found that its public rows do not fit
"""


class SpecError(ValueError):
    """The request is well-formed but cannot be carried out."""


class DomainTooLarge(SpecError):
    """The cross product of the columns has more cells than the mechanism can hold."""


class PublicDataTooFar(SpecError):
    """No weights on the public rows come close enough to the private counts."""
