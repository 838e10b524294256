"""Memento (RFC 7089): versions of a page by time.

/timegate/URL            redirects to the version in force at Accept-Datetime
/timemap/URL             lists all versions, as link-format
/memento/14 DIGITS/URL   one version, as sandboxed plain text, never as live markup
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.errors import NotKnown
from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.pages import StoredVersion
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem
from recrawl.serve.stored_files import SANDBOX

_MAX_VERSIONS = 10_000
"""A TimeMap lists the newest versions only."""
_SECOND = 0.999
"""Added to requested times: Memento times are whole seconds, rounded down."""
_ENCODING = re.compile(r"[A-Za-z0-9._-]{1,40}")


def routes(context: Context) -> list[Route]:
    """/timegate, /timemap and /memento."""

    async def timegate(request: Request) -> Response:
        at = _accept_datetime(request)
        url, version, _ = await run_in_threadpool(_version_at, context, target_url(request, "/timegate/"), at)
        location = _memento_url(request, version, url)
        headers = {"location": location, "vary": "accept-datetime", "link": _links(request, url)}
        return Response(status_code=302, headers=headers)

    async def timemap(request: Request) -> Response:
        url, times = await run_in_threadpool(_version_times, context, target_url(request, "/timemap/"))
        return Response(_link_format(request, url, times), media_type="application/link-format")

    async def memento(request: Request) -> Response:
        digits = request.path_params["at"]
        try:
            at = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise Problem(404, f"Invalid time '{digits}': use 14 digits, as in 20260301120000.") from None
        target = target_url(request, f"/memento/{digits}/")
        url, version, body = await run_in_threadpool(_version_at, context, target, at + _SECOND)
        charset = version.encoding if _ENCODING.fullmatch(version.encoding) else "utf-8"
        headers = {
            "memento-datetime": _http_date(version.at),
            "link": _links(request, url),
            "content-type": f"text/plain; charset={charset}",
            "content-security-policy": SANDBOX,
        }
        return Response(body, headers=headers)

    return [
        Route("/timegate/{url:path}", timegate, methods=["GET"]),
        Route("/timemap/{url:path}", timemap, methods=["GET"]),
        Route("/memento/{at}/{url:path}", memento, methods=["GET"]),
    ]


def _accept_datetime(request: Request) -> float | None:
    text = request.headers.get("accept-datetime", "")
    if not text:
        return None
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        raise Problem(400, "Invalid Accept-Datetime: write it as 'Thu, 31 May 2007 20:35:00 GMT'.") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + _SECOND


def target_url(request: Request, prefix: str) -> str:
    """Return the URL after the prefix as the client sent it, with its escapes and query."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.decode("ascii", "replace").partition("?")[0].removeprefix(prefix)
    query = request.scope["query_string"].decode("ascii", "replace")
    return path + (f"?{query}" if query else "")


def _version_at(context: Context, target: str, at: float | None) -> tuple[str, StoredVersion, bytes]:
    """Return the version in force at a time: the newest for None, the first if the time is earlier."""
    with context.reading() as repository:
        page = reading.find(repository, target)
        version = reading.version_in_force(repository, page["id"], at)
        return page["url"], version, reading.body_of(repository, version)


def _version_times(context: Context, target: str) -> tuple[str, list[float]]:
    with context.reading() as repository:
        page = reading.find(repository, target)
        times = reading.version_times(repository, page["id"], _MAX_VERSIONS)
    if not times:
        raise NotKnown("this page has no downloaded version")
    return page["url"], times[::-1]


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _memento_url(request: Request, version: StoredVersion, url: str) -> str:
    return f"{_base(request)}/memento/{_digits(version.at)}/{url}"


def _links(request: Request, url: str) -> str:
    base = _base(request)
    return (
        f'<{url}>; rel="original", <{base}/timegate/{url}>; rel="timegate", '
        f'<{base}/timemap/{url}>; rel="timemap"; type="application/link-format"'
    )


def _link_format(request: Request, url: str, times: list[float]) -> str:
    base = _base(request)
    first, last = _http_date(times[0]), _http_date(times[-1])
    lines = [
        f'<{url}>; rel="original"',
        f'<{base}/timegate/{url}>; rel="timegate"',
        f'<{base}/timemap/{url}>; rel="self"; type="application/link-format"; from="{first}"; until="{last}"',
    ]
    for number, at in enumerate(times):
        kind = " ".join(
            word for word, so in (("first", number == 0), ("last", number == len(times) - 1), ("memento", True)) if so
        )
        lines.append(f'<{base}/memento/{_digits(at)}/{url}>; rel="{kind}"; datetime="{_http_date(at)}"')
    return ",\n".join(lines) + "\n"


def _digits(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y%m%d%H%M%S")


def _http_date(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(at), UTC), usegmt=True)
