"""What the crawler hands to a reader process, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.discover.urls import UrlRules


class Task(NamedTuple):
    """A page to be read."""

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
    """Which noise filter applies, by its place in `ReaderConfig.noises`."""
    digest: bytes | None
    """The text digest of the version before, None when this is the first."""
    before: tuple[str, int, int] | None
    """File, start and length of the version before in the archive."""
    same_noise: bool
    """Whether that digest was made with the noise filter of today."""


class Reading(NamedTuple):
    """A page that was read, or why it could not be."""

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
    """Addresses that it links to, one a line."""
    keys: bytes = b""
    """Their keys, as int64."""
    follow: bool = True
    searchable: bool = True
    feeds: str = ""
    """Feeds that it names, one a line."""
    updates: float = 0.0
    """Every how many days it says that it changes, 0 where it does not say."""
    record: bytes = b""
    """The WARC records of the visit."""


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """What a reader process must know from the start."""

    rules: UrlRules
    noises: tuple[Noise, ...] = (NO_NOISE,)
    want_text: bool = True
