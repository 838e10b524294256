"""/metrics for Prometheus: freshness, age, updates found, traffic, failures, queues and response times.

Repository metrics are read on each scrape from the summary tables of cycles and sites; no table is scanned.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recrawl.cluster.opening import is_cluster
from recrawl.model import Outcome
from recrawl.repository.reports.overview import figures
from recrawl.serve.api import service
from recrawl.serve.context import Context

_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RepositoryCollector(Collector):
    """Metrics of the store and the scheduler."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics, from a few small queries."""
        with self._context.reading() as repository:
            now = figures(repository)
        totals = now["visits"]
        yield _by("recrawl_pages", "Pages by state.", "state", now["states"])
        yield _one("recrawl_stored_pages", "Pages with a stored copy.", now["stored"])
        yield _one("recrawl_sites", "Sites with a page.", now["sites"])
        yield _one("recrawl_archive_bytes", "Size of the WARC archive in bytes.", now["archive_bytes"])
        yield _one("recrawl_alerts_waiting", "Alerts waiting to be sent.", now["waiting"])
        yield from _deliveries(now["deliveries"])
        yield _one("recrawl_listeners", "Open event streams.", len(self._context.events))
        names = (*(outcome.name.lower() for outcome in Outcome), "skipped", "missing")
        found = {name: totals[name] for name in names}
        yield _counted("recrawl_visits", "Visits by outcome, over finished cycles.", "outcome", found)
        yield _counted(
            "recrawl_failures", "Failed visits by cause, over the last 100 cycles.", "failure", now["failures"]
        )
        yield _total("recrawl_received_bytes", "Bytes received.", totals["received"])
        yield _total(
            "recrawl_frame_only", "Unchanged visits that found another text in the frame alone.", totals["frame_only"]
        )
        yield _total("recrawl_not_modified", "Responses with status 304.", totals["not_modified"])
        yield _total("recrawl_visit_seconds", "Total download time in seconds.", totals["seconds"])
        yield from _fresh(now)
        yield from _last(now["last"] or {})
        yield from self._scheduler()
        yield from self._cluster()

    def _cluster(self) -> Iterable[Metric]:
        """Metrics of a cluster; none of a repository on one machine."""
        if not is_cluster(self._context.folder):
            return
        state = service.cluster(self._context)
        yield _one("recrawl_cluster_nodes", "Nodes of the cluster.", len(state.nodes))
        yield _one("recrawl_cluster_coordinator", "1 if there is a coordinator.", bool(state.coordinator))
        yield _one("recrawl_cluster_shards", "Shards of the cluster.", len(state.shards))
        owned = sum(bool(shard.worker) for shard in state.shards)
        yield _one("recrawl_cluster_shards_owned", "Shards that a worker owns.", owned)
        waiting = {str(shard.shard): shard.links for shard in state.shards}
        yield _by("recrawl_cluster_links", "Links of other shards that wait for a shard.", "shard", waiting)
        lag = {str(shard.shard): shard.lag or 0.0 for shard in state.shards if shard.state}
        yield _by("recrawl_cluster_lag_seconds", "Seconds since a shard's last report in the run.", "shard", lag)

    def _scheduler(self) -> Iterable[Metric]:
        status = self._context.scheduler.status()
        progress: dict[str, Any] = status.progress or {}
        yield _one("recrawl_scheduler_paused", "1 if the scheduler is paused.", status.paused)
        yield _one("recrawl_scheduler_running", "1 while a cycle runs.", status.running)
        yield _one("recrawl_scheduler_failures", "Consecutive failed turns.", status.failures)
        yield _one("recrawl_queue_pages", "Pages waiting in the running cycle.", progress.get("waiting", 0))
        yield _one("recrawl_cycle_visits", "Visits made in the running cycle.", progress.get("visits", 0))
        due = 0.0 if status.due is None else max(0.0, status.due - self._context.clock())
        yield _one("recrawl_next_cycle_seconds", "Seconds until the next cycle.", due)


def _deliveries(rows: Iterable[dict[str, Any]]) -> Iterable[Metric]:
    """What waits and what is parked, by receiver."""
    texts = {
        "waiting": "Changes taken up for a sink, and alerts, that wait to be delivered.",
        "parked": "Changes that a sink or the receiver of an alert refused, or that failed too often.",
    }
    for state, text in texts.items():
        family = GaugeMetricFamily(f"recrawl_deliveries_{state}", text, labels=["kind", "receiver"])
        for row in rows:
            family.add_metric([row["kind"], row["receiver"]], row[state])
        yield family


def _fresh(now: dict[str, Any]) -> Iterable[Metric]:
    """Freshness and time since the last visit, at this moment; none without a stored page."""
    if not now["stored"]:
        return
    yield _one("recrawl_freshness", "Expected share of stored pages whose copy is current now.", now["freshness"])
    yield _one("recrawl_freshness_deviation", "Standard deviation of recrawl_freshness.", now["freshness_sd"])
    ages = now["age_seconds"]
    yield _one("recrawl_age_seconds", "Median time since the last visit of a stored page, in seconds.", ages["p50"])
    yield _one("recrawl_age_p90_seconds", "90 % of the stored pages were visited within this time.", ages["p90"])


def _last(row: dict[str, Any]) -> Iterable[Metric]:
    """Metrics of the last cycle; none before the first cycle."""
    if not row:
        return
    yield _one("recrawl_cycle_budget", "Visit budget of the last cycle.", row["budget"])
    yield _one("recrawl_cycle_spent", "Visits made in the last cycle.", row["visits"])
    yield _one(
        "recrawl_cycle_updates", "Changed and removed pages found in the last cycle.", row["changed"] + row["gone"]
    )
    yield _one("recrawl_cycle_expected_updates", "Updates that the last cycle was expected to find.", row["expected"])
    yield _one("recrawl_cycle_seconds", "Duration of the last cycle in seconds.", row["took"] or 0.0)
    mean = row["seconds"] / row["visits"] if row["visits"] else 0.0
    yield _one("recrawl_cycle_mean_visit_seconds", "Mean download time in the last cycle, in seconds.", mean)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _total(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=float(value))


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counted(name: str, text: str, label: str, values: dict[str, int] | Counter[str]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


class RequestTimer:
    """Outermost middleware: measures response times, except of event streams."""

    def __init__(self, app: ASGIApp, histogram: Histogram) -> None:
        self._app = app
        self._histogram = histogram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure one request."""
        if scope["type"] != "http" or scope["path"].endswith("/events"):
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), ["500"]

        async def send_and_note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            part = scope["path"].split("/", 2)[1]
            kind = part if part in _PARTS else "page"
            self._histogram.labels(kind, status[0]).observe(time.perf_counter() - started)


_PARTS = frozenset({"api", "metrics", "static", "timegate", "timemap", "memento", "indexnow", "websub", "feed.atom"})


def new_registry(context: Context) -> tuple[CollectorRegistry, Histogram]:
    """Return a separate registry, so that several services can run in one process."""
    registry = CollectorRegistry()
    registry.register(RepositoryCollector(context))
    histogram = Histogram(
        "recrawl_http_request_seconds",
        "Response times in seconds.",
        ("part", "status"),
        buckets=_BUCKETS,
        registry=registry,
    )
    return registry, histogram


def routes(registry: CollectorRegistry) -> list[Route]:
    """/metrics"""

    async def metrics(request: Request) -> Response:
        del request
        text = await run_in_threadpool(generate_latest, registry)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return [Route("/metrics", metrics, methods=["GET"])]
