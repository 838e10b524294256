"""Values that all parts of recrawl share: outcomes, states, failures, picks, answers. All are immutable.

A *page* is a number: its row in the book and, plus one, its row in the store. What grows with the number of pages is
kept in arrays (`Picks`, `Outcomes`), never in one object per page; an `Answer` exists only during its visit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Ints

_MAX_VALIDATOR = 500
Pages = NDArray[np.int64]
"""Page numbers."""


class Outcome(IntEnum):
    """What a visit found. A failure is neither changed nor unchanged."""

    UNCHANGED = 0
    CHANGED = 1
    NEW = 2
    GONE = 3
    FAILED = 4


class Unvisited(IntEnum):
    """The outcome that a policy gets for a page that was not visited. It costs no budget and is not recorded."""

    SKIPPED = 5
    HELD = 6
    """Its server gets no more requests in this cycle."""


class State(IntEnum):
    """The state of a page between visits."""

    FOUND = 0
    """Its URL is known; it was never downloaded."""
    LIVE = 1
    MISSING = 2
    """The server answered 404 or 410, not often enough to count as gone (spec C5)."""
    GONE = 3
    MOVED = 4
    """It redirects to another page, which is visited instead."""
    BARRED = 5
    """Excluded by robots.txt, a filter, its content type or a trap limit."""
    DROPPED = 6
    """The user removed it."""


class RequisiteLevel(IntEnum):
    """Which requisites of pages are kept, besides the pages."""

    NONE = 0
    CSS = 1
    """Stylesheets and what they import."""
    ALL = 2
    """Images, fonts, scripts and icons too."""


class Failure(StrEnum):
    """Why a visit failed. The words are stored and shown: they never change."""

    ADDRESS = "address-refused"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    CUT_OFF = "cut-off"
    BAD_RESPONSE = "bad-response"
    BAD_ENCODING = "bad-content-encoding"
    TOO_LARGE = "too-large"
    BAD_URL = "bad-url"
    REDIRECT_LOOP = "redirect-loop"
    REDIRECT_LIMIT = "redirect-limit"
    REDIRECT_BAD = "redirect-bad"
    REDIRECT_AWAY = "redirect-away"
    ROBOTS = "robots-disallowed"
    ROBOTS_UNREACHABLE = "robots-unreachable"
    UNREACHABLE_DNS = "unreachable-dns"
    UNREACHABLE_CONNECT = "unreachable-connect"
    UNREACHABLE_TLS = "unreachable-tls"
    UNREACHABLE_TIMEOUT = "unreachable-timeout"
    HELD_OFF = "held-off"
    LIMIT = "site-limit"
    CLIENT_ERROR = "http-4xx"
    SERVER_ERROR = "http-5xx"
    RATE_LIMITED = "http-429"
    STATUS = "http-status"
    MISSING = "not-found"
    MOVED = "moved"
    CONTENT_TYPE = "content-type"
    PARSE_TIMEOUT = "parse-timeout"
    PARSE_CRASH = "parse-crash"
    PARSE_MEMORY = "parse-memory"
    TOO_DEEP = "too-deep"
    UNSTORABLE = "unstorable"
    SHARED_TEXT = "shared-text"
    LOGIN = "login"
    INTERNAL = "internal"


SILENT = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.DNS, Failure.TLS})
"""Failures that mean that the server cannot be reached."""

UNREACHABLE = {
    Failure.DNS: Failure.UNREACHABLE_DNS,
    Failure.CONNECT: Failure.UNREACHABLE_CONNECT,
    Failure.TLS: Failure.UNREACHABLE_TLS,
    Failure.TIMEOUT: Failure.UNREACHABLE_TIMEOUT,
}
"""From the failure of a server's robots.txt to the failure of its pages, which are not requested then."""

HOLDING = frozenset({Failure.HELD_OFF, Failure.ROBOTS_UNREACHABLE, Failure.LOGIN, *UNREACHABLE.values()})
"""Failures without a request that affect the whole server."""

NOT_TRIED = HOLDING | {Failure.ROBOTS}
"""Failures without a request; they do not count as failures of the page."""

SKIPPED = frozenset({Failure.CONTENT_TYPE, Failure.ROBOTS, Failure.LIMIT, Failure.MOVED, Failure.REDIRECT_AWAY})
"""Failures by our own rules: the page was skipped, and nothing is wrong with it or its server."""

NOT_FAILED = SKIPPED | {Failure.MISSING}
"""Failures that reports do not count as failed: skipped pages, and pages that may be gone."""

ORDERS = ("breadth", "depth", "path", "importance")
"""Orders in which a crawl visits the pages that it finds."""
PUSHES = ("indexnow", "websub")
"""Kinds of hints that others send: push notifications."""


