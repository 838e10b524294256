"""Who may ask, how often and how much, and what a browser may do with the answer. One layer around the whole app.

name        we answer to our own names only, or any web page could reach us by DNS rebinding
pace        requests a minute from one address
token       beyond loopback: a bearer token, or a session that has shown it
origin      what changes something must come from a page of ours, or from a program that shows the token
size        bodies are bounded
headers     no script but our own files, no frames, no guessing of types
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recrawl.serve.context import Context
from recrawl.serve.problems import Problem, answer, wants_page
from recrawl.serve.sessions import COOKIE, LASTS, Session, form_token, new_session, opened, same, sealed

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = ("/login", "/static/", "/healthz")
"""What can be had without a token."""
_PUSHED = ("/indexnow", "/websub/")
"""What other servers call: these have keys of their own, and no browser."""
_UPLOADS = "/api/v1/files/"
"""Where files are put, which may be larger than other requests."""
_CLIENTS = 10_000
_DROPPED, _READ_ON = 10_000_000, 2.0
"""Bytes, and seconds, for which a request is read on after it was refused."""


class Paces:
    """How fast each client may go: a bucket of requests that fills up again by the clock."""

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._burst = burst
        self._clock = clock
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, amount: float = 1.0) -> float:
        """Seconds to wait before the next one may come; 0 when this one may."""
        now = self._clock()
        left, then = self._clients.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        wait = 0.0 if left >= amount else (amount - left) / self._rate
        self._clients[client] = (left if wait else left - amount, now)
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return wait

    def left(self, client: str) -> bool:
        """Whether another one may come, without taking it."""
        before = self._clients.get(client, (self._burst, self._clock()))
        return min(self._burst, before[0] + (self._clock() - before[1]) * self._rate) >= 1.0


class Guard:
    """The layer itself."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context
        limits = context.limits
        self._paces = Paces(limits.per_minute, limits.burst)
        self._wrong = Paces(limits.logins_per_minute, limits.logins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        session, fresh = self._session(request)
        scope["recrawl.session"] = session
        scope["recrawl.wrong"] = self._wrong
        cookie = sealed(session, self._context.secret) if fresh and wants_page(request) else ""
        guarded = _with_headers(send, cookie, secure=request.url.scheme == "https")
        try:
            self._check(request, session)
        except Problem as problem:
            if problem.status == 401 and wants_page(request):
                where = quote(request.url.path, safe="/")
                problem = Problem(303, "Please log in.", headers={"location": f"/login?next={where}"})
            await _dropped(receive)
            await answer(problem, as_page=wants_page(request))(scope, receive, guarded)
            return
        await self._app(scope, _bounded(receive, self._most(request)), guarded)

    def _session(self, request: Request) -> tuple[Session, bool]:
        value = _cookie(request.headers)
        session = opened(value, self._context.secret, self._context.clock()) if value else None
        return (session, False) if session else (new_session(self._context.clock(), known=False), True)

    def _check(self, request: Request, session: Session) -> None:
        """Raise what stands against this request, if anything does."""
        headers, path = request.headers, request.url.path
        client = request.client.host if request.client else ""
        if _host(headers.get("host", "")) not in self._context.hosts:
            raise Problem(421, "This is not a name of ours: start the service with --allow-host to answer to it.")
        wait = self._paces.take(client)
        if wait:
            raise Problem(429, "Too many requests.", headers={"retry-after": str(int(wait) + 1)})
        most = self._context.limits.address_bytes
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > most:
            raise Problem(414, f"An address has at most {most:,} bytes here.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._most(request):
            raise Problem(413, f"A request has at most {self._most(request):,} bytes here.")
        if path.startswith(_PUSHED):
            return
        bearer = self._bearer(headers, client)
        if self._context.token and not bearer and not session.known and not path.startswith(_OPEN):
            raise Problem(401, "Show the token: 'Authorization: Bearer TOKEN'.", headers={"www-authenticate": "Bearer"})
        if request.method not in _SAFE and not bearer and not _from_here(headers):
            raise Problem(403, "This request came from another web site, and was not obeyed.")

    def _most(self, request: Request) -> int:
        """Bytes that a request may have."""
        upload = request.method == "PUT" and request.url.path.startswith(_UPLOADS)
        limits = self._context.limits
        return limits.upload_bytes if upload else limits.body_bytes

    def _bearer(self, headers: Headers, client: str) -> bool:
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self._context.token:
            return False
        return shown_right(self._context, self._wrong, client, shown.strip())


def shown_right(context: Context, wrong: Paces, client: str, shown: str) -> bool:
    """Whether this is the token; who tries too many wrong ones is refused for a while, right or wrong."""
    if not wrong.left(client):
        raise Problem(429, "Too many wrong tokens; wait a minute.", headers={"retry-after": "60"})
    if same(shown, context.token):
        return True
    wrong.take(client)
    return False


def csrf_token(request: Request, context: Context) -> str:
    """For the hidden field `csrf` of every form."""
    return form_token(request.scope["recrawl.session"], context.secret)


async def checked_form(request: Request, context: Context) -> FormData:
    """The fields of a form of ours; raises when it is not."""
    form = await request.form(max_files=0, max_fields=200)
    shown = form.get("csrf") or request.headers.get("x-csrf-token", "")
    if not isinstance(shown, str) or not same(shown, csrf_token(request, context)):
        raise Problem(403, "This form is too old, or not from here: load the page again.")
    return form


def session_cookie(context: Context, *, known: bool, secure: bool) -> str:
    """The header that begins a session, or one that ends it."""
    session = new_session(context.clock(), known=known)
    return _set_cookie(sealed(session, context.secret), secure=secure)


def _set_cookie(value: str, *, secure: bool) -> str:
    return f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={LASTS}{'; Secure' if secure else ''}"


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _host(header: str) -> str:
    """The name in a Host header.

    >>> _host("LOCALHOST:80"), _host("[::1]:80"), _host("a.example")
    ('localhost', '[::1]', 'a.example')
    """
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdigit() else header).lower().rstrip(".")


def _from_here(headers: Headers) -> bool:
    """Whether a request that changes something comes from a page of ours, or from no page at all."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin", "")
    ours = not origin or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    return ours and site in ("same-origin", "none")


def _bounded(receive: Receive, most: int) -> Receive:
    """Bodies of unknown length are counted while they come."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            await _dropped(receive)
            raise Problem(413, f"A request has at most {most:,} bytes here.")
        return message

    return counted


async def _dropped(receive: Receive) -> None:
    """Read on for a while what was refused: a connection that is closed on who still sends takes the answer with it."""
    size, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(_READ_ON):
            while more and size < _DROPPED:
                message = await receive()
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)


def _with_headers(send: Send, cookie: str, *, secure: bool) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if cookie and "set-cookie" not in headers:
                headers.append("set-cookie", _set_cookie(cookie, secure=secure))
        await send(message)

    return wrapped
