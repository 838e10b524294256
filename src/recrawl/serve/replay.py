"""Stored pages as they looked, each in a sandbox of its own origin.

/replay/CAPABILITY/VERSION/URL           what the URL showed at the time of a version
/replay/CAPABILITY/VERSION.added.7/URL   the same, with the text marked that version 7 of the page lacks
/replay/CAPABILITY/VERSION.pick/URL      the same, to choose an element by a click

Three barriers, each of which holds alone:

- the page is inert: `repository.replay` removes what runs and lets every URL lead here;
- the Content-Security-Policy of every answer has `sandbox` without any permission: the page has an opaque origin, so it
  reads no cookie and no storage of the dashboard, runs no script, sends no form, opens no window, and moves no other
  frame. The policy lets it load images, fonts and stylesheets from /replay/CAPABILITY/ and nothing else. To choose an
  element, one script of ours runs in it, known by its digest; no other does, and it tells the dashboard a selector;
- the dashboard shows it in a frame with the attribute `sandbox`, and its policy lets frames show this service alone.

A page of an opaque origin sends no cookies, so its images could not be authorised by the session. The capability
authorises them: a signature over the time until which it is valid. It opens /replay/ for reading and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.errors import DamagedRecord, NotKnown, Unreadable
from recrawl.repository.replay import Shown, show
from recrawl.serve.access.sessions import constant_time_equal, signature
from recrawl.serve.context import Context
from recrawl.serve.memento import target_url
from recrawl.serve.problems import Problem
from recrawl.times import remaining

PATH = "/replay/"
_HOUR = 3600
_LIFETIME = 12 * _HOUR
_VIEW = re.compile(r"(\d{1,18})(?:\.(added|removed)\.(\d{1,18})|\.(pick))?")
"""A version; for its page, with the text marked that another version lacks, or with our script."""
_PICKER = Path(__file__).with_name("dashboard") / "static" / "pick.js"


def capability(context: Context) -> str:
    """Return a capability for the next hours; the same one within an hour, so that browsers may cache."""
    until = int(context.clock()) // _HOUR * _HOUR + _LIFETIME
    return f"{until}-{signature(context.secret, 'replay', str(until))[:40]}"


def address(context: Context, version: int, url: str, *, mark: str = "") -> str:
    """Return the address under which a version of a page is shown; `mark` as `added.7` marks what version 7 lacks."""
    return f"{PATH}{capability(context)}/{version}{'.' if mark else ''}{mark}/{url}"


def routes(context: Context) -> list[Route]:
    """/replay."""

    async def replay(request: Request) -> Response:
        given, which = request.path_params["capability"], request.path_params["which"]
        _check(context, given)
        view = _VIEW.fullmatch(which)
        if view is None:
            raise Problem(404, f"There is no view '{which}' of a stored page.")
        url = target_url(request, f"{PATH}{given}/{which}/")
        against = int(view[3]) if view[3] else None
        prefix = f"{PATH}{given}/{view[1]}/"
        try:
            shown = await run_in_threadpool(_read, context, int(view[1]), url, prefix, against, view[2] or "")
            status = 200
            if view[4] and shown.content_type.startswith("text/html"):
                return _to_choose(request, given, shown)
        except (NotKnown, DamagedRecord, Unreadable) as error:
            status, text = 404, f"Not in the archive: {url}\n\n{error}.\n"
            shown = Shown("text/plain; charset=utf-8", text.encode("utf-8", "replace"))
        return Response(shown.body, status, headers=_headers(request, given, shown.content_type))

    return [Route(PATH + "{capability}/{which}/{url:path}", replay, methods=["GET"])]


def _to_choose(request: Request, given: str, shown: Shown) -> Response:
    """A page in which an element can be chosen: our script is its only one."""
    script = _PICKER.read_bytes()
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    headers = _headers(request, given, shown.content_type)
    policy = headers["content-security-policy"].replace(
        "sandbox;", f"sandbox allow-scripts; script-src 'sha256-{digest}';"
    )
    body = shown.body + b"<script>" + script + b"</script>"
    return Response(body, headers=headers | {"content-security-policy": policy})


def _read(context: Context, version: int, url: str, prefix: str, against: int | None, kind: str) -> Shown:
    with context.reading() as repository:
        return show(repository, version, url, prefix, against=against, kind=kind)


def _check(context: Context, given: str) -> None:
    """Raise a Problem unless the capability is ours and still valid."""
    until, _, mac = given.partition("-")
    valid = until.isdigit() and constant_time_equal(mac, signature(context.secret, "replay", until)[:40])
    if not valid or not remaining(int(until), context.clock(), _HOUR + _LIFETIME):
        raise Problem(403, "This view has expired: reload the page of the dashboard that showed it.")


def _headers(request: Request, given: str, content_type: str) -> dict[str, str]:
    parts = urlsplit(str(request.base_url))
    own = "'self'" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}{PATH}{given}/"
    policy = (
        f"sandbox; default-src 'none'; style-src 'unsafe-inline' {own}; img-src data: {own}; font-src data: {own}; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )
    return {
        "content-type": content_type or "application/octet-stream",
        "content-security-policy": policy,
        "access-control-allow-origin": "*",  # fonts are requested with an origin; this one is opaque
        "cross-origin-resource-policy": "cross-origin",
        "referrer-policy": "no-referrer",
        "x-dns-prefetch-control": "off",
        "cache-control": "private, max-age=600",
    }
