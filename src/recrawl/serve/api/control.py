"""API: the scheduler and the event stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recrawl.choose import make_policy
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, plain
from recrawl.serve.context import Context
from recrawl.serve.events import EventBus, Listener
from recrawl.serve.problems import Problem
from recrawl.settings import size

_KEEPALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the stream open."""


def scheduler(context: Context, _: Arguments) -> dict[str, Any]:
    """Return the state of the scheduler."""
    return asdict(context.scheduler.status())


def running(context: Context, _: Arguments) -> dict[str, Any]:
    """Return the crawl or cycle under way, whoever started it: progress, counts, rate, time left."""
    with context.reading() as repository:
        found = repository.running()
    return {"running": False} if found is None else {"running": True, **found.as_dict()}


def pause(context: Context, given: Arguments) -> dict[str, Any]:
    """Pause the scheduler; a running cycle stops and is continued later."""
    context.scheduler.pause()
    return scheduler(context, given)


def resume(context: Context, given: Arguments) -> dict[str, Any]:
    """Resume the scheduler."""
    context.scheduler.resume()
    return scheduler(context, given)


def run(context: Context, given: Arguments) -> dict[str, Any]:
    """Start a turn now."""
    if given["policy"]:
        make_policy(given["policy"], imports=False)  # raises UsageError for an invalid policy
    if given["bytes"]:
        size(given["bytes"])
    if not context.scheduler.run_now(given["budget"], given["policy"], given["bytes"]):
        raise Problem(409, "A cycle is already running.")
    return scheduler(context, given)


async def events(context: Context, request: Request, given: Arguments) -> Response:
    """Stream events as server-sent events."""
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
    kinds = frozenset(filter(None, given["kinds"].split(",")))
    listener = context.events.listen(after, request.scope["recrawl.session"].name, context.limits.streams)
    if listener is None:
        raise Problem(503, "Too many event streams.", headers={"retry-after": "30"})
    return EventStream(context.events, listener, kinds)


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
            data = json.dumps(plain(event.data), allow_nan=False)
            yield f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n"


OPERATIONS = (
    Operation(
        method="GET",
        path="/scheduler",
        name="scheduler",
        verbs=("run",),
        summary="Get the scheduler's state.",
        answer=scheduler,
    ),
    Operation(
        method="GET",
        path="/running",
        name="running",
        verbs=("status",),
        summary="Get the progress of the crawl or cycle under way.",
        answer=running,
    ),
    Operation(
        method="POST",
        path="/scheduler/pause",
        name="pause",
        verbs=("run",),
        summary="Pause the scheduler.",
        answer=pause,
        body=(),
    ),
    Operation(
        method="POST",
        path="/scheduler/resume",
        name="resume",
        verbs=("run",),
        summary="Resume the scheduler.",
        answer=resume,
        body=(),
    ),
    Operation(
        method="POST",
        path="/cycles",
        name="run",
        verbs=("crawl", "cycle"),
        summary="Start a cycle now.",
        answer=run,
        status=202,
        body=(
            Field("budget", "number", "Visit budget; below 1: a share of the pages.", least=1e-9, most=1e15),
            Field("bytes", "string", "Byte budget, as 200MB; empty: the setting.", default=""),
            Field("policy", "string", "Policy for this cycle; empty: the setting.", default=""),
        ),
    ),
    Operation(
        method="GET",
        path="/events",
        name="events",
        summary="Stream events (server-sent events).",
        handler=events,
        query=(Field("kinds", "string", "Only these kinds, comma-separated: visit,cycle,alert.", default=""),),
        returns="text/event-stream",
    ),
)
