"""One name means one thing: no class name twice, and no constant with two values."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("scrim", "synth", "service", "worker")


def statements() -> Iterator[tuple[str, ast.stmt]]:
    """Every statement at the top of a module, with the module's path."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for statement in ast.parse(path.read_text()).body:
                yield str(path.relative_to(ROOT)), statement


def assigned(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The constant that a statement gives a value."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name.isupper():
            return name, value
    return None


def test_no_two_classes_have_the_same_name() -> None:
    places = defaultdict(list)
    for path, statement in statements():
        if isinstance(statement, ast.ClassDef):
            places[statement.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_constant_has_two_values() -> None:
    values = defaultdict(set)
    for _, statement in statements():
        if (found := assigned(statement)) is not None:
            name, value = found
            values[name].add(ast.unparse(value))
    assert {name: found for name, found in values.items() if len(found) > 1} == {}
