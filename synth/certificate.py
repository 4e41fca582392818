"""The certificate of a release in plain values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from scrim.spec.budget import rho_of_units
from scrim.spec.columns import NumberColumn
from scrim.spec.population import Protection
from scrim.spec.quality import Quality
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.journal import Journal
from synth.mechanisms.screen import Screened
from synth.planning.accounting import FundedPlan
from synth.planning.plan import ReleasePlan

CERTIFICATE_DELTAS = (1e-6, 1e-9, 1e-12)


def certificate_of(
    release: ReleaseSpec,
    schema: Schema,
    protection: Protection,
    delta: float,
    journal: Journal,
    quality: Quality | None,
    screened: Screened | None,
    notes: Mapping[str, float],
    *,
    funded: FundedPlan,
) -> dict[str, Any]:
    """The certificate in plain values: what was done, under which protection, and at what price.

    The guarantee is that of the reserved amount, which the filter enforces (docs/privacy.md, 2.5), or of
    the planned noise (2.9). The spent amount is stated beside it.
    """
    operations = journal.operations()
    spent = sum(operation.price for operation in operations)
    deltas = sorted({delta, *CERTIFICATE_DELTAS})
    described = json.dumps(schema.model_dump(mode="json"), sort_keys=True).encode()
    return {
        "summary": None if quality is None else quality.summary,
        "software": f"scrim {version('scrim-server')}",
        "protection": protection.model_dump(mode="json", exclude_none=True),
        "accounting": funded.method(delta),
        "rho_reserved": rho_of_units(funded.units),
        "rho_units_reserved": funded.units,
        "epsilon_reserved": {f"{d:g}": funded.epsilon(d) for d in deltas},
        "rho": rho_of_units(spent),
        "rho_units": spent,
        "epsilon": {f"{d:g}": funded.epsilon(d, spent) for d in deltas},
        "release": release.model_dump(mode="json", include=set(ReleaseSpec.model_fields)),
        "schema_sha256": hashlib.sha256(described).hexdigest(),
        "operations": [
            {"kind": o.kind, "asked": o.asked, "scale": o.scale, "rho_units": o.price}
            for o in operations
        ],
        "quality": None if quality is None else quality.model_dump(mode="json"),
        "certified_max_error": None
        if quality is None
        else _max_error(quality, funded.plan, schema),
        "public_data_screen": None if screened is None else asdict(screened),
        "mechanism_report": dict(notes) or None,
        "placed_bins": _placed_bins(funded.plan, schema),
    }


def _placed_bins(planned: ReleasePlan, schema: Schema) -> dict[str, list[float]] | None:
    """The edges of the adaptive bins."""
    if planned.binning is None:
        return None
    columns = {name: schema.attribute(name) for name in planned.binning.columns}
    return {n: list(c.edges) for n, c in columns.items() if isinstance(c, NumberColumn)}


def _max_error(quality: Quality, planned: ReleasePlan, schema: Schema) -> dict[str, float]:
    """The largest error in the form that certificates had before they stated the quality."""
    return {
        "alpha": quality.max_error,
        "confidence": quality.confidence,
        "queries": sum(block.size(schema) for block in planned.asked),
    }
