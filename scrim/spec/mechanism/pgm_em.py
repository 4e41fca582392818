"""`pgm_em`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.graphical import GraphicalSpec


class PgmEm(GraphicalSpec):
    """The maximum-entropy graphical model, fitted in rounds to the queries that it answers worst."""

    paper: ClassVar[str] = (
        "McKenna, Sheldon, Miklau (2019); Liu, Tang, Vietri, Wu (2023), section 5.3 (PGM+EM)"
    )

    name: Literal["pgm_em"]
    """Always `pgm_em`."""
