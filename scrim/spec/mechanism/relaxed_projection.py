"""`relaxed_projection`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.mixture import OneShotMixtureSpec


class RelaxedProjection(OneShotMixtureSpec):
    """A mixture of product distributions fitted to marginals that are measured once."""

    paper: ClassVar[str] = (
        "Aydore et al. (2021); Liu, Tang, Vietri, Wu (2023), appendix B.4 (RP), with softmax as in "
        "Liu, Vietri, Wu (2021), appendix B.2"
    )

    name: Literal["relaxed_projection"]
    """Always `relaxed_projection`."""
