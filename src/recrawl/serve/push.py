"""Routes for other servers that announce changes (/indexnow, /websub/NAME), and the renewal of subscriptions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from recrawl.cluster.opening import open_repository
from recrawl.errors import RecrawlError
from recrawl.repository.delivery.senders import Senders
from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.push import (
    Accepted,
    KeyClaim,
    KeyRefused,
    accept_feed,
    announce,
    begin_renewal,
    due_renewals,
    renewal_failed,
    request_renewal,
    verify_intent,
    verify_key,
)
from recrawl.repository.repository import Repository
from recrawl.serve.access.sessions import constant_time_equal
from recrawl.serve.api.routes import as_json
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem
from recrawl.settings import Settings

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")


_MAX_URLS = 10_000


"""URLs in one push; the protocol's limit."""


_REFUSALS = {"unconfirmed": 403, "location": 422, "rate": 429, "held": 503}


"""Statuses of refused keys."""


def routes(context: Context) -> list[Route]:
    """/indexnow and /websub/NAME"""

    async def indexnow_one(request: Request) -> Response:
        query = request.query_params
        url = query.get("url", "")
        host = urlsplit(url).netloc if url.isprintable() else ""
        claim = KeyClaim(host.lower(), query.get("key", ""), [url], query.get("keyLocation", ""))
        return await _indexnow(context, claim)

    async def indexnow_many(request: Request) -> Response:
        given = await _json(request)
        key, host, urls = given.get("key"), given.get("host"), given.get("urlList")
        if not isinstance(key, str) or not isinstance(host, str) or not isinstance(urls, list) or not _texts(urls):
            raise Problem(400, f"Send host, key and urlList (1 to {_MAX_URLS:,} URLs).")
        location = given.get("keyLocation", "")
        if not isinstance(location, str):
            raise Problem(400, "keyLocation must be a URL.")
        return await _indexnow(context, KeyClaim(host.lower(), key, urls, location))

    async def intent(request: Request) -> Response:
        return await run_in_threadpool(_verify_intent, context, request.path_params["name"], dict(request.query_params))

    async def content(request: Request) -> Response:
        body = await request.body()
        signature = request.headers.get("x-hub-signature", "")
        await run_in_threadpool(_accept_content, context, request.path_params["name"], body, signature)
        return Response(status_code=202)

    return [
        Route("/indexnow", indexnow_one, methods=["GET"]),
        Route("/indexnow", indexnow_many, methods=["POST"]),
        Route("/websub/{name}", intent, methods=["GET"]),
        Route("/websub/{name}", content, methods=["POST"]),
    ]


async def _json(request: Request) -> dict[str, Any]:
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not valid JSON.") from None
    if not isinstance(given, dict):
        raise Problem(400, "The body must be a JSON object.")
    return given


def _texts(values: list[Any]) -> bool:
    return 0 < len(values) <= _MAX_URLS and all(isinstance(item, str) for item in values)


async def _indexnow(context: Context, claim: KeyClaim) -> Response:
    keys = context.settings()["indexnow_keys"]
    known = [constant_time_equal(claim.key, one) for one in keys]  # compare with all keys: constant time
    if not _KEY.fullmatch(claim.key) or not any(known):
        raise Problem(403, "Unknown key: add it to the setting indexnow_keys.")
    if any(_host(url) != claim.host for url in claim.urls):
        raise Problem(422, f"A URL is not on the host '{claim.host}'.")
    result = await run_in_threadpool(_accept_verified, context, claim)
    if result.refused and not result.taken:
        raise Problem(429, "Too many URLs; try again in an hour.", headers={"retry-after": "3600"})
    counts = {"taken": result.taken, "repeated": result.repeated, "foreign": result.foreign, "bad": result.bad}
    return as_json(counts, 202)


def _accept_verified(context: Context, claim: KeyClaim) -> Accepted:
    """Verify the key, then accept the URLs."""
    with context.writing() as repository:
        try:
            verify_key(repository, claim)
        except KeyRefused as error:
            headers = {"retry-after": "3600"} if error.reason in ("rate", "held") else None
            raise Problem(_REFUSALS[error.reason], str(error), headers=headers) from error
        source = f"indexnow {claim.host} {hashlib.sha256(claim.key.encode()).hexdigest()[:8]}"
        return announce(repository, claim.urls, "indexnow", source)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _verify_intent(context: Context, name: str, query: dict[str, str]) -> Response:
    with context.writing() as repository:
        return PlainTextResponse(verify_intent(repository, name, query))


def _accept_content(context: Context, name: str, body: bytes, signature: str) -> None:
    with context.writing() as repository:
        accept_feed(repository, name, body, signature)


_CHECK_INTERVAL = 15.0


_LAST_SECONDS, _STOP_SECONDS = 3.0, 8.0


"""How long the thread waits at the end for requests under way, and how long its owner waits for the thread."""


Renewing = Senders[tuple[str, str]]


"""Threads that request renewals; a result is the name of a subscription and the error, if any."""


def renew(repository: Repository, senders: Renewing) -> int:
    """Start to request the renewals that are due; return how many. Those of a busy hub stay due."""
    settings, started = repository.settings, 0
    for row in due_renewals(repository):
        if senders.free(row["hub"]):
            begin_renewal(repository, row)
            senders.start(row["hub"], _request(row, settings))
            started += 1
    return started


def settle(repository: Repository, senders: Renewing, seconds: float = 0.0) -> None:
    """Record the errors of the requests that have ended; wait up to `seconds` for those under way."""
    for _, result in senders.collect(seconds):
        if result is not None and result[1]:
            renewal_failed(repository, *result)


def _request(row: dict[str, Any], settings: Settings) -> Callable[[], tuple[str, str]]:
    return lambda: (row["name"], request_renewal(row, settings))


class Renewals:
    """Thread that renews subscriptions."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._wake = threading.Event()
        self._ending = False
        self._senders: Renewing = Senders(self._wake.set)
        self._thread = threading.Thread(target=self._loop, name="renewals", daemon=True)

    def start(self) -> None:
        """Start the thread; overdue renewals are requested immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; requests under way have a few seconds to end."""
        self._ending = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _loop(self) -> None:
        with open_repository(self._folder, clock=self._clock) as repository:
            while True:
                with contextlib.suppress(*TEMPORARY_ERRORS, RecrawlError):  # busy, or invalid settings: retried in 15 s
                    renew(repository, self._senders)
                    settle(repository, self._senders, _LAST_SECONDS if self._ending else 0.0)
                if self._ending:
                    return
                self._wake.wait(_CHECK_INTERVAL)
                self._wake.clear()
