"""Every block of code in the documents is carried out, or checked in a way that is named here.

`sh` and `python` blocks run, page by page and in order, against one real stack. `json` blocks are
examples of a model. `text` is for output and formulas. Any other kind of block fails.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from service.errors import Problem
from synth.spec.release import ReleaseRequest
from synth.spec.schema import Schema
from synth.spec.two_level import TwoLevelSchema
from tests.documents import DOCUMENTS, NOTEBOOKS, ROOT, Block, blocks, cells, name_of
from tests.e2e.pages import EXECUTED, Ran, Shell, run_python
from tests.e2e.stand_ins import CHECKS, Call, check
from tests.e2e.support import environment

pytestmark = pytest.mark.e2e

EXAMPLES: tuple[type[BaseModel], ...] = (Schema, TwoLevelSchema, ReleaseRequest, Problem)
"""What a `json` block may be an example of, beside a file of benchmarks that counts codes."""
TYPED = re.compile(
    r"\s*(?:\$|(?:\.venv/bin/)?(?:cat|cd|createdb|curl|docker|export|git|make|openssl|pg_\w+|pip|psql"
    r"|pytest|python3?|scrim|sudo)) +[\w.'\"$-]*[a-z]",
)
"""The beginning of a line that somebody would type, unlike a figure that is called by such a name."""

Page = Callable[[Path], Ran]

pages = [d for d in (*DOCUMENTS, *NOTEBOOKS) if any(b.language in EXECUTED for b in blocks(d))]


@pytest.mark.parametrize("document", pages, ids=name_of)
def test_every_page_can_be_carried_out(document: Path, page: Page) -> None:
    for call in page(document).calls:
        check(call)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_other_block_is_what_it_says(document: Path) -> None:
    for block in blocks(document):
        if block.language not in EXECUTED:
            assert block.language in OTHERS, f"line {block.line}: what kind of block is this?"
            OTHERS[block.language](block)


def check_json(block: Block) -> None:
    content = json.loads(block.text)
    assert is_domain(content) or any(is_example(content, model) for model in EXAMPLES), block.line


def is_domain(content: Any) -> bool:
    """Whether this says for each column of a benchmark how many codes it has."""
    return is_example(content, dict[str, int])


def is_example(content: Any, model: Any) -> bool:
    try:
        TypeAdapter(model).validate_json(json.dumps(content))
    except ValidationError:
        return False
    return True


def check_text(block: Block) -> None:
    """No command hides among what is only to be read."""
    assert [line for line in block.text.splitlines() if TYPED.match(line)] == []


OTHERS: dict[str, Callable[[Block], None]] = {"json": check_json, "text": check_text}


def test_stand_ins_are_used(page: Page) -> None:
    """What no page calls any more needs no stand-in."""
    used = {call.program for document in pages for call in page(document).calls}
    # The environment's own Python stands in for what `make` would start.
    assert used | {".venv/bin/python"} == set(CHECKS)


@pytest.mark.parametrize(
    "call",
    [
        ("stand-ins/make", "bench-everything"),
        ("stand-ins/make", "bench-households", "SETS=nobody"),
        ("stand-ins/make", "bench-households", "EPSILON=1"),
        ("stand-ins/docker", "compose", "up", "--scale", "workers=2"),
        ("stand-ins/docker", "compose", "run", "--rm", "service", "python", "-m", "service", "key"),
        ("stand-ins/python", "-m", "worker", "--queue", "slow"),
        (".venv/bin/pytest", "tests/nowhere"),
        (".venv/bin/scrim", "up", "--folder", "data"),
    ],
    ids=" ".join,
)
def test_a_call_that_would_fail_is_noticed(call: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(Call(call[0], call[1:], tmp_path))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", "make test\n"),
        ("text", "first\n  $ scrim release list\n"),
        ("json", '{"columns": []}\n'),
        ("json", '{"workload": [], "mechanism": {"name": "mwem"}}\n'),
    ],
)
def test_a_block_that_is_not_what_it_says_is_noticed(kind: str, text: str) -> None:
    with pytest.raises(AssertionError):
        OTHERS[kind](Block(kind, text, 1))


@pytest.mark.parametrize("text", ["false", "exit 3", "true  # fails", "cat nothing | cat nowhere"])
def test_a_command_that_fails_is_noticed(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    with pytest.raises(AssertionError, match="line 7"), Shell(page, environment()) as shell:
        shell.run(f"echo first\n{text}\n", "line 7")


def test_the_readme_shows_a_release(page: Page) -> None:
    header, *rows = (page(ROOT / "README.md").folder / "synthetic.csv").read_text().splitlines()
    assert header == "sex,age"
    assert len(rows) == 1000


def test_the_notebook_takes_the_service_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIM_URL", "http://scrim.example")
    monkeypatch.setenv("SCRIM_KEY", "a key")
    (notebook,) = NOTEBOOKS
    first, *_, last = blocks(notebook)
    namespace: dict[str, object] = {}
    run_python(first.text, namespace, notebook, line=1)
    assert (namespace["url"], namespace["key"]) == ("http://scrim.example", "a key")
    run_python(last.text, namespace, notebook, line=1)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
