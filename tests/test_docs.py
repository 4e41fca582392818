"""The documentation is true: every file, name and command that it names exists.

What is checked, in README.md, CONTRIBUTING.md, CHANGELOG.md and everything below docs (that their code
runs, is checked by `tests/e2e/test_documents.py`):

- `path/to/file` in backticks, or a path in any other block, names a file or folder of the project,
  where `<any>` stands for one part of a path;
- `path/to/file.py::Class.method` and `synth.module.name` name something that the file defines;
- links between documents lead to a document, and to a heading of it;
- `make target` names a rule of the Makefile.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from scrim import __version__
from tests.documents import DOCUMENTS, ROOT, blocks, code_tokens, name_of, prose

DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
CODE_FOLDERS = ("synth", "service", "worker", "scrim", "migrations", "benchmarks", "tests")

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
PATH = re.compile(r"(?:\./)?(?P<path>[\w.<>*-]+(?:/[\w.<>*-]+)*/?)(?:::(?P<symbol>[\w.]+))?")
SUFFIXES = {".py", ".md", ".sql", ".toml", ".ini"}
MODULE = re.compile(rf"(?:{'|'.join(CODE_FOLDERS)})(?:\.\w+)+")
MAKE = re.compile(r"\bmake (?:[A-Z_]+=\S+ )*([a-z][a-z-]*)")
RULE = re.compile(r"^([a-z][a-z-]*):(?!=)", re.M)
CITED_DOCUMENT = re.compile(r"docs/[\w/-]+\.md")
CITED_SECTIONS = re.compile(r"docs/privacy\.md, (?:sections? )?(\d+(?:(?:, | and )\d+)*)")


def spans(document: Path) -> list[str]:
    """What stands in single backticks."""
    return SPAN.findall(prose(document))


each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


@each_document
def test_every_fence_is_closed(document: Path) -> None:
    lines = document.read_text().splitlines()
    for token in code_tokens(document):
        assert token.map is not None
        assert lines[token.map[1] - 1].strip() == token.markup


# Files and names


@dataclass(frozen=True)
class Reference:
    """Something of the project that a document names."""

    path: str
    symbol: str | None


def references(document: Path) -> Iterator[Reference]:
    for span in spans(document):
        if MODULE.fullmatch(span):
            yield module_reference(span)
        elif (found := PATH.fullmatch(span)) and is_path(found["path"]):
            yield Reference(found["path"], found["symbol"])
    for block in blocks(document):
        if block.language in ("python", "py"):
            continue
        for word in block.text.split():
            found = PATH.fullmatch(word.strip(",;:()"))
            if found and found["path"].partition("/")[0] in (*CODE_FOLDERS, "docs"):
                yield Reference(found["path"], found["symbol"])


def is_path(text: str) -> bool:
    return "/" in text or Path(text).suffix in SUFFIXES


def module_reference(dotted: str) -> Reference:
    """`synth.run.run` as the file of the longest module in it and the name that follows."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        symbol = ".".join(parts[length:]) or None
        if (ROOT / f"{folder}.py").is_file():
            return Reference(f"{folder}.py", symbol)
        if (ROOT / folder).is_dir():
            return Reference(f"{folder}/__init__.py" if symbol else folder, symbol)
    return Reference(dotted, None)


@cache
def generated() -> set[str]:
    """Folders that the project makes and does not keep."""
    lines = (ROOT / ".gitignore").read_text().splitlines()
    return {line.rstrip("/") for line in lines if line.endswith("/")}


@cache
def file_names() -> set[str]:
    """Names of all files of the project, wherever they are."""
    folders = [ROOT / name for name in (*CODE_FOLDERS, "docs") if (ROOT / name).is_dir()]
    return {file.name for folder in folders for file in folder.rglob("*")}


def matches(path: str) -> list[Path]:
    """The files or folders that a path stands for."""
    return list(ROOT.glob(re.sub(r"<\w+>", "*", path.rstrip("/"))))


@cache
def defined(file: Path) -> set[str]:
    """The names that a Python file defines, methods and fields by way of their class."""
    names: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            targets: Sequence[ast.expr] = []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            elif isinstance(node, ast.Assign):
                targets = node.targets
            names.update(prefix + t.id for t in targets if isinstance(t, ast.Name))

    visit(ast.parse(file.read_text()).body, "")
    return names


@each_document
def test_every_named_file_exists_and_defines_what_is_named(document: Path) -> None:
    wrong = []
    for reference in references(document):
        first, _, rest = reference.path.partition("/")
        if first in generated() or (not rest and reference.path in file_names()):
            continue
        found = matches(reference.path)
        if not found:
            wrong.append(reference.path)
        elif reference.symbol is not None and not any(
            reference.symbol in defined(file) for file in found
        ):
            wrong.append(f"{reference.path}::{reference.symbol}")
    assert not wrong


@each_document
def test_every_link_leads_somewhere(document: Path) -> None:
    broken = []
    for target in LINK.findall(prose(document)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert not broken


def anchors(document: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = HEADING.findall(prose(document))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_document
def test_every_make_target_exists(document: Path) -> None:
    commands = [*spans(document), *(b.text for b in blocks(document) if b.language != "python")]
    named = {target for command in commands for target in MAKE.findall(command)}
    assert named <= set(RULE.findall((ROOT / "Makefile").read_text()))


# What the code says about the documents


def code_files() -> Iterator[Path]:
    yield ROOT / "Makefile"
    for folder in CODE_FOLDERS:
        if folder != "tests":
            yield from (ROOT / folder).rglob("*.py")
            yield from (ROOT / folder).rglob("*.sql")


def test_every_document_that_the_code_cites_exists() -> None:
    cited = {name for file in code_files() for name in CITED_DOCUMENT.findall(file.read_text())}
    assert cited
    assert {name for name in cited if not (ROOT / name).is_file()} == set()


def test_every_section_that_the_code_cites_exists() -> None:
    cited = {
        number
        for file in code_files()
        for numbers in CITED_SECTIONS.findall(file.read_text())
        for number in re.findall(r"\d+", numbers)
    }
    headings = HEADING.findall(prose(ROOT / "docs" / "privacy.md"))
    assert cited
    assert cited <= {found[1] for h in headings if (found := re.match(r"(\d+)\. ", h))}


# Documents of one form


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(document.name[:4]) for document in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("document", DECISIONS, ids=name_of)
def test_decisions_have_one_form(document: Path) -> None:
    title, *sections = HEADING.findall(prose(document))
    assert title.startswith(f"{int(document.name[:4])}. ")
    assert sections == ["Context", "Decision", "Consequences", "Alternatives refused"]


def test_every_release_states_its_privacy() -> None:
    _, *releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert any(release.startswith(f"[{__version__}]") for release in releases)
    assert all("\n### Privacy\n" in release for release in releases)
