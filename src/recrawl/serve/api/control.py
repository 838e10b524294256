"""The scheduler, as clients steer it, and what happens as a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from recrawl.choose import make_policy
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, plain
from recrawl.serve.context import Context
from recrawl.serve.events import Listener
from recrawl.serve.problems import Problem
from recrawl.settings import size

_BEAT = 15.0
"""Seconds of silence after which a comment is sent, so that nobody in between takes the stream for dead."""


def scheduler(context: Context, _: Arguments) -> dict[str, Any]:
    """What the scheduler does just now."""
    return asdict(context.scheduler.status())


def pause(context: Context, given: Arguments) -> dict[str, Any]:
    """Take no more turns; the one under way is stopped and gone on with later."""
    context.scheduler.pause()
    return scheduler(context, given)


def resume(context: Context, given: Arguments) -> dict[str, Any]:
    """Take turns again."""
    context.scheduler.resume()
    return scheduler(context, given)


def run(context: Context, given: Arguments) -> dict[str, Any]:
    """Take a turn now."""
    if given["policy"]:
        make_policy(given["policy"])  # complains when it is none
    if given["bytes"]:
        size(given["bytes"])
    if not context.scheduler.run_now(given["budget"], given["policy"], given["bytes"]):
        raise Problem(409, "A cycle is under way already.")
    return scheduler(context, given)


async def events(context: Context, request: Request, given: Arguments) -> Response:
    """What happens, as it happens: server-sent events."""
    if len(context.events) >= context.limits.streams:
        raise Problem(503, "Too many listeners.", headers={"retry-after": "30"})
    before = request.headers.get("last-event-id", "")
    after = int(before) if before.isascii() and before.isdigit() and len(before) < 16 else None
    kinds = frozenset(filter(None, given["kinds"].split(",")))
    return StreamingResponse(_told(context, kinds, after), media_type="text/event-stream")


async def _told(context: Context, kinds: frozenset[str], after: int | None) -> AsyncIterator[str]:
    listener: Listener = context.events.listen(after)
    try:
        yield "retry: 3000\n\n"
        while True:
            try:
                event = await asyncio.wait_for(listener.queue.get(), _BEAT)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None:
                return
            if not kinds or event.kind in kinds:
                data = json.dumps(plain(event.data), allow_nan=False)
                yield f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n"
    finally:
        context.events.leave(listener)


OPERATIONS = (
    Operation(
        method="GET", path="/scheduler", name="scheduler", verbs=("run",), summary="The scheduler.", answer=scheduler
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
        summary="Let it go on.",
        answer=resume,
        body=(),
    ),
    Operation(
        method="POST",
        path="/cycles",
        name="run",
        verbs=("crawl", "cycle"),
        summary="Begin a cycle now.",
        answer=run,
        status=202,
        body=(
            Field("budget", "number", "Most visits; under 1, a share of the pages.", least=1e-9, most=1e15),
            Field("bytes", "string", "Most bytes, as 200MB; as the setting says if empty.", default=""),
            Field("policy", "string", "How to choose pages, for this cycle only.", default=""),
        ),
    ),
    Operation(
        method="GET",
        path="/events",
        name="events",
        summary="What happens, as it happens.",
        handler=events,
        query=(Field("kinds", "string", "Only these, with commas between: visit,cycle,alert.", default=""),),
        returns="text/event-stream",
    ),
)
