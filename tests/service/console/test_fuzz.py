"""Arbitrary forms and addresses never cause an internal error."""

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.service.api.support import HOUSEHOLDS, TWO_LEVEL, Api, examples
from tests.service.console.support import Visitor, visitor

HUGE = "9" * 5000
NESTED = "[" * 5000
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class World:
    """A visitor who may do everything, and the ids of things that exist."""

    visiting: Visitor
    token: str
    real: dict[str, str]

    def post(self, path: str, pairs: Pairs) -> httpx.Response:
        body = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
        return self.visiting.http.post(
            f"/console{path.format(**self.real)}",
            content=f"token={self.token}&{body}",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            follow_redirects=False,
        )

    def get(self, path: str, pairs: Pairs) -> httpx.Response:
        query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
        address = f"/console{path.format(**self.real)}?{query}"
        return self.visiting.http.get(address, follow_redirects=False)


def _quoted(text: str) -> str:
    # Half a surrogate pair is sent as its bytes, which are not UTF-8.
    return quote_plus(text.encode("utf-8", "surrogatepass"))


@pytest.fixture(scope="module")
def world(api: Api) -> Iterator[World]:
    population = api.population(cap={"rho": 100.0})
    dataset = api.ready_dataset(population)
    households = api.dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
    release = api.release(dataset, publish=True)
    api.finish(release, {"answers.csv": b"item,query,value,count\n"})
    real = {
        "population": population,
        "dataset": dataset,
        "households": households,
        "release": release,
        "key": str(uuid.uuid4()),
    }
    with visitor(api, "admin", "curator", "analyst") as visiting:
        yield World(visiting, visiting.token(), real)


# Valid content of each kind of form.
POSTS: dict[str, Pairs] = {
    "/sign-in": [("key", "scrim_x"), ("next", "/console")],
    "/populations/new": [
        *(("name", "p"), ("unit", "person"), ("relation", "replace_one"), ("bound", "2")),
        *(("cap_kind", "rho"), ("cap", "1"), ("delta", "1e-9"), ("repeat_key", "r")),
    ],
    "/datasets/new": [
        *(("name", "d"), ("visibility", "public"), ("provenance", "p"), ("disjoint", "yes")),
        *(("levels", "one"), ("mode", "rows"), ("schema_json", "{}"), ("repeat_key", "r")),
        *(("c0.name", "a"), ("c0.type", "integer"), ("c0.lower", "0"), ("c0.upper", "9")),
        *(("c0.bins", "width"), ("c0.bins_value", "2"), ("c0.decimals", ""), ("c0.nullable", "y")),
        *(("c1.name", "b"), ("c1.type", "categorical"), ("c1.values", "x\ny"), ("c1.other", "x")),
        *(("c1.table", "individuals"), ("group_key", "g"), ("individual_key", "g")),
        *(("order", ""), ("max_group_size", "3"), ("action", "to_json")),
        *(("c0.missing", "NA = refused, ?"), ("c0.rest", '{"type": "integer", "x": 1}')),
        *(("c1.levels", "1 3"), ("c1.true", "y"), ("missing", "?"), ("schema_rest", "{}")),
        *(("pasted", "a,b"), ("source", "dataset:{dataset}")),
    ],
    "/releases/new": [
        *(("dataset_id", "{dataset}"), ("w0.type", "marginals"), ("w0.k", "1"), ("w0.seed", "1")),
        *(("w0.attributes", "sex, age"), ("w0.count", ""), ("w1.type", "ranges"), ("w1.k", "1")),
        *(("w1.queries", "[]"), ("mechanism", "mwem"), ("m.rounds", "2"), ("m.measure", "")),
        *(("budget_kind", "rho"), ("budget", "0.01"), ("rows", "10"), ("formats", "csv")),
        *(("certify", "y"), ("share", ".1"), ("confidence", ".9"), ("expected_rows", "100")),
        *(("table", ""), ("public_dataset_id", ""), ("repeat_key", "r"), ("action", "add")),
    ],
    "/schemas": [("dataset_id", "{dataset}"), ("name", "s"), ("repeat_key", "r")],
    "/releases/{release}/samples": [("rows", "1")],
    "/keys": [("name", "k"), ("scopes", "analyst"), ("expires_on", "2999-01-01")],
    "/keys/{key}/revoke": [],
    "/datasets/{households}/delete": [],
    "/releases/{release}/cancel": [],
}
POSTS["/releases/preview"] = POSTS["/releases/new"]
GETS: dict[str, Pairs] = {
    "/sign-in": [("next", "/console/keys")],
    "/populations": [("cursor", ""), ("limit", "2")],
    "/populations/{population}": [("cursor", "")],
    "/datasets": [("cursor", ""), ("limit", "2")],
    "/datasets/new": [
        *(("population", "{population}"), ("levels", "two"), ("source", "dataset:{dataset}")),
        ("retry", "{dataset}"),
    ],
    "/schemas": [("cursor", ""), ("limit", "2")],
    "/releases": [("cursor", "")],
    "/releases/new": [("dataset", "{dataset}")],
    "/releases/{release}/answers": [("column", "sex")],
    "/keys": [("cursor", "")],
}

