"""Numbers for Prometheus. None of them depends on the rows of a dataset."""

import os
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError
from sqlalchemy import text

from scrim.spec.budget import rho_of_units
from service.data.context import Context
from service.data.task_queue import QUEUES

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_RELEASES = text("SELECT state, count(*) FROM release GROUP BY state ORDER BY state")
_BUDGETS = text("""
    SELECT population_id, spent_units, reserved_units FROM ledger.account ORDER BY population_id
""")


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "scrim_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )

        self._alarms = Counter(
            "scrim_alarms",
            "Problems that an operator must act on, such as damaged artifacts.",
            ["problem"],
            registry=self._registry,
        )

    def count_alarm(self, problem: str) -> None:
        """Count a response with a problem of this type."""
        self._alarms.labels(problem).inc()

    def count_request(self, method: str, route: str, status: int) -> None:
        """Count an answered request."""
        self._requests.labels(method, route, str(status)).inc()

    def render(self, context: Context) -> bytes:
        """All metrics in the text format: counters since the start, and gauges of what is stored now."""
        now = CollectorRegistry(auto_describe=False)
        now.register(_Stored(context))
        return generate_latest(self._counters()) + generate_latest(now)

    def _counters(self) -> CollectorRegistry:
        """The counters of this process, or the sums over all that share a folder."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self._registry
        shared = CollectorRegistry()
        MultiProcessCollector(shared)
        return shared


class _Stored(Collector):
    """Metrics read from the database and the broker at this moment."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def collect(self) -> Iterable[Metric]:
        """Queues, releases and budgets."""
        yield self._queues()
        yield from self._database()

    def _queues(self) -> Metric:
        depth = GaugeMetricFamily("scrim_queue_depth", "Messages that wait.", labels=["queue"])
        for queue in QUEUES:
            try:
                depth.add_metric([queue], self._context.task_queue.depth(queue))
            except RedisError as error:
                self._context.log.warning(
                    "queue_depth_unavailable", queue=queue, error_type=type(error).__name__
                )
        return depth

    def _database(self) -> Iterable[Metric]:
        releases = GaugeMetricFamily("scrim_releases", "Releases by state.", labels=["state"])
        spent = GaugeMetricFamily("scrim_rho_spent", "Budget spent.", labels=["population_id"])
        held = GaugeMetricFamily("scrim_rho_reserved", "Budget held.", labels=["population_id"])
        with self._context.transaction() as work:
            for state, number in work.session.execute(_RELEASES):
                releases.add_metric([state], number)
            for population, spent_units, reserved_units in work.session.execute(_BUDGETS):
                spent.add_metric([str(population)], rho_of_units(spent_units))
                held.add_metric([str(population)], rho_of_units(reserved_units))
        return releases, spent, held
