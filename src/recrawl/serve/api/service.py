"""API: what needs the running service besides the repository: scheduler, events, a cluster's machines, limits.

Operations that need the repository alone are its methods; see `recrawl.serve.api`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Any, Unpack

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recrawl import parameters as given
from recrawl.choose import make_policy, usable_policies
from recrawl.choose import parameters as policy_parameters
from recrawl.cluster.opening import is_cluster
from recrawl.errors import UsageError
from recrawl.operations import operation
from recrawl.repository import push
from recrawl.repository.explain.noise import Preview, noise_filter
from recrawl.repository.opening import options_of
from recrawl.repository.reports import overview
from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.sites import origin_named
from recrawl.repository.results import pictures
from recrawl.repository.results.answers import (
    ClusterAnswer,
    ListAnswer,
    NamedAnchorAnswer,
    PolicyAnswer,
    RateAnswer,
    RemovedAnswer,
    RemovedSeedsAnswer,
    RequestedVisitsAnswer,
    RunningAnswer,
    SavedFilterAnswer,
    SchedulerAnswer,
    SettingAnswer,
    SettledAnswer,
    StatusAnswer,
    SubscriptionAnswer,
    listing,
    made,
    number_after,
    plain,
)
from recrawl.repository.seeds import without_seeds
from recrawl.serve.context import Context
from recrawl.serve.events import EventBus, Listener
from recrawl.serve.jobs import filter_preview, subprocess_queries
from recrawl.serve.jobs.job_specs import check_inside, level_inside
from recrawl.serve.problems import Problem
from recrawl.serve.stored_files import download, picture_response
from recrawl.settings import Settings, changing, checked, period_of, size, write_seeds, write_values

_KEEPALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the stream open."""
_FURTHEST_RATE = 10_000


@operation(http="GET /status", commands=("status",))
def status(context: Context) -> StatusAnswer:
    """Get the state of the repository."""
    with context.reading() as repository:
        totals, problems = overview.totals(repository), overview.problems(repository)
    return made(StatusAnswer, {**totals, "problems": problems, "scheduler": asdict(context.scheduler.status())})


@operation(http="GET /policies", commands=("policies",))
def policies(_: Context) -> ListAnswer[PolicyAnswer]:
    """List the policies with their parameters."""
    return listing(
        PolicyAnswer,
        (
            {
                "name": name,
                "what": (inspect.getdoc(kind) or "").partition("\n")[0],
                "parameters": {key: str(value) for key, value in policy_parameters(name).items()},
                "needs": sorted(kind.needs),
                "source": kind.source,
            }
            for name, kind in usable_policies().items()
        ),
    )


# -- stored files ------------------------------------------------------------------------------------------------


@operation(http="GET /page/source", name="page_source", commands=("show",), returns="application/octet-stream")
async def source(
    context: Context, request: Request, *, url: given.Url, version: given.VersionNumber = None
) -> Response:
    """Download the stored bytes of a version."""
    return await download(context, request, url, version)


@operation(http="GET /page/screenshot", name="page_screenshot", commands=("show",), returns="image/png")
async def screenshot(
    context: Context, request: Request, *, url: given.Url, version: given.VersionNumber = None
) -> Response:
    """Download the screenshot of a version."""
    del request

    def picture() -> bytes:
        with context.reading() as repository:
            known = reading.find(repository, url)
            return pictures.picture_of(repository, reading.version(repository, known["id"], version), known["url"])

    return picture_response(await run_in_threadpool(picture))


@operation(http="GET /page/visual-diff", name="page_visual_diff", commands=("diff",), returns="image/png")
async def visual_diff(
    context: Context,
    request: Request,
    *,
    url: given.Url,
    old: given.OldVersion = None,
    new: given.NewVersion = None,
) -> Response:
    """Compare the screenshots of two versions, side by side, with their differences outlined."""
    del request

    def picture() -> bytes:
        with context.reading() as repository:
            known, *pair = reading.pair(repository, url, old, new)
            before, after = (pictures.picture_of(repository, it, known["url"]) for it in pair)
        return pictures.compare_pictures(before, after).side_by_side()

    return picture_response(await run_in_threadpool(picture))


# -- settings, within the limits of a service ----------------------------------------------------------------------


@operation(http="PUT /settings/{name}", commands=("config",), writes=True, name="set")
def set_setting(context: Context, *, name: given.SettingName, value: given.SettingValue) -> SettingAnswer:
    """Change a setting."""
    new: Any = checked(name, value)
    if name == "change":
        new = level_inside(context.folder, new)
    if name == "policy" and new != context.settings()["policy"]:
        make_policy(new, imports=False)  # raises UsageError for an invalid policy
    if name == "importance":
        check_inside(context.folder, new)
    with changing(context.settings_file):
        before = context.settings()
        after = Settings({**before.values, name: new}, before.seeds, before.filters)
        options_of(after)
        period_of(after)
        write_values(context.settings_file, {name: new})
    context.scheduler.wake()
    return SettingAnswer(name=name, value=context.settings()[name])


