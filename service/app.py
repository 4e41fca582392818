"""The application: routers, errors and connections, built from the settings."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from structlog.typing import FilteringBoundLogger

from service import health
from service.console import routes as console
from service.data.config import Settings
from service.data.context import open_context
from service.data.logging import build_logger
from service.datasets import endpoints as datasets
from service.keys import endpoints as keys
from service.ledger import endpoints as ledger
from service.metrics import Metrics
from service.middleware import RequestMiddleware
from service.populations import endpoints as populations
from service.problems import PROBLEM_MEDIA_TYPE, documented, install_handlers
from service.releases import endpoints as releases
from service.releases.events import open_feed
from service.releases.turns import PlanningTurns
from service.schemas import endpoints as schemas

DESCRIPTION = """
Synthetic data and noisy answers under differential privacy.

A **population** owns a budget. A **dataset** is a table about a population, declared by a schema and
encrypted at rest; it cannot be downloaded. A **release** spends budget to make synthetic rows, noisy
answers and a model, and is certified. Released models answer further questions at no cost.

Every error is a problem (RFC 9457) with a stable `type`. Every collection is paged: pass `next` as
`cursor`.
"""
# Number of large bodies that one process holds and parses at the same time.
LARGE_BODIES = 2
# Threads of one process that read. They never wait for a lock of the database; more of them would
# only compete for the interpreter.
READERS = 2
TAGS = [
    {"name": "keys", "description": "Who may call, with which scopes."},
    {"name": "populations", "description": "The protected people and their budgets."},
    {"name": "ledger", "description": "Every change of a budget, chained by hashes."},
    {"name": "schemas", "description": "Declarations of tables, saved under a name and a version."},
    {"name": "datasets", "description": "Declared tables; uploaded, never downloaded."},
    {"name": "mechanisms", "description": "The algorithms a release may use."},
    {"name": "releases", "description": "Jobs, their results, and questions to released models."},
    {"name": "operation", "description": "Health, readiness and metrics."},
]


def create_app(settings: Settings, *, log: FilteringBoundLogger | None = None) -> FastAPI:
    """Build the service. It opens its connections when it starts and closes them when it stops."""
    logger = log or build_logger()
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_context(settings, logger) as context:
            # Refuses to serve a database that is older than its anchor; anchors a new one.
            context.advance_anchor()
            # One thread per pooled connection: with fewer, some go unused; with more, threads wait.
            to_thread.current_default_thread_limiter().total_tokens = settings.database_connections
            app.state.context = context
            console.prepare()
            with ThreadPoolExecutor(READERS, "reader") as app.state.readers:
                async with open_feed(context) as app.state.feed:
                    logger.info("started")
                    yield
                    context.stopping.set()
            logger.info("stopped")

    app = FastAPI(
        title="Scrim",
        version=version("scrim-server"),
        description=DESCRIPTION,
        openapi_tags=TAGS,
        # The framework's own pages load scripts from other sites: see service/console/reference.py.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.metrics = metrics
    app.state.planning = PlanningTurns()
    app.state.readiness = health.SharedCheck()
    app.state.large_bodies = asyncio.Semaphore(LARGE_BODIES)
    app.add_middleware(
        RequestMiddleware, log=logger, metrics=metrics, body_seconds=settings.body_seconds
    )
    install_handlers(app)
    for router in (
        keys.router,
        populations.router,
        ledger.router,
        schemas.router,
        datasets.router,
        releases.mechanisms,
        releases.router,
    ):
        app.include_router(router, responses=documented(401, 403, 404, 409, 413, 422, 429, 503))
    app.include_router(health.router, responses=documented(503))
    app.include_router(console.router)
    _describe_problems(app)
    return app


def _describe_problems(app: FastAPI) -> None:
    """Document problems under their own media type in the OpenAPI document."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        is_new = app.openapi_schema is None
        document = describe()
        for operations in document["paths"].values() if is_new else ():
            for operation in operations.values():
                for status, answer in operation["responses"].items():
                    if int(status) >= 400:
                        answer["content"] = {
                            PROBLEM_MEDIA_TYPE: answer["content"]["application/json"]
                        }
        return document

    app.openapi = described  # type: ignore[method-assign]
