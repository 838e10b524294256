"""Receivers of change notifications from other servers: IndexNow, and WebSub hubs.

These requests carry no access token. An IndexNow push carries one of the keys in the settings, and the host must
publish that key (`indexnow_keys`). A WebSub hub knows the random callback URL and signs what it sends. Accepted URLs
are stored for the next cycle, which weights them by the learned precision of their source.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from recrawl.crawl.hints.pushes import Accepted, accept
from recrawl.discover.sitemaps import parse
from recrawl.repository.opening import options_of
from recrawl.serve.api.operations import as_json
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem
from recrawl.serve.push.indexnow_keys import KeyClaim, verify_key
from recrawl.serve.push.websub import active, confirm
from recrawl.serve.sessions import constant_time_equal

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_MAX_URLS = 10_000
"""URLs in one push; the protocol's limit."""
_MAX_ENTRIES = 1000
_HASHES = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


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
        verify_key(repository.store, claim, options_of(context.settings()), context.clock())
        source = f"indexnow {claim.host} {hashlib.sha256(claim.key.encode()).hexdigest()[:8]}"
        return accept(repository, claim.urls, "indexnow", source, context.clock())


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _verify_intent(context: Context, name: str, query: dict[str, str]) -> Response:
    """Answer a hub that verifies a subscription or reports that it was denied."""
    with context.writing() as repository:
        store = repository.store
        known = store.subscriptions.get(name)
        mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
        if mode == "unsubscribe" and known is None:
            return PlainTextResponse(query.get("hub.challenge", "")[:1000])
        if known is None or topic != known["topic"]:
            raise Problem(404, "Unknown subscription.")
        if mode == "denied":
            store.subscriptions.deny(name)
            return PlainTextResponse("")
        lease = query.get("hub.lease_seconds", "")
        if mode != "subscribe" or not (lease.isascii() and lease.isdigit() and len(lease) < 10):
            raise Problem(404, "Unknown subscription.")
        confirm(store, name, context.clock(), int(lease))
    return PlainTextResponse(query.get("hub.challenge", "")[:1000])


def _accept_content(context: Context, name: str, body: bytes, signature: str) -> None:
    """Accept the URLs of a feed that a hub sent; ignore a wrong signature silently, as WebSub recommends."""
    with context.reading() as repository:
        known = repository.store.subscriptions.get(name)
    if known is None or not active(known, context.clock()):
        raise Problem(404, "Unknown subscription.")
    if not _valid_signature(known["secret"], body, signature):
        return
    feed = parse(body, known["topic"], max_bytes=context.limits.body_bytes, max_entries=_MAX_ENTRIES)
    urls = list(dict.fromkeys(entry.url for entry in feed.entries))
    with context.writing() as repository:
        accept(repository, urls, "websub", f"websub {name[:12]}", context.clock())


def _valid_signature(secret: str, body: bytes, signature: str) -> bool:
    method, _, digest = signature.partition("=")
    if method not in _HASHES:
        return False
    return constant_time_equal(hmac.new(secret.encode(), body, _HASHES[method]).hexdigest(), digest.strip().lower())
