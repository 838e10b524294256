"""Receivers of change notifications from other servers: IndexNow, and WebSub hubs.

These requests carry no access token. An IndexNow push carries one of the keys in the settings, and the host must
publish that key (`indexnow_keys`). A WebSub hub knows the random callback URL and signs what it sends. Accepted URLs
are stored for the next cycle, which weights them by the learned precision of their source.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from recrawl.repository.push.indexnow_keys import KeyClaim, KeyRefused, verify_key
from recrawl.repository.push.receiving import Accepted, accept_feed, announce
from recrawl.repository.push.websub import verify_intent
from recrawl.serve.access.sessions import constant_time_equal
from recrawl.serve.api.routes import as_json
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem

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
