"""The values that every part of recrawl shares. Imports nothing of ours; nothing here is changed once made.

A *page* is a number: its row in the book and, plus one, its row in the store. What grows with the number of
pages is kept in arrays (`Picks`, `Outcomes`), never in one object per page; `Answer` and `Reading` exist
only while a page is in the hands of the crawler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

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
    """What a policy is told of a page that was not visited after all. It costs nothing, and is never recorded."""

    SKIPPED = 5
    HELD = 6
    """Its server is not asked for anything more in this cycle."""


class State(IntEnum):
    """What is believed of a page between visits."""

    FOUND = 0
    """Its address is known; it was never downloaded."""
    LIVE = 1
    MISSING = 2
    """The server said 404 or 410, but not often enough yet to believe it (spec C5)."""
    GONE = 3
    MOVED = 4
    """It redirects to another page, which is followed instead."""
    BARRED = 5
    """robots.txt, a filter, a content type or a trap guard keeps us out."""
    DROPPED = 6
    """The user removed it."""


class Failure(StrEnum):
    """Why a visit brought no page. The words are stored and shown, so they stay as they are."""

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
    TOO_DEEP = "too-deep"
    INTERNAL = "internal"


SILENT = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.DNS, Failure.TLS})
"""Failures that say that a server cannot be reached at all."""

NOT_TRIED = frozenset({Failure.HELD_OFF, Failure.ROBOTS, Failure.ROBOTS_UNREACHABLE})
"""Failures without a request: no mark against the page."""


HOLDING = frozenset({Failure.HELD_OFF, Failure.ROBOTS_UNREACHABLE})
"""Those of them that are about the whole server."""

PUSHES = ("indexnow", "websub")
"""Kinds of hints that are sent to us unasked."""


@dataclass(frozen=True, slots=True)
class Picks:
    """What a policy asks for: pages, best first, each with a score, and one reason for all of them."""

    pages: Pages
    score: NDArray[np.float64]
    reason: str

    def first(self, n: int) -> Picks:
        """The best n of them."""
        return Picks(self.pages[:n], self.score[:n], self.reason)

    def where(self, kept: NDArray[np.bool_]) -> Picks:
        """Those that are marked."""
        return Picks(self.pages[kept], self.score[kept], self.reason)

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What came of a batch of visits, in the order of the batch; pages that were not visited are absent."""

    pages: Pages
    what: NDArray[np.int8]
    received: NDArray[np.int64] | None = None
    """Bytes that each visit brought over the wire, where the world counts them."""

    @property
    def changed(self) -> NDArray[np.bool_]:
        """True where an update was found: creation, change or removal (spec C5)."""
        found: NDArray[np.bool_] = (self.what != int(Outcome.UNCHANGED)) & self.answered
        return found

    @property
    def answered(self) -> NDArray[np.bool_]:
        """True where the visit says anything about change at all."""
        said: NDArray[np.bool_] = self.what < int(Outcome.FAILED)
        return said

    @property
    def visited(self) -> NDArray[np.bool_]:
        """True where there was a visit, which costs budget."""
        made: NDArray[np.bool_] = self.what <= int(Outcome.FAILED)
        return made

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(slots=True)
class Answer:
    """What a server said to one request, or why it said nothing.

    Nobody changes one; it is not frozen because that would double what it costs to make, once a download.
    """

    url: str
    status: int
    """The HTTP status, 0 when no answer arrived."""
    headers: tuple[tuple[str, str], ...]
    body: bytes
    failure: Failure | None
    detail: str
    """A sentence about the failure, empty without one."""
    at: float
    """Seconds since 1970, UTC, when the request was sent."""
    seconds: float
    received: int
    """Bytes that came over the wire, headers included."""
    ip: str
    fields: dict[str, str] = field(default_factory=dict)
    """The headers by name in lower case; of several the last."""

    def header(self, name: str) -> str:
        """A header's value, empty when there is none."""
        return self.fields.get(name, "")


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave us to ask "has it changed?" with (spec C6, H4)."""

    etag: str
    last_modified: str

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)
