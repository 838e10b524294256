"""Other servers tell us of changes: IndexNow, and hubs of WebSub.

Nobody here is logged in. IndexNow shows one of the keys that the settings name, and the host must have it in a file
(`proofs`); a hub of WebSub knows the address of the callback, which cannot be guessed, and signs what it sends. What
they say is put down for the next cycle, which believes it as far as it has learned to.
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
from recrawl.serve.push.indexnow_keys import KeyClaim, check
from recrawl.serve.push.websub import active, confirm, denied, find
from recrawl.serve.sessions import same

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_MOST = 10_000
"""Addresses in one push, as the protocol has it."""
_ENTRIES = 1000
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
            raise Problem(400, "Send host, key and urlList.")
        location = given.get("keyLocation", "")
        if not isinstance(location, str):
            raise Problem(400, "keyLocation is an address.")
        return await _indexnow(context, KeyClaim(host.lower(), key, urls, location))

    async def intent(request: Request) -> Response:
        return await run_in_threadpool(_intent, context, request.path_params["name"], dict(request.query_params))

    async def content(request: Request) -> Response:
        body = await request.body()
        signed = request.headers.get("x-hub-signature", "")
        await run_in_threadpool(_content, context, request.path_params["name"], body, signed)
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
        raise Problem(400, "The body is a JSON object.")
    return given


def _texts(values: list[Any]) -> bool:
    return 0 < len(values) <= _MOST and all(isinstance(item, str) for item in values)


async def _indexnow(context: Context, claim: KeyClaim) -> Response:
    keys = context.settings()["indexnow_keys"]
    known = [same(claim.key, one) for one in keys]  # all of them are compared, so that time tells nothing
    if not _KEY.fullmatch(claim.key) or not any(known):
        raise Problem(403, "This key is not known here.")
    if any(_host(url) != claim.host for url in claim.urls):
        raise Problem(422, "An address is not of the host that was named.")
    told = await run_in_threadpool(_proven, context, claim)
    if told.refused and not told.taken:
        raise Problem(429, "Too many addresses; come again in an hour.", headers={"retry-after": "3600"})
    return as_json({"taken": told.taken, "repeated": told.repeated, "foreign": told.foreign, "bad": told.bad}, 202)


def _proven(context: Context, claim: KeyClaim) -> Accepted:
    """Take what is said in the name of a host that has the key."""
    with context.apart() as repository:
        check(repository.store.db, claim, options_of(context.settings()), context.clock())
        source = f"indexnow {claim.host} {hashlib.sha256(claim.key.encode()).hexdigest()[:8]}"
        return accept(repository, claim.urls, "indexnow", source, context.clock())


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _hand_over(context: Context, urls: list[str], kind: str, source: str) -> Accepted:
    with context.apart() as repository:
        return accept(repository, urls, kind, source, context.clock())


def _intent(context: Context, name: str, query: dict[str, str]) -> Response:
    """A hub asks whether we want what somebody subscribed to in our name."""
    with context.apart() as repository:
        db = repository.store.db
        known = find(db, name)
        mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
        if mode == "unsubscribe" and known is None:
            return PlainTextResponse(query.get("hub.challenge", "")[:1000])
        if known is None or topic != known["topic"]:
            raise Problem(404, "We did not ask for this.")
        if mode == "denied":
            denied(db, name)
            return PlainTextResponse("")
        lease = query.get("hub.lease_seconds", "")
        if mode != "subscribe" or not (lease.isascii() and lease.isdigit() and len(lease) < 10):
            raise Problem(404, "We did not ask for this.")
        confirm(db, name, context.clock(), int(lease))
    return PlainTextResponse(query.get("hub.challenge", "")[:1000])


def _content(context: Context, name: str, body: bytes, signed: str) -> None:
    """A hub sends what is new. A wrong signature is not told to the sender, as the recommendation has it."""
    with context.reading() as repository:
        known = find(repository.store.db, name)
    if known is None or not active(known, context.clock()):
        raise Problem(404, "We did not ask for this.")
    if not _signed_right(known["secret"], body, signed):
        return
    feed = parse(body, known["topic"], max_bytes=context.limits.body_bytes, max_entries=_ENTRIES)
    urls = list(dict.fromkeys(entry.url for entry in feed.entries))
    _hand_over(context, urls, "websub", f"websub {name[:12]}")


def _signed_right(secret: str, body: bytes, signed: str) -> bool:
    method, _, shown = signed.partition("=")
    if method not in _HASHES:
        return False
    return same(hmac.new(secret.encode(), body, _HASHES[method]).hexdigest(), shown.strip().lower())
