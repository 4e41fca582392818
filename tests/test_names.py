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


def assigned(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The constants that a statement gives a value."""
    found: list[tuple[ast.expr, ast.expr]] = []
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            found = list(zip(names, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            found = [(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            found = [(target, value)]
    return [
        (name.id, value)
        for name, value in found
        if isinstance(name, ast.Name) and name.id.isupper()
    ]


def test_no_two_classes_have_the_same_name() -> None:
    places = defaultdict(list)
    for path, statement in statements():
        if isinstance(statement, ast.ClassDef):
            places[statement.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_constant_has_two_values() -> None:
    values = defaultdict(set)
    for _, statement in statements():
        for name, value in assigned(statement):
            values[name].add(ast.unparse(value))
    assert {name: found for name, found in values.items() if len(found) > 1} == {}
