"""What requests must pass: host check, rate limits, token, CSRF, body size; response headers; /login and /logout."""

from __future__ import annotations

import asyncio
import html
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recrawl.serve.access.sessions import (
    COOKIE,
    SESSION_SECONDS,
    Session,
    constant_time_equal,
    decode_session,
    encode_session,
    form_token,
    new_session,
)
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem, problem_response, wants_page

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
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


_PUBLIC = ("/login", "/static/", "/healthz", "/replay/")


"""Paths that need no token; /replay/ checks a capability of its own."""


_PUSH_PATHS = ("/indexnow", "/websub/")


"""Paths that other servers call; they check keys of their own."""


_UPLOADS = "/api/v1/files/"


"""Paths with the larger body limit of uploads."""


_CLIENTS = 10_000


_BODY_RATE = 10_000.0


"""Bytes of a body for which a second more is granted."""


_DRAIN_BYTES, _DRAIN_SECONDS = 10_000_000, 2.0


"""How much of a refused request is still read."""


class RateLimiter:
    """A token bucket per client."""

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._burst = burst
        self._clock = clock
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, amount: float = 1.0) -> float:
        """Take tokens; return 0 if there were enough, else the seconds to wait."""
        now = self._clock()
        left, then = self._clients.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        wait = 0.0 if left >= amount else (amount - left) / self._rate
        self._clients[client] = (left if wait else left - amount, now)
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return wait


class Guard:
    """The middleware."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context
        limits = context.limits
        self._requests = RateLimiter(limits.per_minute, limits.burst)
        self._wrong_tokens = RateLimiter(limits.logins_per_minute, limits.logins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        session, fresh = self._session(request)
        scope["recrawl.session"] = session
        scope["recrawl.wrong_tokens"] = self._wrong_tokens
        page = wants_page(request) and not request.url.path.startswith("/replay/")  # stored pages get no cookie
        cookie = encode_session(session, self._context.secret) if fresh and page else ""
        guarded = _with_headers(send, cookie, secure=request.url.scheme == "https")
        try:
            self._check(request, session)
        except Problem as problem:
            if problem.status == 401 and wants_page(request):
                path = quote(request.url.path, safe="/")
                problem = Problem(303, "Log in first.", headers={"location": f"/login?next={path}"})
            await _drain(receive)
            await problem_response(problem, as_page=wants_page(request))(scope, receive, guarded)
            return
        limits = self._context.limits
        await self._app(scope, _bounded(receive, self._body_limit(request), limits.body_seconds), guarded)

    def _session(self, request: Request) -> tuple[Session, bool]:
        value = _cookie(request.headers)
        session = decode_session(value, self._context.secret, self._context.clock()) if value else None
        known = session is not None and session not in self._context.logged_out
        return (
            (session, False) if session and known else (new_session(self._context.clock(), authenticated=False), True)
        )

    def _check(self, request: Request, session: Session) -> None:
        """Raise a Problem if the request must be refused."""
        headers, path = request.headers, request.url.path
        client = request.client.host if request.client else ""
        if _host(headers.get("host", "")) not in self._context.hosts:
            raise Problem(421, "Unknown Host header: start the service with --allow-host NAME to accept it.")
        bearer = self._bearer(headers, client)
        known = bearer or session.authenticated
        wait = self._requests.take(f"known {client}" if known else client)  # others cannot use up what is theirs
        if wait:
            raise Problem(429, "Too many requests.", headers={"retry-after": str(int(wait) + 1)})
        limit = self._context.limits.url_bytes
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > limit:
            raise Problem(414, f"URL too long: the limit is {limit:,} bytes.")
        if "content-length" in headers and "transfer-encoding" in headers:
            detail = "Send either Content-Length or Transfer-Encoding, not both."
            raise Problem(400, detail, headers={"connection": "close"})
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._body_limit(request):
            raise _too_large(self._body_limit(request))
        if path.startswith(_PUSH_PATHS):
            return
        if self._context.token and not known and not path.startswith(_PUBLIC):
            detail = "Access token required: send 'Authorization: Bearer TOKEN'."
            raise Problem(401, detail, headers={"www-authenticate": "Bearer"})
        if request.method not in _SAFE and not bearer and not _same_origin(headers):
            raise Problem(403, "Cross-site request refused.")

    def _body_limit(self, request: Request) -> int:
        """Return the most bytes that this request's body may have."""
        upload = request.method == "PUT" and request.url.path.startswith(_UPLOADS)
        limits = self._context.limits
        return limits.upload_bytes if upload else limits.body_bytes

    def _bearer(self, headers: Headers, client: str) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self._context.token:
            return False
        return token_matches(self._context, self._wrong_tokens, client, token.strip())


def token_matches(context: Context, wrong_tokens: RateLimiter, client: str, token: str) -> bool:
    """Check an access token; raise a Problem after too many wrong ones. The right one is always accepted."""
    if constant_time_equal(token, context.token):
        return True
    if wrong_tokens.take(client):
        raise Problem(429, "Too many wrong tokens; wait a minute.", headers={"retry-after": "60"})
    return False


