"""A request for a release as a form, and back."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from scrim.spec.catalogue import CatalogueEntry, catalogue
from scrim.spec.preview import PreviewRequest
from scrim.spec.release import ReleaseRequest
from scrim.spec.workload import WorkloadItem
from service.console.fields import Field, fields_of, filled, values_of
from service.console.forms import Form, given, number, place_of

RELEASE: TypeAdapter[ReleaseRequest] = TypeAdapter(ReleaseRequest)
PREVIEW: TypeAdapter[PreviewRequest] = TypeAdapter(PreviewRequest)
FORMATS = ("csv", "parquet")
CHART_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Epsilons of the chart in the preview."""
MOST_ITEMS = 100
"""As in the contract (scrim/spec/workload/__init__.py::MAX_ITEMS)."""
_DEFAULTS = (
    ("w0.type", "marginals"),
    ("w0.k", "2"),
    ("mechanism", "auto"),
    ("budget_kind", "epsilon"),
    ("budget", "1"),
    ("formats", "csv"),
    ("answers", "yes"),
)


@dataclass(frozen=True)
class ItemRow:
    """An item of the workload as submitted."""

    type: str
    help: str
    fields: list[Field]


@dataclass(frozen=True)
class FilledMechanism:
    """The chosen mechanism and its parameters as submitted."""

    entry: CatalogueEntry
    fields: list[Field]


def new_form(dataset_id: str) -> Form:
    """The initial form of a new release."""
    return Form([("dataset_id", dataset_id), *_DEFAULTS])


def item_types() -> tuple[str, ...]:
    """The types of workload items."""
    return tuple(_item_schemas())


@cache
def entries() -> dict[str, CatalogueEntry]:
    """The catalogue, by name."""
    return {entry.name: entry for entry in catalogue()}


def items_of(form: Form) -> list[ItemRow]:
    """The workload of a form."""
    return [_item(form, number) for number in form.numbered("w")[:MOST_ITEMS]]


def changed(form: Form, action: str) -> Form:
    """Return the form after a button added or removed an item of the workload."""
    rows = items_of(form)
    verb, _, place = action.partition(":")
    if verb == "remove" and len(rows) > 1:
        removed = place_of(place)
        rows = [row for number, row in enumerate(rows) if number != removed]
    pairs = [(f"w{number}.type", row.type) for number, row in enumerate(rows)]
    pairs += [
        (f"w{number}.{field.name}", field.value)
        for number, row in enumerate(rows)
        for field in row.fields
    ]
    if verb == "add" and len(rows) < MOST_ITEMS:
        pairs += [(f"w{len(rows)}.type", "marginals"), (f"w{len(rows)}.k", "1")]
    return form.replacing("w", pairs)


def mechanism_of(form: Form) -> FilledMechanism:
    """The chosen mechanism, or the first one."""
    known = entries()
    entry = known.get(form.text("mechanism")) or next(iter(known.values()))
    fields = fields_of(entry.parameters, without=["name"])
    return FilledMechanism(entry, filled(fields, form, "m."))


def body_of(form: Form) -> dict[str, Any]:
    """Return the submitted form as the body that the API expects."""
    mechanism = mechanism_of(form)
    kind = "rho" if form.text("budget_kind") == "rho" else "epsilon"
    body: dict[str, Any] = {
        "dataset_id": form.text("dataset_id"),
        "workload": [{"type": row.type, **values_of(row.fields)} for row in items_of(form)],
        "mechanism": {"name": mechanism.entry.name, **values_of(mechanism.fields)},
        "budget": given(**{kind: number(form.text("budget"))}),
        "outputs": _outputs_of(form, mechanism.entry),
    }
    if mechanism.entry.takes_public_data:
        body |= given(public_dataset_id=form.text("public_dataset_id"))
    body |= given(
        expected_rows=number(form.text("expected_rows")),
        table=form.text("table"),
        publish=form.has("publish"),
        dry_run=form.has("dry_run"),
    )
    return {name: value for name, value in body.items() if value is not False}


def preview_of(form: Form) -> dict[str, Any]:
    """The body of the preview: the release, budgets for the chart, and the target accuracy."""
    wanted = given(mean_total_variation=number(form.text("wanted")))
    body = {**body_of(form), "budgets": [{"epsilon": epsilon} for epsilon in CHART_EPSILONS]}
    return {**body, "target": wanted} if wanted else body


def _outputs_of(form: Form, entry: CatalogueEntry) -> dict[str, Any]:
    named = [name.strip() for name in form.text("columns").split(",")]
    outputs: dict[str, Any] = {
        "formats": form.all("formats"),
        # A mechanism without rows always releases answers.
        "answers": form.has("answers") or not entry.releases_rows,
        **given(columns=[name for name in named if name] or None),
    }
    if not entry.releases_rows:
        return outputs
    outputs |= given(rows=number(form.text("rows")), draws=number(form.text("draws")))
    if form.has("certify"):
        outputs["certify"] = given(
            share=number(form.text("share")), confidence=number(form.text("confidence"))
        )
    return outputs


def _item(form: Form, place: int) -> ItemRow:
    schemas = _item_schemas()
    kind = form.text(f"w{place}.type")
    kind = kind if kind in schemas else "marginals"
    described = str(schemas[kind].get("description", "")).partition("\n")[0]
    return ItemRow(kind, described, filled(fields_of(schemas[kind]), form, f"w{place}."))


@cache
def _item_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each type of item."""
    found = TypeAdapter(WorkloadItem).json_schema()["$defs"].values()
    return {
        each["properties"]["type"]["const"]: each
        for each in found
        if "const" in each.get("properties", {}).get("type", {})
    }
