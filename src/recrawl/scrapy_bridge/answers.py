"""Scrapy's responses and errors as answers of recrawl, and stored versions as responses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)
from scrapy.http import Response
from scrapy.responsetypes import responsetypes

from recrawl import Answer, Failure, Page, Repository
from recrawl.columns import DAY
from recrawl.errors import RecrawlError

STORED = "recrawl"
"""The flag of responses that come from the repository."""

_FAILURES: tuple[tuple[type[Exception], Failure], ...] = (
    (IgnoreRequest, Failure.ROBOTS),
    (CannotResolveHostError, Failure.DNS),
    (DownloadConnectionRefusedError, Failure.CONNECT),
    (DownloadTimeoutError, Failure.TIMEOUT),
    (DownloadCancelledError, Failure.TOO_LARGE),
    (DownloadFailedError, Failure.CONNECT),
    (ResponseDataLossError, Failure.CUT_OFF),
)
_REMEMBERED = 7 * DAY
"""Seconds for which a dead link is not requested again."""
_MAX_MOVES = 5
_ENCODED = ("content-encoding", "transfer-encoding", "content-length")
"""Headers that do not fit a body that was decompressed."""


def failure_of(url: str, error: BaseException | None, at: float) -> Answer:
    """The answer of a download that failed; a request that a middleware ignored counts as refused by robots.txt."""
    kind = next((failure for known, failure in _FAILURES if isinstance(error, known)), Failure.BAD_RESPONSE)
    return Answer.failed(url, kind, " ".join(f"{type(error).__name__}: {error}".split())[:200], at=at)


def answer_of(request: Request, response: Response, at: float) -> Answer:
    """The answer that a response is."""
    headers = tuple(_headers(response))
    size = sum(len(name) + len(value) + 4 for name, value in headers) + len(response.body)
    return Answer.made(
        response.url,
        response.status,
        tuple((name, value) for name, value in headers if name.lower() not in _ENCODED),
        response.body,
        at=at,
        seconds=float(request.meta.get("download_latency", 0.0)),
        received=size,
        ip=str(response.ip_address or ""),
    )


def redirects_of(request: Request, at: float) -> list[Answer]:
    """The redirects that Scrapy followed before this request, in order; a meta refresh counts as a temporary one."""
    urls: list[str] = request.meta.get("redirect_urls", [])
    reasons: list[int | str] = request.meta.get("redirect_reasons", [302] * len(urls))
    targets = [*urls, request.url][1:]
    return [
        Answer.made(url, reason if isinstance(reason, int) else 302, (("Location", target),), at=at)
        for url, reason, target in zip(urls, reasons, targets, strict=True)
    ]


def stored_response(repository: Repository, url: str) -> tuple[Response | None, datetime | None]:
    """What the repository holds for a URL, and when that was downloaded.

    It is the newest version, 404 for a page that is gone or a link that was dead in the last days, or None.
    """
    try:
        asked = repository.page(url)
        page = _moved_to(repository, asked)
        if page.state == "gone":
            return Response(url, status=404, flags=[STORED]), page.last_visit
        if page.state not in ("live", "missing"):
            return None, None
        if page.title is None:
            return _dead(repository, page, url)
        version = page.version()
        status, headers, body = version.status, version.headers, version.body
    except RecrawlError:
        return None, None  # it is not known, or its record is damaged: download it
    answered = page.answered_url if page.answered_url != asked.url else url
    named = {name: value for name, value in headers if name.lower() not in _ENCODED}
    kind = responsetypes.from_args(headers={k.encode(): v.encode() for k, v in named.items()}, url=answered, body=body)
    return kind(answered, status=status, headers=named, body=body, flags=[STORED]), version.time


def _dead(repository: Repository, page: Page, url: str) -> tuple[Response | None, datetime | None]:
    """404 for a page that was never there and was asked for lately: its links stay, and need no request each time."""
    tried = (repository.storage.store.pages.details(page.id) or {}).get("last_try")
    if page.state != "missing" or tried is None or not 0 <= repository.now() - tried < _REMEMBERED:
        return None, None
    return Response(url, status=404, flags=[STORED]), datetime.fromtimestamp(tried, UTC)


def _moved_to(repository: Repository, page: Page) -> Page:
    """The page that a page has moved to, or the page itself."""
    for _ in range(_MAX_MOVES):
        if page.state != "moved" or not page.moved_to:
            break
        page = repository.page(page.moved_to)
    return page


def _headers(response: Response) -> Iterator[tuple[str, str]]:
    for name, values in response.headers.items():
        for value in values:
            yield name.decode("latin-1"), value.decode("latin-1")