plain = st.text(max_size=20)
numbers = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        [HUGE, f"-{HUGE}", "1e999", "1e-999", "nan", "1_0", "٣", "²", "0x1", "9" * 400]
    ),
)
keys = st.sampled_from(
    [
        *("columns", "groups", "individuals", "name", "type", "values", "other", "lower", "upper"),
        *("bins", "width", "edges", "count", "key", "group_key", "max_group_size", "nullable"),
    ]
)
documents = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        plain,
        st.sampled_from(["categorical", "integer", "real", "identifier", "\0", "\ud800"]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
).map(json.dumps)
actions = st.builds(
    lambda verb, place: f"{verb}:{place}",
    st.sampled_from(
        ["add", "remove", "to_json", "to_rows", "update", "submit", "preview", "paste", "copy"]
    ),
    st.one_of(plain, numbers),
)
cursors = st.builds(
    lambda text: base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode(),
    documents,
)
values = st.one_of(
    plain,
    numbers,
    documents,
    actions,
    cursors,
    st.sampled_from(["", "\0", "a\0b", "\ud800", "\ufeff", "\r\n", NESTED, "json", "rows", "two"]),
)
indexed = st.builds(
    lambda start, place, field: f"{start}{place}.{field}",
    st.sampled_from(["c", "w", "m", ""]),
    st.one_of(numbers, plain),
    st.sampled_from(["name", "type", "values", "k", "attributes", "queries", "a.b.c", "", "\0"]),
)


def changes(fields: Pairs) -> st.SearchStrategy[Pairs]:
    """Changes of some fields: other values, left out, repeated, or unknown."""
    known = st.sampled_from([name for name, _ in fields] or ["x"])
    odd = st.lists(st.tuples(st.one_of(known, known, indexed, plain), values), max_size=4)
    kept = st.lists(st.sampled_from(fields), unique=True) if fields else st.just([])
    return st.builds(lambda some, others: [*some, *others], st.just(fields) | kept, odd)


def sent(method: str, pages: dict[str, Pairs]) -> st.SearchStrategy[tuple[str, str, Pairs]]:
    return st.sampled_from(sorted(pages)).flatmap(
        lambda path: st.tuples(st.just(method), st.just(path), changes(pages[path]))
    )


requests = sent("post", POSTS) | sent("post", POSTS) | sent("get", GETS)


def check(world: World, request: tuple[str, str, Pairs]) -> None:
    method, path, pairs = request
    filled = [(name, world.real.get(value.strip("{}"), value)) for name, value in pairs]
    answer = getattr(world, method)(path, filled)
    # Without workers, questions to models end as 503.
    assert answer.status_code < 500 or answer.status_code == 503, (path, answer.text)
    assert answer.status_code != 403 and "/sign-in" not in answer.headers.get("location", "")


def as_json(schema: Any, action: str) -> tuple[str, str, Pairs]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return "post", "/datasets/new", [("mode", "json"), ("schema_json", text), ("action", action)]


@examples(150)
@given(requests)
@example(("post", "/sign-in", [("key", "\0")]))
@example(("post", "/sign-in", [("key", "scrim_\ud800")]))
@example(("post", "/datasets/new", [(f"c{HUGE}.name", "a")]))
@example(("post", "/datasets/new", [("action", f"remove:{HUGE}")]))
@example(("post", "/releases/new", [("action", f"remove:{HUGE}")]))
@example(("post", "/releases/new", [("w0.type", "ranges"), ("w0.queries", NESTED)]))
@example(("post", "/keys", [("name", "k"), ("scopes", "\0"), ("expires_on", "\0")]))
@example(("post", "/populations/new", [*POSTS["/populations/new"], ("repeat_key", HUGE)]))
@example(("get", "/populations", [("cursor", "\0")]))
@example(("get", "/releases/{release}/answers", [("column", "\0")]))
@example(as_json(NESTED, "to_rows"))
@example(as_json({"columns": 5}, "to_json"))
@example(as_json({"columns": ["\ud800"]}, "to_json"))
@example(as_json({"columns": [{"type": "categorical", "values": ["\ud800"]}]}, "to_rows"))
@example(as_json({"columns": [{"name": "a", "type": "categorical", "values": ["\0"]}]}, "x"))
def test_nothing_in_a_form_is_a_fault_of_ours(
    world: World, request: tuple[str, str, Pairs]
) -> None:
    check(world, request)


@pytest.mark.parametrize("table", ["\0", "rows\0", HUGE[:900], "groups", "\ud800"])
@pytest.mark.parametrize("filename", ["\0.csv", "a.csv", "a" * 3000 + ".parquet", ".csv"])
def test_arbitrary_fields_beside_a_file_cause_no_error(
    world: World, table: str, filename: str
) -> None:
    answer = world.visiting.http.post(
        f"/console/datasets/{world.real['households']}/content",
        data={"token": world.token, "table": table.encode("utf-8", "replace")},
        files={"file": (filename, b"a\n")},
        follow_redirects=False,
    )
    assert answer.status_code < 500, answer.text


@pytest.mark.slow
@examples(5_000)
@given(requests)
def test_nor_is_anything_else(world: World, request: tuple[str, str, Pairs]) -> None:
    check(world, request)