@operation(http="DELETE /seeds", commands=("rm",), writes=True, name="rm")
def remove_seed(context: Context, *, url: given.SeedUrl) -> RemovedSeedsAnswer:
    """Remove a site or page: the next cycle drops its pages and keeps their versions."""
    with changing(context.settings_file):
        after, removed = without_seeds(context.settings(), [url])
        write_seeds(context.settings_file, after.seeds)
    context.scheduler.wake()
    return RemovedSeedsAnswer(removed=sorted(removed))


@operation(http="POST /filters/preview")
def preview_filter(context: Context, **noise: Unpack[given.NoiseFilter]) -> Preview:
    """Preview which of the recorded changes a filter would have hidden."""
    return filter_preview.preview_filter(context.folder, noise_filter(**noise))


@operation(http="PUT /anchors", commands=("anchor",), writes=True)
def name_anchor(context: Context, *, url: given.AnchorUrl) -> NamedAnchorAnswer:
    """Set the anchor of a site."""
    with changing(context.settings_file), context.reading() as repository:
        return NamedAnchorAnswer(site=repository.set_anchor("", url), url=url)


@operation(http="DELETE /anchors", commands=("anchor",), writes=True)
def find_anchor(context: Context, *, site: given.AnchorSite) -> NamedAnchorAnswer:
    """Detect the anchor of a site automatically again."""
    with changing(context.settings_file), context.reading() as repository:
        return NamedAnchorAnswer(site=repository.set_anchor(site))


# -- visits and rates ----------------------------------------------------------------------------------------------


@operation(http="POST /recheck", commands=("recheck",), status=202, writes=True)
def recheck(context: Context, *, target: given.Target) -> RequestedVisitsAnswer:
    """Visit a page or site now; a cycle that is running comes first."""
    with context.writing() as repository:
        pages = repository.request_recheck(target)
    return RequestedVisitsAnswer(pages=pages, started=context.scheduler.run_requests())


@operation(http="GET /saved-filters", commands=("changes",))
def saved_filters(context: Context) -> ListAnswer[SavedFilterAnswer]:
    """List the saved filters of changes."""
    with context.reading() as repository:
        saved = repository.saved_filters()
    return listing(SavedFilterAnswer, ({"name": name, "filter": fields} for name, fields in saved.items()))


@operation(http="GET /rates", commands=("why",))
def rates(
    context: Context,
    *,
    site: given.Site = "",
    url: given.RatedPage = "",
    by: given.RateOf = "page",
    estimator: given.Estimator = "gamma",
    limit: given.PageLimit = 50,
    after: given.After = "",
) -> ListAnswer[RateAnswer]:
    """Estimate change rates, fastest first. The command line computes them: they may need much time and memory."""
    begin = max(0, number_after(after))
    if begin > _FURTHEST_RATE:
        raise UsageError("rates beyond the first 10,000 are not available; name a site")
    with context.reading() as repository:
        where = reading.find(repository, url)["url"] if url else origin_named(repository, site)
    end = begin + limit
    words = ["why", "--rate", *([where] if where else []), "--by", by, "--estimator", estimator, "--limit", str(end)]
    found = subprocess_queries.run_command(context, *words, "--json")
    return listing(RateAnswer, found[begin:], end if len(found) == end else None)


@operation(http="POST /deliveries/retry", writes=True)
def retry_deliveries(
    context: Context, *, receiver: given.Receiver = "", numbers: given.ParkedNumbers = None
) -> SettledAnswer:
    """Send parked changes again: those with these numbers, or all of a receiver."""
    _check(receiver, numbers)
    with context.writing() as repository:
        return SettledAnswer(changes=repository.retry_parked(receiver, numbers or []))


@operation(http="POST /deliveries/drop", writes=True)
def drop_deliveries(
    context: Context, *, receiver: given.Receiver = "", numbers: given.ParkedNumbers = None
) -> SettledAnswer:
    """Drop parked changes: those with these numbers, or all of a receiver."""
    _check(receiver, numbers)
    with context.writing() as repository:
        return SettledAnswer(changes=repository.drop_parked(receiver, numbers or []))


def _check(receiver: str, numbers: list[int] | None) -> None:
    if not receiver and not numbers:
        raise UsageError("name the receiver, or give the numbers of parked changes")


@operation(http="POST /subscriptions", status=202, writes=True, asks=True)
def subscribe(context: Context, request: Request, *, topic: given.FeedUrl, hub: given.HubUrl) -> SubscriptionAnswer:
    """Subscribe to a feed through its WebSub hub, which must be able to reach this service."""
    with context.writing() as repository:
        return made(SubscriptionAnswer, push.subscribe(repository, topic, hub, str(request.base_url)))


