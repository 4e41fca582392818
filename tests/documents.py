"""The documents of the project and the code in them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


@dataclass(frozen=True)
class Block:
    """A block of code and the line of the document on which its text starts."""

    language: str
    text: str
    line: int


def name_of(document: Path) -> str:
    """The path of a document from the root of the project."""
    return str(document.relative_to(ROOT))


def blocks(document: Path) -> list[Block]:
    """The blocks of a page, or the code of a notebook, in order."""
    if document.suffix == ".ipynb":
        return [
            Block("python", "".join(cell["source"]), 1)
            for cell in cells(document)
            if cell["cell_type"] == "code"
        ]
    return [
        Block(token.info.partition(" ")[0], token.content, _span(token)[0] + 2)
        # Indented blocks are code as well, without a language.
        if token.type == "fence"
        else Block("", token.content, _span(token)[0] + 1)
        for token in code_tokens(document)
    ]


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return found


def prose(document: Path) -> str:
    """The page without its blocks."""
    lines = document.read_text().splitlines()
    for token in code_tokens(document):
        start, end = _span(token)
        lines[start:end] = [""] * (end - start)
    return "\n".join(lines) + "\n"


@cache
def code_tokens(document: Path) -> tuple[Token, ...]:
    """Every block of code in Markdown, fenced or indented."""
    tokens = MarkdownIt().parse(document.read_text())
    return tuple(token for token in tokens if token.type in ("fence", "code_block"))


def _span(token: Token) -> tuple[int, int]:
    """The first line of a block, counted from 0, and the one after its last."""
    assert token.map is not None
    return token.map[0], token.map[1]