def csrf_token(request: Request, context: Context) -> str:
    """Return the value of the hidden field `csrf` of every form."""
    return form_token(request.scope["recrawl.session"], context.secret)


async def checked_form(request: Request, context: Context) -> FormData:
    """Return the fields of a form; raise a Problem unless its CSRF token is valid."""
    form = await request.form(max_files=0, max_fields=200)
    token = form.get("csrf") or request.headers.get("x-csrf-token", "")
    if not isinstance(token, str) or not constant_time_equal(token, csrf_token(request, context)):
        raise Problem(403, "Invalid or expired form: reload the page and try again.")
    return form


def session_cookie(context: Context, *, authenticated: bool, secure: bool) -> str:
    """Return the Set-Cookie value of a new session; an unauthenticated one logs the browser out."""
    session = new_session(context.clock(), authenticated=authenticated)
    return _set_cookie(encode_session(session, context.secret), secure=secure)


def _set_cookie(value: str, *, secure: bool) -> str:
    return (
        f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{'; Secure' if secure else ''}"
    )


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _host(header: str) -> str:
    """Return the host name of a Host header, without the port.

    >>> _host("LOCALHOST:80"), _host("[::1]:80"), _host("a.example")
    ('localhost', '[::1]', 'a.example')
    """
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdigit() else header).lower().rstrip(".")


def _same_origin(headers: Headers) -> bool:
    """Return whether a request comes from the service's own pages, or from no page at all."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin", "")
    own = not origin or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    return own and site in ("same-origin", "none")


def _too_large(limit: int) -> Problem:
    return Problem(413, f"Request too large: the limit is {limit:,} bytes.")


def _bounded(receive: Receive, limit: int, seconds: float) -> Receive:
    """Limit the size of a body as it arrives, for requests without Content-Length, and the time it takes."""
    seen, more, began = 0, True, asyncio.get_running_loop().time()

    async def counted() -> Message:
        nonlocal seen, more
        try:
            async with asyncio.timeout_at(began + seconds + seen / _BODY_RATE if more else None):
                message = await receive()
        except TimeoutError:
            raise Problem(408, "The request body arrives too slowly.", headers={"connection": "close"}) from None
        seen, more = seen + len(message.get("body", b"")), message.get("more_body", False)
        if seen > limit:
            await _drain(receive)
            raise _too_large(limit)
        return message

    return counted


async def _drain(receive: Receive) -> None:
    """Read some of a refused body: closing a connection while the client sends would lose the response."""
    size, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while more and size < _DRAIN_BYTES:
                message = await receive()
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)


def _with_headers(send: Send, cookie: str, *, secure: bool) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if cookie and not any(text.startswith(f"{COOKIE}=") for text in headers.getlist("set-cookie")):
                headers.append("set-cookie", _set_cookie(cookie, secure=secure))
        await send(message)

    return wrapped


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in - recrawl</title><link rel="stylesheet" href="/static/recrawl.css"></head>
<body class="login"><main><h1>recrawl</h1>
<form method="post" action="/login"><input type="hidden" name="csrf" value="{csrf}">
<input type="hidden" name="next" value="{next}">
<label for="token">Access token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus{invalid}>
{message}<button>Log in</button></form></main></body></html>"""


def routes(context: Context) -> list[Route]:
    """/login and /logout."""

    def page(request: Request, message: str = "", status: int = 200) -> Response:
        after = html.escape(local_path(request.query_params.get("next", "/")))
        error = f'<p id="wrong" role="alert">{html.escape(message)}</p>' if message else ""
        invalid = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
        text = _PAGE.format(csrf=csrf_token(request, context), next=after, message=error, invalid=invalid)
        return HTMLResponse(text, status)

    async def show(request: Request) -> Response:
        return page(request)

    async def log_in(request: Request) -> Response:
        form = await checked_form(request, context)
        client = request.client.host if request.client else ""
        if not context.token or not token_matches(
            context, request.scope["recrawl.wrong_tokens"], client, str(form.get("token"))
        ):
            return page(request, "Wrong access token.", 403)
        return _redirect(context, request, local_path(str(form.get("next", "/"))), authenticated=True)

    async def log_out(request: Request) -> Response:
        await checked_form(request, context)
        session = request.scope["recrawl.session"]
        if session.authenticated:
            await run_in_threadpool(context.logged_out.add, session, context.clock())
            context.events.end(session.name)
        return _redirect(context, request, "/login", authenticated=False)

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", log_in, methods=["POST"]),
        Route("/logout", log_out, methods=["POST"]),
    ]


def _redirect(context: Context, request: Request, path: str, *, authenticated: bool) -> Response:
    """Redirect with the cookie of a new session."""
    cookie = session_cookie(context, authenticated=authenticated, secure=request.url.scheme == "https")
    return RedirectResponse(path, 303, {"set-cookie": cookie})


def local_path(path: str) -> str:
    """Return the path if it stays on this server, else "/".

    >>> local_path("/pages"), local_path("//evil.example/"), local_path("https://evil.example/")
    ('/pages', '/', '/')
    """
    good = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if good else "/"
