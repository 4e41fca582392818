"""The form for a new dataset: its buttons, its sources of schemas, and the body that it submits."""

from typing import Any
from uuid import UUID

from fastapi import Request, Response

from service.console import schema_form
from service.console.forms import Form, given, repeat_key
from service.console.pages import page
from service.console.pasted import schema_in
from service.console.route import explained
from service.console.schema_rows import BINS, RESOLUTIONS, TYPES
from service.data.context import Context
from service.data.errors import Invalid, ProblemDocument
from service.data.pagination import LARGEST_LIMIT, Paging
from service.datasets import endpoints as datasets
from service.datasets.schemas import DatasetView
from service.keys.schemas import Caller
from service.populations import endpoints as populations
from service.schemas import endpoints as schemas

EDITING = ("add", "remove", "to_json", "to_rows", "update", "paste", "copy")
MOST_SOURCES = 50


def edited(request: Request, caller: Caller, context: Context, form: Form, action: str) -> Response:
    """Return the form after one of its own buttons was pressed."""
    draft, mode, text = schema_form.draft_of(form), form.text("mode"), form.text("schema_json")
    problem = None
    try:
        if action == "to_json":
            mode, text = "json", schema_form.written(schema_form.schema_of(form))
        elif action == "to_rows":
            found = schema_form.draft_from(schema_form.schema_of(form))
            if found is None:
                raise Invalid("this schema cannot be shown as rows; edit it as JSON")
            draft, mode = found, "rows"
        elif action in ("paste", "copy"):
            is_copy = action == "copy"
            schema = (
                copied(form.text("source"), caller, context)
                if is_copy
                else schema_in(form.text("pasted"))
            )
            draft, mode, text = as_draft(schema)
        else:
            draft = schema_form.changed(draft, action)
    except Exception as error:
        problem = explained(request, error)
    return editor(
        request, caller, context, form, draft, problem=problem, mode=mode, schema_json=text
    )


def editor(
    request: Request,
    caller: Caller,
    context: Context,
    form: Form,
    draft: schema_form.Draft,
    *,
    problem: ProblemDocument | None = None,
    mode: str | None = None,
    schema_json: str | None = None,
) -> Response:
    """The form with its fields as they were submitted, and a problem if there is one."""
    return page(
        request,
        "dataset_new.html",
        status=200 if problem is None else problem.status,
        problem=problem,
        form=form,
        draft=draft,
        mode=form.text("mode", "rows") if mode is None else mode,
        schema_json=form.text("schema_json") if schema_json is None else schema_json,
        populations=populations_of(caller, context),
        sources=_sources(caller, context),
        repeat_key=repeat_key(form, problem),
        types=TYPES,
        bins=BINS,
        resolutions=RESOLUTIONS,
        places=draft.places(),
    )


def as_draft(schema: dict[str, Any]) -> tuple[schema_form.Draft, str, str]:
    """A schema as rows if they can hold it, else as JSON: the draft, the mode and the JSON."""
    draft = schema_form.draft_from(schema)
    if draft is None:
        return schema_form.Draft(), "json", schema_form.written(schema)
    return draft, "rows", ""


def copied(source: str, caller: Caller, context: Context) -> dict[str, Any]:
    """The schema of `dataset:ID`, or the saved schema of `schema:ID`."""
    kind, _, text = source.partition(":")
    try:
        found = UUID(text)
    except ValueError:
        raise Invalid("choose a dataset or a saved schema to copy from") from None
    if kind == "dataset":
        return datasets.show(found, caller, context).declared_schema
    return schemas.show(found, caller, context).declared_schema


def again(dataset: DatasetView) -> Form:
    """The form of a dataset that is declared once more, with everything but its schema."""
    fields = given(
        name=dataset.name,
        visibility=dataset.visibility,
        population_id=str(dataset.population_id or ""),
        provenance=dataset.provenance or "",
        levels="two" if "groups" in dataset.declared_schema else "one",
    )
    return Form([*fields.items(), *([("disjoint", "yes")] if dataset.provenance else [])])


def body_of(form: Form) -> dict[str, Any]:
    """Return the submitted form as the body that the API expects."""
    body = given(name=form.text("name"), visibility=form.text("visibility"))
    if form.text("visibility") == "public":
        body |= given(provenance=form.text("provenance"))
        body["disjoint_from_population"] = form.has("disjoint")
    else:
        body |= given(population_id=form.text("population_id"))
    return {**body, "schema": schema_form.schema_of(form)}


def populations_of(caller: Caller, context: Context) -> list[Any]:
    """The populations that a dataset may be about."""
    return populations.list_populations(caller, context, Paging(limit=LARGEST_LIMIT)).items


def _sources(caller: Caller, context: Context) -> list[tuple[str, list[tuple[str, str]]]]:
    """The newest saved schemas and datasets, as options of a choice."""
    paging = Paging(limit=MOST_SOURCES)
    saved = schemas.list_schemas(caller, context, paging).items
    declared = datasets.list_datasets(caller, context, paging).items
    return [
        ("Saved schemas", [(f"schema:{s.id}", f"{s.name}, version {s.version}") for s in saved]),
        ("Datasets", [(f"dataset:{d.id}", f"{d.name} ({d.state})") for d in declared]),
    ]
