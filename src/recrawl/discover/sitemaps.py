"""Sitemaps: the addresses that a site lists itself, and what it says of their changes (spec H2).

`parse` takes whatever the server sent: XML (with wrong namespaces or none, junk in front, cut off, broken),
gzip, plain text with one address a line, RSS and Atom used as sitemaps. It never raises; `problem` says what
was wrong, and `entries` is what could be read all the same.

The bytes are hostile until shown otherwise. So: gzip is inflated under a limit and only once; what stands
before the root element is dropped, and every `&` that is not one of XML's own references is escaped, so that
no DTD and no entity ever reaches the XML parser; elements are counted as they stream by, and no tree is
built.
"""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple
from urllib.parse import urljoin

import webencodings
from lxml import etree

_CHUNK = 1 << 16
_MAX_MEMBERS = 1024  # gzip members: some writers start one every 64 KiB, but a million empty ones are an attack
_MAX_ELEMENTS = 64  # a wanted entry; with more the document is mostly something else
_MAX_TEXT = 8192  # no address is longer
_MAX_AMPERSANDS = 1_000_000  # looked at; an entity beyond is dropped by the parser, as there is no DTD

_DAY = 86400.0
PERIODS = {
    "always": 3600.0,
    "hourly": 3600.0,
    "daily": _DAY,
    "weekly": 7 * _DAY,
    "monthly": 30 * _DAY,
    "yearly": 365 * _DAY,
    "never": 3650 * _DAY,
}
"""What the words of `changefreq` promise, in seconds."""
_ROOT = re.compile(rb"(?i)<(?:[\w.-]{1,32}:)?(urlset|sitemapindex|rss|feed|rdf|html|!doctype\s+html)\b")
_DECLARED = re.compile(rb"""(?i)<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
# CDATA is taken whole (to the end if it is never closed), so that an ampersand inside it stays as it is.
_AMPERSANDS = re.compile(
    rb"(?s)(<!\[CDATA\[.*?(?:\]\]>|\Z))|&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)"
)
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\r")
# Looks at each line once, however long, and never holds all of them.
_LINE = re.compile(rb"(?i)(?<![^\r\n])[ \t]*+(https?://[^\s/]\S{0,8192}+)[ \t]*+(?![^\r\n])")
_WEB = re.compile(r"(?i)https?://[^\s/]")
_W3C = re.compile(
    r"(?ia)(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T\s]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d\d):?(\d\d)?)?)?)?)?"
)

_SITEMAP = {"url": "url", "sitemap": "sitemap"}
# By root: the elements that hold an entry. RSS has `url` elements too, which hold pictures.
_HOLDERS = {b"rss": {"item": "url"}, b"rdf": {"item": "url"}, b"feed": {"entry": "url"}}
_PLACES = ("loc", "link", "guid")
_DATES = ("lastmod", "updated", "pubDate", "date", "published")
_FIELDS = frozenset((*_PLACES, *_DATES, "changefreq", "priority"))


class Entry(NamedTuple):
    """One address and what the site says of it."""

    url: str
    lastmod: float | None  # seconds since 1970, UTC
    changefreq: str  # one of the protocol's seven words, or empty
    priority: float | None  # 0 to 1


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one file holds: pages, or further sitemaps. `problem` is empty when nothing was wrong."""

    kind: Literal["index", "urls"]
    entries: tuple[Entry, ...]
    problem: str
    bad_dates: int = 0
    """Entries whose date could not be read."""


def parse(body: bytes, url: str, *, max_bytes: int = 52_428_800, max_entries: int = 50_000) -> Sitemap:
    """Read a sitemap in any of its forms. Never raises.

    >>> parse(b"<urlset><url><loc>/a</loc></url></urlset>", "http://x.example/s.xml").entries
    (Entry(url='http://x.example/a', lastmod=None, changefreq='', priority=None),)
    >>> parse(b"<!DOCTYPE html><html>", "http://x.example/").problem
    'an HTML page, not a sitemap'
    """
    body, problem = _unpack(body, max_bytes)
    body = _as_utf8(body)
    root = _ROOT.search(body, 0, _CHUNK)
    if root is None:
        return _parse_text(body, max_entries, problem)
    name = root[1].lower()
    if name.endswith(b"html"):
        return Sitemap("urls", (), problem or "an HTML page, not a sitemap")
    reader = _Reader(url, max_entries, _HOLDERS.get(name, _SITEMAP))
    xml = _AMPERSANDS.sub(lambda m: m[1] or b"&amp;", body[root.start() :], count=_MAX_AMPERSANDS)
    problem = reader.read(xml) or problem
    urls, indexes = reader.found["url"], reader.found["sitemap"]
    # The root decides, unless all that was found is of the other sort.
    index = bool(indexes) if bool(indexes) != bool(urls) else name == b"sitemapindex"
    entries = tuple(indexes if index else urls)
    return Sitemap(
        "index" if index else "urls", entries, problem or ("" if entries else "no entries"), reader.bad_dates
    )


def _unpack(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The body without gzip, at most `max_bytes` of it, and what was wrong."""
    if body[:2] != b"\x1f\x8b":
        return body[:max_bytes], "" if len(body) <= max_bytes else f"cut at {max_bytes} bytes"
    plain, problem = _inflate(body, max_bytes)
    return (b"", "gzip inside gzip") if plain[:2] == b"\x1f\x8b" else (plain, problem)


def _inflate(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    out = bytearray()
    members = 0
    stream = zlib.decompressobj(wbits=31)
    for at in range(0, len(body), _CHUNK):
        data = body[at : at + _CHUNK]
        while data:
            try:
                out += stream.decompress(data, max_bytes - len(out) + 1)
            except zlib.error:
                # Padding or junk behind a complete member is common and harms nothing.
                return bytes(out), "" if members else "broken gzip"
            if len(out) > max_bytes:
                return bytes(out[:max_bytes]), f"cut at {max_bytes} bytes"
            data = stream.unused_data
            if stream.eof:
                members += 1
                if members > _MAX_MEMBERS:
                    return bytes(out), "too many gzip members"
                stream = zlib.decompressobj(wbits=31)
    return bytes(out), "" if members else "gzip cut off"


def _as_utf8(body: bytes) -> bytes:
    """The document in UTF-8, without a byte order mark and without the control bytes that XML forbids."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode()
    elif body[:2] == b"\0<" or body[:2] == b"<\0":
        body = body.decode("utf-16-le" if body[1] == 0 else "utf-16-be", "replace").encode()
    else:
        body = body.removeprefix(codecs.BOM_UTF8)
        try:
            body.decode()
        except UnicodeDecodeError:
            # Only now the declaration counts: documents that are UTF-8 often declare something else.
            declared = _DECLARED.search(body, 0, 1024)
            label = webencodings.lookup(declared[1].decode("ascii", "replace")) if declared else None
            decode = label.codec_info.decode if label else codecs.utf_8_decode
            body = decode(body, "replace")[0].encode("utf-8", "replace")
    return body.translate(None, _CONTROLS)


def _parse_text(body: bytes, max_entries: int, problem: str) -> Sitemap:
    """One address a line; a line that is no address is passed over."""
    found = islice(_LINE.finditer(body), max_entries + 1)
    entries = [Entry(line[1].decode("utf-8", "replace"), None, "", None) for line in found]
    if len(entries) > max_entries:
        del entries[max_entries:]
        problem = problem or f"more than {max_entries} entries"
    nothing = "not a sitemap" if body.strip() else "empty"
    return Sitemap("urls", tuple(entries), problem or ("" if entries else nothing))


class _Reader:
    """Takes the XML parser's events and keeps the entries; those of `url` and of `sitemap` apart."""

    def __init__(self, url: str, max_entries: int, holders: dict[str, str]) -> None:
        self.found: dict[str, list[Entry]] = {"url": [], "sitemap": []}
        self.bad_dates = 0
        self._base, self._holders = url, holders
        self._max_entries, self._entries = max_entries, 0
        self._elements = self._depth = self._entry_depth = self._length = 0
        self._entry = self._field = ""
        self._text: list[str] = []
        self._fields: dict[str, str] = {}

    def read(self, xml: bytes) -> str:
        """Feed the document; gives what was wrong with it."""
        safe = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
        parser = etree.XMLParser(target=self, encoding="utf-8", recover=True, **safe)
        try:
            for at in range(0, len(xml), _CHUNK):
                parser.feed(xml[at : at + _CHUNK])
                if self._entries > self._max_entries:
                    break
                if self._elements > (self._max_entries + 16) * _MAX_ELEMENTS:
                    return "too many elements"
            else:
                parser.close()
        except etree.LxmlError:
            return "broken XML"
        finally:
            self._finish()
        if self._entries > self._max_entries:
            return f"more than {self._max_entries} entries"
        return "broken XML" if parser.feed_error_log.filter_from_fatals() else ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element opens."""
        self._elements += 1
        self._depth += 1
        name = tag.rpartition("}")[2]
        if name in self._holders:
            # If this is inside an entry, then that one's end tag was missing.
            self._finish()
            self._entry, self._entry_depth = self._holders[name], self._depth
        elif self._entry and self._depth == self._entry_depth + 1 and name in _FIELDS:
            self._field, self._length = name, 0
            self._text.clear()
            if name == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
                self._fields.setdefault("link", attributes["href"])
            if name == "guid" and attributes.get("isPermaLink", "true") != "true":
                self._field = ""

    def data(self, text: str) -> None:
        """Text inside the current element."""
        if self._field and self._length <= _MAX_TEXT:
            self._text.append(text)
            self._length += len(text)

    def end(self, _tag: str) -> None:
        """An element closes. Its name is not needed: in broken XML it would mislead."""
        if self._field:
            if 0 < self._length <= _MAX_TEXT:
                self._fields.setdefault(self._field, "".join(self._text))
            self._field = ""
        elif self._entry and self._depth == self._entry_depth:
            self._finish()
        self._depth -= 1

    def close(self) -> None:
        """The parser wants this method; `read` does the rest."""

    def _finish(self) -> None:
        """Keep the current entry, if there is one with an address."""
        kind, fields = self._entry, self._fields
        self._entry = self._field = ""
        if not kind or not fields:
            return
        self._fields = {}
        place = next((fields[name] for name in _PLACES if name in fields), "")
        address = _address("".join(place.split()), self._base)
        if not address:
            return
        self._entries += 1
        if self._entries <= self._max_entries:
            said = next((fields[name] for name in _DATES if name in fields), "")
            date = when(said)
            self.bad_dates += date is None and bool(said.strip())
            word = fields.get("changefreq", "").strip().lower()
            frequency = word if word in PERIODS else ""
            self.found[kind].append(Entry(address, date, frequency, _priority(fields.get("priority", ""))))


def _address(text: str, base: str) -> str:
    """The absolute address, or nothing if it is not one that can be visited."""
    if not text or _WEB.match(text):
        return text
    try:
        joined = urljoin(base, text)
    except ValueError:
        return ""
    return joined if _WEB.match(joined) else ""


def _priority(text: str) -> float | None:
    try:
        value = float(text.replace(",", ".", 1))
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


def when(text: str) -> float | None:
    """A W3C date of any precision, or an RFC 822 one, as seconds since 1970 UTC; no time zone means UTC.

    >>> when("1970-01-01T01:00+01:00"), when("1971"), when("Thu, 01 Jan 1970 00:01:00 GMT"), when("yesterday")
    (0.0, 31536000.0, 60.0, None)
    """
    text = text.strip()
    return _seconds(text) if 4 <= len(text) <= 64 else None


@lru_cache(maxsize=4096)
def _seconds(text: str) -> float | None:
    found = _W3C.fullmatch(text)
    try:
        if found:
            year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
            # Second 60 is a leap second.
            hour, minute, second = int(found[4] or 0), int(found[5] or 0), min(int(found[6] or 0), 59)
            away = timedelta(hours=int(found[8] or 0), minutes=int(found[9] or 0))
            if away > timedelta(hours=14):  # no place on earth is so far from Greenwich
                return None
            zone = timezone(-away if found[7] == "-" else away)
            parsed = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        else:
            parsed = parsedate_to_datetime(text)
        seconds = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return seconds if 0.0 <= seconds < 4_102_444_800.0 else None  # up to the year 2100
