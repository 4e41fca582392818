"""Every block of code in the documents is run, or checked in one of these ways.

`sh` and `python` blocks run, page by page and in order, against one real stack. `json` blocks are
examples of a model, `py` blocks files of the project. `text` is for output and formulas. Any other
kind of block fails.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from scrim.spec.release import ReleaseRequest, ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from service.data.errors import ProblemDocument
from tests.documents import DOCUMENTS, NOTEBOOKS, ROOT, Block, blocks, cells, name_of
from tests.e2e.installation import operating
from tests.e2e.left_behind import LEFT_BEHIND
from tests.e2e.pages import ADDRESS, EXECUTED, Shell, Surroundings, run_page
from tests.e2e.stand_ins import CHECKS, Call, check
from tests.e2e.support import Up, environment, running, scratch

pytestmark = pytest.mark.e2e

EXAMPLES: tuple[type[BaseModel], ...] = (
    Schema,
    TwoLevelSchema,
    ReleaseSpec,
    ReleaseRequest,
    ProblemDocument,
)
"""Models that a `json` block may be an example of, besides a domain file of benchmarks."""
TYPED = re.compile(
    r"\s*(?:\$|(?:\.venv/bin/)?(?:cat|cd|createdb|curl|docker|export|git|make|openssl|pg_\w+|pip|psql"
    r"|pytest|python3?|scrim|sudo)) +[\w.'\"$-]*[a-z]",
)
"""The beginning of a line that a reader would type, unlike a figure with such a name."""

OPERATIONS = ROOT / "docs" / "operations.md"
PROGRAMS = ("curl", "openssl", "python3")
"""Programs that pages use besides the project. Pages are skipped without them."""

pages = [d for d in (*DOCUMENTS, *NOTEBOOKS) if any(b.language in EXECUTED for b in blocks(d))]


@pytest.fixture(scope="module")
def stack() -> Iterator[Up]:
    """A stack that all pages share, started when the first one needs it."""
    with scratch() as folder, running(folder / "data", OMP_NUM_THREADS="1") as up:
        yield up


@pytest.mark.documents
@pytest.mark.random
@pytest.mark.parametrize("document", pages, ids=name_of)
def test_every_page_can_be_carried_out(document: Path, request: pytest.FixtureRequest) -> None:
    skip_without_programs(document)
    with scratch() as folder:
        if document == OPERATIONS:
            with operating(folder / "installation") as surroundings:
                ran = run_page(document, folder / "page", surroundings)
        elif "scrim-data" in document.read_text() or document in NOTEBOOKS:
            up = request.getfixturevalue("stack")
            ran = run_page(document, folder / "page", beside(up, is_admin=document in NOTEBOOKS))
        else:
            ran = run_page(document, folder / "page", Surroundings())
        for call in ran.calls:
            check(call)
        if check_left_behind := LEFT_BEHIND.get(name_of(document)):
            check_left_behind(ran)


def skip_without_programs(document: Path) -> None:
    commands = "".join(block.text for block in blocks(document) if block.language == "sh")
    for program in PROGRAMS:
        if re.search(rf"\b{program} ", commands) and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def beside(up: Up, *, is_admin: bool) -> Surroundings:
    """Simulate a running `scrim up`: pages read the first key, notebooks get it from the environment."""
    key = {"SCRIM_KEY": (up.data_dir / "admin.key").read_text().strip()} if is_admin else {}
    return Surroundings(
        environment={"SCRIM_URL": up.url} | key,
        replacements={ADDRESS: up.url, "scrim-data": str(up.data_dir)},
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_other_block_is_what_it_says(document: Path) -> None:
    for block in blocks(document):
        if block.language not in EXECUTED:
            assert block.language in OTHERS, f"line {block.line}: what kind of block is this?"
            OTHERS[block.language](block)


def check_json(block: Block) -> None:
    content = json.loads(block.text)
    names = ", ".join(model.__name__ for model in EXAMPLES)
    assert is_domain(content) or any(is_example(content, model) for model in EXAMPLES), (
        f"line {block.line}: an example of none of {names}"
    )


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
    """A `text` block contains no command."""
    assert [line for line in block.text.splitlines() if TYPED.match(line)] == []


def check_py(block: Block) -> None:
    """A file of the project: its path, then its content, which tests/test_recipe.py writes."""
    assert re.match(r"# [\w/]+\.py\n", block.text), f"line {block.line}: which file is this?"
    compile(block.text, f"line {block.line}", "exec")


OTHERS: dict[str, Callable[[Block], None]] = {
    "json": check_json,
    "py": check_py,
    "text": check_text,
}


@pytest.mark.parametrize("program", CHECKS)
def test_every_stand_in_is_used(program: str) -> None:
    """A program that no page calls needs no stand-in; `make` itself calls the environment's Python."""
    commands = [b.text for d in pages for b in blocks(d) if b.language == "sh"]
    assert any(program.removeprefix("stand-ins/") in text for text in commands) or (
        program == ".venv/bin/python"
    )


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


@pytest.mark.slow
@pytest.mark.random
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_notebooks_start_a_service_where_none_is_named(notebook: Path, tmp_path: Path) -> None:
    run_page(notebook, tmp_path / "page", Surroundings())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