@dataclass(frozen=True, slots=True)
class Picks:
    """The choice of a policy: pages, best first, each with a score, and a reason that completes "Visited because ...".
    An empty batch waits for all visits under way.

    >>> Picks(np.arange(10), np.ones(10), "it was due", awaits=0.75).needed
    8
    """

    pages: Pages
    score: Floats
    reason: str
    awaits: float = 1.0
    """Share of these pages, from the first, whose outcomes the policy needs before it chooses again. Below 1, outcomes
    that are not there yet come with a later batch; with 1, all outcomes come at once, those of earlier batches too."""

    @property
    def needed(self) -> int:
        """How many of the pages, from the first, are awaited before the policy chooses again."""
        return math.ceil(self.awaits * len(self.pages) - 1e-9)

    def first(self, n: int) -> Picks:
        """The best n picks."""
        return self.where(np.arange(len(self)) < n)

    def where(self, kept: Flags) -> Picks:
        """The picks where `kept` is true; the same ones are awaited."""
        picks = replace(self, pages=self.pages[kept], score=self.score[kept])
        return picks if self.awaits >= 1 else picks.awaiting(int(np.count_nonzero(kept[: self.needed])))

    def awaiting(self, needed: int) -> Picks:
        """These picks, of which the first `needed` are awaited, but none of earlier batches."""
        return replace(self, awaits=min(needed / max(1, len(self)), math.nextafter(1.0, 0.0)))

    def __len__(self) -> int:
        return len(self.pages)


WAIT = Picks(np.zeros(0, np.int64), np.zeros(0), "it is under way")
"""An empty batch: wait for all visits under way."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of visits, in the order in which the pages were chosen.

    They are those of one batch; where a batch does not await all of its outcomes (`Picks.awaits`), some are missing,
    and come with those of a later batch.
    """

    pages: Pages
    what: NDArray[np.int8]
    received: Ints | None = None
    """Bytes that each visit received, where the world counts them."""

    @property
    def changed(self) -> Flags:
        """True where an update was found: creation, change or removal (spec C5)."""
        found: Flags = (self.what != int(Outcome.UNCHANGED)) & self.answered
        return found

    @property
    def answered(self) -> Flags:
        """True where the visit did not fail."""
        answered: Flags = self.what < int(Outcome.FAILED)
        return answered

    @property
    def visited(self) -> Flags:
        """True where a visit was made, which costs budget."""
        visited: Flags = self.what <= int(Outcome.FAILED)
        return visited

    def take(self, rows: Flags | Ints) -> Outcomes:
        """The outcomes at these places, or where the flags are true."""
        return Outcomes(self.pages[rows], self.what[rows], None if self.received is None else self.received[rows])

    def __add__(self, other: Outcomes) -> Outcomes:
        if not len(self) or not len(other):
            return self if len(self) else other
        received: Ints | None = None
        if self.received is not None and other.received is not None:
            received = np.concatenate((self.received, other.received))
        return Outcomes(np.concatenate((self.pages, other.pages)), np.concatenate((self.what, other.what)), received)

    def __len__(self) -> int:
        return len(self.pages)


NOTHING = Outcomes(np.zeros(0, np.int64), np.zeros(0, np.int8))
"""No outcomes."""


class PastAnswer(NamedTuple):
    """What a server answered for a page in the past, as a history tells."""

    at: float
    """Seconds since 1970, UTC."""
    body: Callable[[], bytes] | None
    """Reads the body; None if the page was removed and nothing else is known."""
    head: bytes | None = None
    """Status line and headers; None if the history has none."""

    @property
    def removed(self) -> bool:
        """Whether all that is known is that the page was removed."""
        return self.body is None and self.head is None


@dataclass(slots=True)
class Answer:
    """A server's answer to one request, or the failure.

    Treat it as immutable: it is not frozen because that would double the cost of making one per download.
    """

    url: str
    status: int
    """The HTTP status; 0 without an answer."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    failure: Failure | None
    detail: str
    """The failure in a sentence; empty without one."""
    at: float
    """Seconds since 1970, UTC, when the request was sent."""
    seconds: float
    """Seconds until it was there, without those in which the client was busy with other work."""
    received: int
    """Bytes received, headers included."""
    ip: str
    fields: dict[str, str] = field(default_factory=dict)
    """The headers by name in lower case; the last of several."""

    @classmethod
    def made(
        cls,
        url: str,
        status: int,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        at: float,
        seconds: float = 0.0,
        received: int | None = None,
        ip: str = "",
    ) -> Answer:
        """An answer; `body` is decompressed, and `received` is its size if it is not given."""
        sent = tuple(headers)
        size = len(body) if received is None else received
        fields = {name.lower(): value for name, value in sent}
        return cls(url, status, sent, body, None, "", at, seconds, size, ip, fields)

    @classmethod
    def failed(cls, url: str, failure: Failure, detail: str, *, at: float) -> Answer:
        """No answer, and why."""
        return cls(url, 0, (), b"", failure, detail, at, 0.0, 0, "")

    def header(self, name: str) -> str:
        """A header's value; empty without one."""
        return self.fields.get(name, "")


def sendable(validator: str) -> str:
    """An ETag or a date as a server sent it, if it can be sent back; empty if it is over-long or not printable ASCII.

    >>> sendable('"33a64df5"'), sendable("é")
    ('"33a64df5"', '')
    """
    return validator if len(validator) <= _MAX_VALIDATOR and validator.isascii() and validator.isprintable() else ""


class Validators(NamedTuple):
    """ETag and Last-Modified of a version, for conditional requests (spec C6, H4)."""

    etag: str
    last_modified: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a conditional request."""
        sent = {"If-None-Match": self.etag} if self.etag else {}
        if self.last_modified:
            sent["If-Modified-Since"] = self.last_modified
        return sent

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)
