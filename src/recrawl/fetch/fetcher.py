"""What the crawler gives a fetcher and needs of it: `recrawl.fetch.http.Client`, a plug-in, or a program outside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

from recrawl.characters import storable
from recrawl.model import Answer, Failure, Validators


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one download."""

    max_bytes: int = 10_000_000
    connect_seconds: float = 10.0
    total_seconds: float = 60.0
    stall_seconds: float = 20.0
    """Maximum time at less than 1 byte per second."""


@dataclass(slots=True)
class Request:
    """A download to be made. Treat it as immutable: it is not frozen for the same reason as `Answer`."""

    url: str
    validators: Validators | None = None
    private: bool = False
    max_bytes: int = 0
    """Overrides the client's limit; 0 keeps it."""
    cut: bool = False
    """Truncate the body at the limit instead of failing."""
    identity: bool = False
    """Ask for a body without compression and take it as it comes, for a server that labels bodies wrongly."""
    accepts: Callable[[str], bool] | None = None
    """Whether to download a body of this content type; None accepts all."""
    post: bytes | None = None
    """Body of a POST request; None makes it a GET."""
    headers: tuple[str, ...] = ()
    """Further header lines, as `Name: value`."""


class Fetcher(Protocol):
    """Runs downloads concurrently; used by one thread."""

    @property
    def room(self) -> int:
        """Number of downloads that may still be started now."""

    @property
    def busy(self) -> int:
        """Number of downloads under way."""

    def start(self, ticket: int, request: Request) -> None:
        """Start a download; `wait` returns its answer with the same ticket."""

    def wait(self, seconds: float) -> list[tuple[int, Answer]]:
        """Run the downloads for up to this time; returns as soon as something happens."""

    def watch(self, fd: int) -> None:
        """Make `wait` return early when this descriptor becomes readable."""

    def unwatch(self, fd: int) -> None:
        """Undo `watch`."""

    def request_head(self, url: str, validators: Validators | None, *, identity: bool = False) -> bytes:
        """The head of the request for this URL, for the archive; empty if it is not known."""

    def close(self) -> None:
        """Abort all downloads."""


def libcurl(**options: Any) -> Fetcher:
    """The fetcher that most runs use."""
    from recrawl.fetch.http import Client  # lazy: commands that only read have options but no fetcher

    return Client(**options)


_CONTROLS = re.compile("[\0-\x1f\x7f]")
_MOST_HEADERS = 200
_MOST_BYTES = 20_000
"""Of all header lines; readers of WARC files refuse heads of more than 32 KB, where some lines have a longer name."""
_NEEDED = {
    *("content-type", "content-encoding", "etag", "last-modified", "location", "link", "x-robots-tag", "retry-after"),
    *("cache-control", "expires", "date", "content-language"),
}
_LONGEST_NAME = 200
_LONGEST_URL = 10_000
_LONGEST_DETAIL = 500
_LARGEST = 1 << 53
_YEAR_1, _YEAR_9999 = -62_135_596_800.0, 253_402_300_799.0


def bounded_answer(answer: Answer, now: float) -> Answer:
    """The answer, or a copy with all values in bounds. A time that is none becomes `now`.

    >>> odd = Answer.made("https://a.example/", 200, [("X-Name", "a\\r\\nSet-Cookie: b")], at=float("nan"))
    >>> bounded_answer(odd, 60.0).headers, bounded_answer(odd, 60.0).at
    ((('X-Name', 'a  Set-Cookie: b'),), 60.0)
    """
    said = "".join(chain.from_iterable(answer.headers))
    if not (said.isascii() and said.isprintable() and len(said) < _MOST_BYTES and len(answer.headers) < _MOST_HEADERS):
        headers = tuple(_fitting(answer.headers))
        fields = {name.lower(): value for name, value in headers}
        answer = replace(answer, headers=headers, fields=fields)
    if not (0 <= answer.status <= 999 and 0 <= answer.received <= _LARGEST):
        answer = replace(
            answer,
            status=answer.status if 0 <= answer.status <= 999 else 0,
            received=min(max(answer.received, 0), _LARGEST),
        )
    if not (_YEAR_1 <= answer.at <= _YEAR_9999 and 0.0 <= answer.seconds <= _LARGEST):
        answer = replace(
            answer,
            at=answer.at if _YEAR_1 <= answer.at <= _YEAR_9999 else now,
            seconds=answer.seconds if 0.0 <= answer.seconds <= _LARGEST else 0.0,
        )
    if answer.detail or not (answer.url.isascii() and answer.ip.isascii()):
        url, ip = _line(answer.url, _LONGEST_URL), _line(answer.ip, _LONGEST_NAME)
        answer = replace(answer, url=url, ip=ip, detail=_line(answer.detail, _LONGEST_DETAIL))
    return answer


def _fitting(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The header lines for which there is room, those that no page needs last: they are left out where it ends."""
    kept, room = set[int](), _MOST_BYTES
    lines = [(_line(name, _LONGEST_NAME), _line(value, _MOST_BYTES)) for name, value in headers]
    for at in sorted(range(len(lines)), key=lambda at: (lines[at][0].lower() not in _NEEDED, at)):
        size = sum(len(text.encode()) for text in lines[at])
        if size <= room and len(kept) < _MOST_HEADERS:
            kept.add(at)
            room -= size
    return (line for at, line in enumerate(lines) if at in kept)


def limited_answer(answer: Answer, max_bytes: int) -> Answer:
    """The answer, or the failure of one whose body is larger than a page may be."""
    if len(answer.body) <= max_bytes:
        return answer
    return replace(answer, body=b"", failure=Failure.TOO_LARGE, detail=f"more than {max_bytes:,} bytes")


def _line(text: str, most: int) -> str:
    """A text on one line."""
    return _CONTROLS.sub(" ", storable(text[:most]))
