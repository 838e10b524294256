"""What the crawler sends to a reader process, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.discover.urls import UrlRules


class Task(NamedTuple):
    """A downloaded page to be parsed and compared."""

    ticket: int
    url: str
    at: float
    ip: str
    status: int
    headers: tuple[tuple[str, str], ...]
    request: bytes
    body: bytes
    payload: bytes
    """SHA-1 of the body."""
    noise: int
    """The noise filter, as an index into `ReaderConfig.noises`."""
    digest: bytes | None
    """The text digest of the stored version, None if there is none."""
    before: tuple[str, int, int] | bytes | None
    """The stored version: file, start and length in the archive, or its WARC records."""
    same_noise: bool
    """Whether that digest was made with the current noise filter."""


class Reading(NamedTuple):
    """A parsed page, or the reason why it could not be parsed."""

    ticket: int
    failure: str = ""
    detail: str = ""
    mime: str = ""
    encoding: str = ""
    title: str = ""
    text: str = ""
    digest: bytes = b""
    changed: bool = True
    divergence: float | None = None
    significant: bool | None = None
    urls: str = ""
    """URLs it links to, one per line."""
    keys: bytes = b""
    """The keys of `urls`, as int64."""
    follow: bool = True
    searchable: bool = True
    feeds: str = ""
    """URLs of its feeds, one per line."""
    updates: float = 0.0
    """The interval of change, in days, that it claims; 0 for none."""
    record: bytes = b""
    """The WARC records of the visit."""


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """The configuration of a reader process."""

    rules: UrlRules
    noises: tuple[Noise, ...] = (NO_NOISE,)
    want_text: bool = True
    deadline: float = 0.0
    """Seconds after which a process that still parses a batch ends itself; 0 for never."""
