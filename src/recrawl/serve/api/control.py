"""API: the scheduler and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recrawl import parameters as given
from recrawl.choose import make_policy
from recrawl.operations import operation
from recrawl.serve.api.answers import RunningAnswer, SchedulerAnswer, made, plain
from recrawl.serve.context import Context
from recrawl.serve.events import EventBus, Listener
from recrawl.serve.problems import Problem
from recrawl.settings import size

_KEEPALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the stream open."""


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