@operation(http="DELETE /subscriptions/{name}", writes=True, asks=True)
def unsubscribe(context: Context, request: Request, *, name: given.SubscriptionName) -> RemovedAnswer:
    """Delete a WebSub subscription and tell its hub."""
    with context.writing() as repository:
        return made(RemovedAnswer, push.unsubscribe(repository, name, str(request.base_url)))


# -- the scheduler -------------------------------------------------------------------------------------------------


@operation(http="GET /scheduler", commands=("run",))
def scheduler(context: Context) -> SchedulerAnswer:
    """Get the scheduler's state."""
    return made(SchedulerAnswer, asdict(context.scheduler.status()))


@operation(http="GET /running", commands=("status",))
def running(context: Context) -> RunningAnswer:
    """Get the progress of the crawl or cycle under way, whoever started it: counts, rate, time left."""
    with context.reading() as repository:
        found = repository.running()
    return made(RunningAnswer, {"running": False} if found is None else {"running": True, **found.as_dict()})


@operation(http="POST /scheduler/pause", commands=("run",), writes=True)
def pause(context: Context) -> SchedulerAnswer:
    """Pause the scheduler; a running cycle stops and is continued later."""
    context.scheduler.pause()
    return scheduler(context)


@operation(http="POST /scheduler/resume", commands=("run",), writes=True)
def resume(context: Context) -> SchedulerAnswer:
    """Resume the scheduler."""
    context.scheduler.resume()
    return scheduler(context)


@operation(http="POST /cycles", commands=("crawl", "cycle"), status=202, writes=True)
def run(
    context: Context,
    *,
    budget: given.Budget = None,
    bytes: given.Bytes = "",  # noqa: A002
    policy: given.PolicyText = "",
) -> SchedulerAnswer:
    """Start a cycle now."""
    if policy:
        make_policy(policy, imports=False)  # raises UsageError for an invalid policy
    if bytes:
        size(bytes)
    if not context.scheduler.run_now(budget, policy, bytes):
        raise Problem(409, "A cycle is already running.")
    return scheduler(context)


@operation(http="GET /events", returns="text/event-stream")
async def events(context: Context, request: Request, *, kinds: given.EventKinds = "") -> Response:
    """Stream events (server-sent events)."""
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
    wanted = frozenset(filter(None, kinds.split(",")))
    listener = context.events.listen(after, request.scope["recrawl.session"].name, context.limits.streams)
    if listener is None:
        raise Problem(503, "Too many event streams.", headers={"retry-after": "30"})
    return EventStream(context.events, listener, wanted)


class EventStream(StreamingResponse):
    """The events of a listener; it leaves when the response ends, even before its first line."""

    def __init__(self, bus: EventBus, listener: Listener, kinds: frozenset[str]) -> None:
        super().__init__(_event_lines(listener, kinds), media_type="text/event-stream")
        self._leave = partial(bus.leave, listener)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _event_lines(listener: Listener, kinds: frozenset[str]) -> AsyncIterator[str]:
    yield "retry: 3000\n\n"
    while True:
        try:
            event = await asyncio.wait_for(listener.queue.get(), _KEEPALIVE)
        except TimeoutError:
            yield ": still here\n\n"
            continue
        if event is None:
            return
        if not kinds or event.kind in kinds:
            data = msgspec.json.encode(plain(event.data)).decode()
            yield f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n"


# -- clusters --------------------------------------------------------------------------------------------------------


@operation(http="GET /cluster", commands=("cluster",))
def cluster(context: Context) -> ClusterAnswer:
    """Get the nodes, shards, workers and leases of a cluster, and the run under way."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    return made(ClusterAnswer, overview.state_of(_layout(context)).as_dict())


@operation(http="POST /cluster/move", commands=("cluster",), writes=True)
def move_shard(context: Context, *, shard: given.ShardNumber, node: given.NodeName) -> ClusterAnswer:
    """Let a shard run on a node, also during a run."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    overview.move_shard(_layout(context), shard, node)
    return _changed(context)


@operation(http="POST /cluster/drain", commands=("cluster",), writes=True)
def drain(
    context: Context,
    *,
    node: given.DrainedNode = "",
    worker: given.DrainedWorker = "",
    draining: given.Draining = True,
) -> ClusterAnswer:
    """Let the shards of a node or of one worker go elsewhere, also during a run."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    if bool(node) == bool(worker):
        raise Problem(400, "Name a node or a worker.", field="node")
    if worker:
        overview.drain_worker(_layout(context), worker)
    else:
        overview.drain_node(_layout(context), node, draining=draining)
    return _changed(context)


def _changed(context: Context) -> ClusterAnswer:
    """Return the state after a change; pages that were rendered before it are rendered again."""
    with context.writing() as repository:
        repository.remember("cluster:changed", context.clock())
    return cluster(context)


def _layout(context: Context) -> Any:
    if not is_cluster(context.folder):
        raise Problem(404, "This repository is not a cluster.")
    from recrawl.cluster.layout import layout_of  # lazy: needs the extra `postgres`

    return layout_of(context.folder)
