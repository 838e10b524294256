"""What the crawler sends to a reader process, and what it gets back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import Meta, MsgspecError
from msgspec.msgpack import Decoder, Encoder

from recrawl.characters import is_storable, storable
from recrawl.compare.content.judge import LineChange
from recrawl.compare.levels import ChangeLevel
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.discover.endless_spaces import MOST_SAID
from recrawl.discover.urls import UrlRules
from recrawl.model import Failure

Number = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 53))]
Line = Annotated[str, Meta(max_length=500)]
OneUrl = Annotated[str, Meta(max_length=2_000)]
Words = Annotated[str, Meta(max_length=40_000_000)]
Said = Annotated[str, Meta(max_length=MOST_SAID)]
Date = Annotated[float, Meta(ge=-62_135_596_800.0, le=253_402_300_799.0)]
"""Seconds since 1970, of the years 1 to 9999."""
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Days = Annotated[float, Meta(ge=0.0, le=36_500.0)]
Weight = Annotated[float, Meta(ge=-1e3, le=1e3)]


class BrokenMessage(Exception):
    """A reader process has sent what no reader sends."""


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
    stored: bool = False
    """Whether it is in the archive already, so that its WARC records are not wanted."""


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
    """A parsed page, or the reason why it could not be parsed. Its types are the law: see `bounded` and `received`."""

    ticket: Number
    failure: Line = ""
    detail: Line = ""
    mime: Line = ""
    encoding: Line = ""
    title: Line = ""
    language: Line = ""
    description: Line = ""
    image: OneUrl = ""
    """URL of its picture."""
    published: Date | None = None
    updated: Date | None = None
    text: Words = ""
    said: Said = ""
    """The begin of the text, line by line, if it is to be judged whether the page brings news (`EndlessSpaces`)."""
    digest: Annotated[bytes, Meta(max_length=32)] = b""
    changed: bool = True
    divergence: Share | None = None
    words_apart: Count | None = None
    """Words that only this version or only the stored one has."""
    significant: bool | None = None
    relevance: bool | None = None
    """Whether it begins (or ceases, by the level) to match a query; None without queries."""
    out_links: Count | None = None
    """Links that the stored version did not have; None if they were not compared."""
    changes: list[LineChange] | None = None
    """The lines that differ from the stored version; None if they were not compared."""
    words: Count = 0
    """Words of both versions outside the elements of the frame."""
    lines: bytes = b""
    """Keys of its lines, as int64, if they are counted."""
    old_lines: bytes = b""
    """Keys of the stored version's lines, if they are counted and differ."""
    urls: Words = ""
    """URLs it links to, one per line."""
    keys: bytes = b""
    """The keys of `urls`, as int64."""
    follow: bool = True
    searchable: bool = True
    feeds: Words = ""
    """URLs of its feeds, one per line."""
    updates: Days = 0.0
    """The interval of change, in days, that it claims; 0 for none."""
    render_differs: bool | None = None
    """Whether rendering has changed the text; None if the page was not rendered."""
    styles: Words = ""
    """URLs of the stylesheets that it needs, one per line."""
    files: Words = ""
    """URLs of the other files that it needs, one per line."""
    sketch: Annotated[bytes, Meta(max_length=16)] = b""
    """Of its content (see `learn.copies.sketch`); empty for little content."""
    claim: OneUrl = ""
    """The URL that it claims as its canonical address."""
    moved: OneUrl = ""
    """The URL that it sends browsers to at once."""
    missing: bool = False
    """Whether it says that it is not there."""
    shape: Annotated[bytes, Meta(max_length=16)] = b""
    """Of the text of a short page without the words of its URL (see `learn.copies.absent`)."""
    prior: Weight | None = None
    """The page's change prior (see `compare.change_prior`), if the task asks for it."""
    record: bytes = b""
    """The WARC records of the visit."""


PARSE_FAILURES = frozenset({Failure.TOO_DEEP, Failure.PARSE_TIMEOUT, Failure.PARSE_CRASH, Failure.PARSE_MEMORY})
"""The failures that a reading can have."""
_KNOWN = {"", *(failure.value for failure in PARSE_FAILURES)}
_DECODER = Decoder(list[Reading])
pack = Encoder().encode
"""A list of readings as bytes."""


def received(message: bytes, tickets: Sequence[int]) -> list[Reading]:
    """The readings of a message about these pages; `BrokenMessage` if a value is not of its type.

    A process that a hostile page has broken may say anything: nothing of it is run, and nothing of it is believed
    that could not be stored.
    """
    try:
        readings = _DECODER.decode(message)
    except (MsgspecError, ValueError) as error:
        raise BrokenMessage(str(error)) from error
    if [reading.ticket for reading in readings] != list(tickets):
        raise BrokenMessage("the readings are of other pages")
    for reading in readings:
        if problem := _problem(reading):
            raise BrokenMessage(problem)
    return readings


def _problem(reading: Reading) -> str:
    """What is wrong with a reading beyond the types of its values; empty if nothing is."""
    if reading.failure not in _KNOWN:
        return "an unknown failure"
    for text in _texts_of(reading):
        if "\0" in text:  # it is valid Unicode, or it could not have been unpacked
            return "a text with a NUL"
    for value in _floats_of(reading):
        if value is not None and math.isnan(value):  # smaller than no bound, and larger than none
            return "a number that is none"
    if len(reading.keys) != 8 * (reading.urls.count("\n") + 1 if reading.urls else 0):
        return "not one key for each URL"
    return "keys of lines are cut off" if len(reading.lines) % 8 or len(reading.old_lines) % 8 else ""


def bounded(reading: Reading) -> Reading:
    """The reading with all values within the bounds of their types: the last step of reading a page.

    Texts are cut, and what cannot be stored is replaced; a number out of range counts as not stated.
    """
    changed: dict[str, Any] = {}
    for (name, most), text in zip(_TEXTS.items(), _texts_of(reading), strict=True):
        if text and (len(text) > most or not is_storable(text)):
            changed[name] = storable(text, most)
    for (name, (least, largest)), value in zip(_FLOATS.items(), _floats_of(reading), strict=True):
        if value is not None and not least <= value <= largest:
            changed[name] = Reading._field_defaults[name]
    if not changed:
        return reading
    if "urls" in changed:  # a URL is canonical, so this is a list without end: each URL has its key
        whole = changed["urls"].rpartition("\n")[0]
        changed |= {"urls": whole, "keys": reading.keys[: 8 * (whole.count("\n") + 1 if whole else 0)]}
    return reading._replace(**changed)


def _bounds() -> tuple[dict[str, int], dict[str, tuple[float, float]]]:
    """The texts of a reading with the most characters of each, and its fractions with their ranges."""
    texts, floats = {}, {}
    for name, kind in get_type_hints(Reading, include_extras=True).items():
        for part in (kind,) if get_origin(kind) is Annotated else get_args(kind):
            of, *metas = get_args(part) or (part,)
            if of is str:
                texts[name] = metas[0].max_length
            elif of is float:
                floats[name] = (metas[0].ge, metas[0].le)
    return texts, floats


_TEXTS, _FLOATS = _bounds()
_texts_of, _floats_of = (itemgetter(*map(Reading._fields.index, names)) for names in (_TEXTS, _FLOATS))


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
    memory: int = 0
    """Bytes that reading may take, beyond those of a process that has just started; 0 for any number."""
