"""What the crawler sends to a reader process, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from recrawl.compare.levels import ChangeLevel
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.discover.urls import UrlRules

if TYPE_CHECKING:  # loads the parser, which the crawler does not need before a reader has found changed lines
    from recrawl.compare.content.changed_lines import LineChange


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
    level: int = 0
    """What counts as a change, as an index into `ReaderConfig.levels`."""
    counted: bool = False
    """Whether the lines of the page are counted in the census of its site."""
    answered_url: str = ""
    """The URL that redirects led to; empty if it is `url`."""
    prior: bool = False
    """Whether the page has no change prior yet."""
    requisites: int = 0
    """Which requisites of the page are looked for, as a `RequisiteLevel`."""
    rendered: str = ""
    """The page after its scripts have run; empty if it was not rendered."""


class Scan(NamedTuple):
    """A document to be searched for requisites alone: a stylesheet, or the stored version of a page."""

    ticket: int
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    stored: tuple[str, int, int] | None = None
    """The stored version of a page: file, start and length in the archive. None for a stylesheet."""
    requisites: int = 0


class Reading(NamedTuple):
    """A parsed page, or the reason why it could not be parsed."""

    ticket: int
    failure: str = ""
    detail: str = ""
    mime: str = ""
    encoding: str = ""
    title: str = ""
    language: str = ""
    description: str = ""
    image: str = ""
    """URL of its picture."""
    published: float | None = None
    updated: float | None = None
    text: str = ""
    digest: bytes = b""
    changed: bool = True
    divergence: float | None = None
    words_apart: int | None = None
    """Words that only this version or only the stored one has."""
    significant: bool | None = None
    relevance: bool | None = None
    """Whether it begins or ceases to match a query; None without queries."""
    changes: list[LineChange] | None = None
    """The lines that differ from the stored version; None if they were not compared."""
    words: int = 0
    """Words of both versions outside the elements of the frame."""
    lines: bytes = b""
    """Keys of its lines, as int64, if they are counted."""
    old_lines: bytes = b""
    """Keys of the stored version's lines, if they are counted and differ."""
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
    render_differs: bool | None = None
    """Whether rendering has changed the text; None if the page was not rendered."""
    styles: str = ""
    """URLs of the stylesheets that it needs, one per line."""
    files: str = ""
    """URLs of the other files that it needs, one per line."""
    prior: float | None = None
    """The page's change prior (see `compare.change_prior`), if the task asks for it."""
    record: bytes = b""
    """The WARC records of the visit."""


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """The configuration of a reader process."""

    rules: UrlRules
    noises: tuple[Noise, ...] = (NO_NOISE,)
    levels: tuple[ChangeLevel, ...] = (ChangeLevel(),)
    want_text: bool = True
    pdf: bool = False
    """Whether links to PDF files are followed."""
    deadline: float = 0.0
    """Seconds after which a process that still parses a batch ends itself; 0 for never."""
