"""Prometheus: how fresh, how old, what was found, what it cost, what fails, what waits, how fast we answer.

Numbers about the repository are read when they are asked for, from the sums of cycles and sites. Nothing is scanned.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
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

from recrawl.model import Outcome, State
from recrawl.record.questions import ask
from recrawl.serve.context import Context

_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Gathered(Collector):
    """What the store and the scheduler know."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def collect(self) -> Iterable[Metric]:
        """Read it all, in a few small questions."""
        with self._context.reading() as repository:
            db = repository.store.db
            names = [state.name.lower() for state in State]
            sums = ", ".join(f"ifnull(sum({name}), 0) AS {name}" for name in names)
            states = ask(db, f"SELECT count(*) AS sites, {sums} FROM site_summaries")[0]  # noqa: S608
            outcomes = ", ".join(f"ifnull(sum({outcome.name.lower()}), 0)" for outcome in Outcome)
            totals = db.execute(
                f"""SELECT ifnull(sum(received), 0), ifnull(sum(not_modified), 0), ifnull(sum(seconds), 0), {outcomes}
                    FROM cycle_summaries"""  # noqa: S608
            ).fetchone()
            failures: Counter[str] = Counter()
            for (text,) in db.execute("SELECT failures FROM cycle_summaries ORDER BY cycle DESC LIMIT 100"):
                failures.update(json.loads(text))
            last = ask(
                db,
                """SELECT s.*, c.budget, c.finished - c.started AS took FROM cycle_summaries s
                   JOIN cycles c ON c.id = s.cycle WHERE s.freshness NOT NULL ORDER BY s.cycle DESC LIMIT 1""",
            )
            waiting = db.execute("SELECT count(*) FROM outbox WHERE state = 0").fetchone()[0]
            bytes_ = db.execute("SELECT ifnull(sum(length), 0) FROM warcs").fetchone()[0]
        yield _by("recrawl_pages", "Pages by state.", "state", {name: states[name] for name in names})
        yield _one("recrawl_sites", "Sites.", states["sites"])
        yield _one("recrawl_archive_bytes", "Size of the archive.", bytes_)
        yield _one("recrawl_alerts_waiting", "Alerts that are to be sent.", waiting)
        yield _one("recrawl_listeners", "Listeners to events.", len(self._context.events))
        found = {outcome.name.lower(): totals[3 + k] for k, outcome in enumerate(Outcome)}
        yield _counted("recrawl_visits", "Visits by outcome, of finished cycles.", "outcome", found)
        yield _counted("recrawl_failures", "Visits that failed, of the last 100 cycles.", "failure", failures)
        yield _total("recrawl_received_bytes", "Bytes received.", totals[0])
        yield _total("recrawl_not_modified", "Answers 304.", totals[1])
        yield _total("recrawl_visit_seconds", "Seconds that downloads took.", totals[2])
        yield from _last(last[0] if last else {})
        yield from self._scheduler()

    def _scheduler(self) -> Iterable[Metric]:
        status = self._context.scheduler.status()
        progress: dict[str, Any] = status.progress or {}
        yield _one("recrawl_scheduler_paused", "1 when no cycles are begun.", status.paused)
        yield _one("recrawl_scheduler_running", "1 while a cycle runs.", status.running)
        yield _one("recrawl_scheduler_failures", "Turns in a row that failed.", status.failures)
        yield _one("recrawl_queue_pages", "Pages that wait in the cycle under way.", progress.get("waiting", 0))
        yield _one("recrawl_cycle_visits", "Visits made in the cycle under way.", progress.get("visits", 0))
        due = 0.0 if status.due is None else max(0.0, status.due - self._context.clock())
        yield _one("recrawl_next_cycle_seconds", "Seconds until the next cycle.", due)


def _last(row: dict[str, Any]) -> Iterable[Metric]:
    """The last cycle; nothing before there was one."""
    if not row:
        return
    yield _one("recrawl_freshness", "Share of pages that are probably as stored.", row["freshness"])
    yield _one("recrawl_freshness_deviation", "Its standard deviation.", row["freshness_sd"])
    yield _one("recrawl_age_seconds", "Mean time since pages were looked at.", row["age"] or 0.0)
    yield _one("recrawl_cycle_budget", "Visits that the last cycle was allowed.", row["budget"])
    yield _one("recrawl_cycle_spent", "Visits that it made.", row["visits"])
    yield _one("recrawl_cycle_updates", "Changes and removals that it found.", row["changed"] + row["gone"])
    yield _one("recrawl_cycle_expected_updates", "Those that were to be expected.", row["expected"])
    yield _one("recrawl_cycle_seconds", "How long it took.", row["took"] or 0.0)
    mean = row["seconds"] / row["visits"] if row["visits"] else 0.0
    yield _one("recrawl_cycle_mean_visit_seconds", "Mean time of a download in it.", mean)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _total(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=float(value))


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counted(name: str, text: str, label: str, values: dict[str, int] | Counter[str]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


class Timed:
    """How long answers take, as the outermost layer sees it; streams are left out."""

    def __init__(self, app: ASGIApp, histogram: Histogram) -> None:
        self._app = app
        self._histogram = histogram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure one request."""
        if scope["type"] != "http" or scope["path"].endswith("/events"):
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), ["500"]

        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            part = scope["path"].split("/", 2)[1]
            kind = part if part in _PARTS else "page"
            self._histogram.labels(kind, status[0]).observe(time.perf_counter() - begun)


_PARTS = frozenset({"api", "metrics", "static", "timegate", "timemap", "memento", "indexnow", "websub", "feed.atom"})


def registry_of(context: Context) -> tuple[CollectorRegistry, Histogram]:
    """A registry of our own, so that several services can live in one process."""
    registry = CollectorRegistry()
    registry.register(Gathered(context))
    histogram = Histogram(
        "recrawl_http_request_seconds",
        "How long answers took.",
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
