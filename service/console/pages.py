"""Pages from templates: escaped by default, with the values that the layout needs."""

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units
from scrim.spec.descriptions import describe_item, describe_settings
from service.console.labels import (
    describe_column,
    describe_file,
    describe_workload,
)
from service.data.errors import ProblemDocument

_HERE = Path(__file__).parent
_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
STATIC_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    problem: ProblemDocument | None = None,
    **values: Any,
) -> HTMLResponse:
    """A page, or a part of one."""
    session = getattr(request.state, "session", None)
    content = rendered(
        template,
        visitor=getattr(request.state, "visitor", None),
        token="" if session is None else session.token,
        path=request.url.path,
        problem=problem,
        **values,
    )
    return HTMLResponse(content, status_code=status)


def rendered(
    template: str,
    *,
    path: str,
    visitor: object = None,
    token: str = "",
    problem: ProblemDocument | None = None,
    **values: Any,
) -> str:
    """Render a template with its values; the values that the layout needs have defaults."""
    shared = {"visitor": visitor, "token": token, "path": path, "problem": problem}
    shared |= {"faults": faults_of(problem)}
    return environment().get_template(template).render(shared | values)


def faults_of(problem: ProblemDocument | None) -> dict[str, str]:
    """The error of each field, by its path in the body: `cap.rho`, `columns.0.name`."""
    found = problem.errors if problem is not None else []
    return {".".join(map(str, each.loc[1:])): each.message for each in found}


@cache
def environment() -> Environment:
    """The templates and what they can call."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amount": amount,
        "epsilon": epsilon,
        "rounded_up": rounded_up,
        "moment": moment,
        "day": day,
        "size": size,
        "whole": whole,
        "column": describe_column,
        "file": describe_file,
        "item": describe_item,
        "settings": describe_settings,
        "title": describe_workload,
        "fixed": fixed,
        "marked": marked,
    }
    made.globals["static"] = static_address
    return made


@cache
def static_files() -> Mapping[str, bytes]:
    """Every file that pages refer to, by name."""
    return {path.name: path.read_bytes() for path in sorted((_HERE / "static").iterdir())}


@cache
def static_address(name: str) -> str:
    """The address of a static file; it changes with the file's content."""
    return f"/console/static/{name}?v={hashlib.sha256(static_files()[name]).hexdigest()[:12]}"


def amount(value: float) -> str:
    """Format a number with four significant digits, without an exponent where that is readable."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float) -> str:
    """Format a number with six decimals, so that columns of numbers line up."""
    return f"{value:,.6f}" if value == 0 or value >= 1e-6 else f"{value:.1e}"


def epsilon(rho: float, delta: float, at_most: float = math.inf) -> str:
    """Convert rho to epsilon at `delta`, rounded up; `at_most` is what a release guarantees anyway."""
    units = max(0, round(rho * UNITS_PER_RHO))
    return rounded_up(min(at_most, epsilon_of_units(units, delta)))


def rounded_up(value: float) -> str:
    """Format a number with three significant digits, rounded up."""
    if value == 0:
        return "0"
    digit = 10 ** (math.floor(math.log10(value)) - 2)
    return amount(math.ceil(value / digit - 1e-9) * digit)


def marked(text: str) -> Markup:
    """Convert a text of the API's documentation to HTML: paragraphs, `code` and **strong** words."""
    html = str(escape(text.strip()))
    html = _STRONG.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", html))
    return Markup("".join(f"<p>{each}</p>" for each in html.split("\n\n") if each))


def whole(value: int) -> str:
    """Format an integer with its digits in groups of three."""
    return f"{value:,}"


def size(count: int) -> str:
    """Format a number of bytes with a readable unit."""
    value = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1000:
            return (
                f"{value:.0f} {unit}"
                if unit == "bytes"
                else f"{amount(float(f'{value:.3g}'))} {unit}"
            )
        value /= 1000
    return f"{amount(float(f'{value:.3g}'))} TB"


def moment(at: datetime) -> str:
    """A time, to the minute."""
    return f"{at:%-d %b %Y, %H:%M} UTC"


def day(at: datetime) -> str:
    """A date."""
    return f"{at:%-d %b %Y}"
