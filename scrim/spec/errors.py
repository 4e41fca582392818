"""Errors of the public contract.

SpecError (ValueError)        a release that cannot work, with the reason and the remedy
├── DomainTooLarge            a mechanism that keeps one weight per cell was given too many cells
└── PublicDataTooFar          the release paid to find out that its public rows do not fit
"""


class SpecError(ValueError):
    """The request is well-formed but cannot be carried out."""


class DomainTooLarge(SpecError):
    """The cross product of the columns has more cells than the mechanism can hold."""


class PublicDataTooFar(SpecError):
    """No weights on the public rows come close enough to the private counts."""
