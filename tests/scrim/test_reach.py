"""The client makes every call that the service answers, and the command makes every call of the client."""

import re
from pathlib import Path

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from scrim import Client
from service.datasets import endpoints as datasets
from service.keys import endpoints as keys
from service.ledger import endpoints as ledger
from service.populations import endpoints as populations
from service.releases import endpoints as releases
from service.schemas import endpoints as schemas

CLIENT = Path(__file__).parents[2] / "scrim"
ROUTERS: list[APIRouter] = [
    datasets.router,
    keys.router,
    ledger.router,
    populations.router,
    releases.mechanisms,
    releases.router,
    schemas.router,
]
# Parts of `datasets.upload`, and methods that are only useful in Python.
NOT_TYPED = {"create_public", "upload_content", "to_pandas", "to_polars"}


def without_names(path: str) -> str:
    return re.sub(r"{[^}]*}", "{}", path)


def test_the_client_knows_every_address_of_the_service() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    offered = {without_names(route.path) for route in routes if isinstance(route, APIRoute)}
    written = "".join(path.read_text() for path in CLIENT.glob("*.py"))
    assert {without_names(found) for found in re.findall(r'"(/v1/[^"]*)"', written)} == offered


@pytest.mark.parametrize("resource", ["keys", "populations", "schemas", "datasets", "releases"])
def test_every_call_can_be_typed(resource: str) -> None:
    commands = "".join(path.read_text() for path in (CLIENT / "commands").glob("*.py"))
    typed = set(re.findall(rf"client\.{resource}\.(\w+)\(", commands))
    methods = {name for name in vars(type(getattr(Client("http://x"), resource))) if name[0] != "_"}
    assert methods - NOT_TYPED - typed == ({"create"} if resource == "datasets" else set())
