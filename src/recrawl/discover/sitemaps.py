"""Sitemaps and feeds: the URLs that a site lists, and its hints about their changes (spec H2, H3).

`parse` accepts whatever the server sent: XML (with wrong namespaces or none, leading junk, truncated, broken), gzip,
plain text with one URL per line, RSS, Atom and JSON Feed (`json_feeds`). It never raises; `problem` names what was
wrong, and `entries` holds what could be read.

The input is untrusted. gzip is inflated once, under a size limit; everything before the root element is dropped, and
every `&` that is not one of XML's own references is escaped, so that no DTD and no entity reaches the XML parser;
elements are counted as they stream by, and no tree is built.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple
from urllib.parse import urljoin

from recrawl.columns import DAY, HOUR, WEEK
from recrawl.discover.dates import parse_date

_CHUNK = 1 << 16
_MAX_ELEMENTS = 64  # per entry; a document with more is mostly something else
_MAX_TEXT = 8192  # longer than any URL
_MAX_AMPERSANDS = 1_000_000  # checked; the parser drops entities beyond that, as there is no DTD

PERIODS = {
    "always": HOUR,
    "hourly": HOUR,
    "daily": DAY,
    "weekly": WEEK,
    "monthly": 30 * DAY,
    "yearly": 365 * DAY,
    "never": 3650 * DAY,
}
"""The intervals that the values of `changefreq` stand for, in seconds."""
_ROOT = re.compile(rb"(?i)<(?:[\w.-]{1,32}:)?(urlset|sitemapindex|rss|feed|rdf|html|!doctype\s+html)\b")
# CDATA is matched as a whole (to the end if it is not closed), so that ampersands inside it stay.
_AMPERSANDS = re.compile(
    rb"(?s)(<!\[CDATA\[.*?(?:\]\]>|\Z))"
    rb"|&(?!(?:amp|lt|gt|quot|apos|#(?!0*(?:5529[6-9]|55[3-9]\d\d|56\d{3}|57[0-2]\d\d|573[0-3]\d|5734[0-3]);)\d{1,7}"
    rb"|#[xX](?!0*[dD][89a-fA-F]..;)[0-9a-fA-F]{1,6});)"
)
"""A reference to half a character is none: the parser would make bytes of it that are no text."""
# Linear in the length of a line, and holds one line at a time.
_LINE = re.compile(rb"(?i)(?<![^\r\n])[ \t]*+(https?://[^\s/]\S{0,8192}+)[ \t]*+(?![^\r\n])")
_HTTP_URL = re.compile(r"(?i)https?://[^\s/]")

_SITEMAP = {"url": "url", "sitemap": "sitemap"}
# By root: the elements that contain an entry. The `url` elements of RSS contain images.
_HOLDERS = {b"rss": {"item": "url"}, b"rdf": {"item": "url"}, b"feed": {"entry": "url"}}
_URL_FIELDS = ("loc", "link", "guid")
_DATES = ("lastmod", "updated", "pubDate", "date", "published", "publication_date")
_FIELDS = frozenset((*_URL_FIELDS, *_DATES, "changefreq", "priority"))


class Entry(NamedTuple):
    """One URL with the site's hints about it."""

    url: str
    lastmod: float | None  # seconds since 1970, UTC
    changefreq: str  # one of the protocol's seven words, or empty
    priority: float | None  # 0 to 1


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The contents of one file: pages, or further sitemaps. `problem` is empty if there was none."""

    kind: Literal["index", "urls"]
    entries: tuple[Entry, ...]
    problem: str
    bad_dates: int = 0
    """Number of entries with an invalid date."""


def parse(body: bytes, url: str, *, max_bytes: int = 52_428_800, max_entries: int = 50_000) -> Sitemap:
    """Parse a sitemap in any of its formats. Never raises.

    >>> parse(b"<urlset><url><loc>/a</loc></url></urlset>", "http://x.example/s.xml").entries
    (Entry(url='http://x.example/a', lastmod=None, changefreq='', priority=None),)
    >>> parse(b"<!DOCTYPE html><html>", "http://x.example/").problem
    'an HTML page, not a sitemap'
    """
    body, problem = as_utf8(body, max_bytes)
    items = read_items(body, max_entries + 1)
    if items is not None:
        return _from_items(items, url, max_entries, problem)
    root = _ROOT.search(body, 0, _CHUNK)
    if root is None:
        return _parse_text(body, max_entries, problem)
    name = root[1].lower()
    if name.endswith(b"html"):
        return Sitemap("urls", (), problem or "an HTML page, not a sitemap")
    reader = _Reader(url, max_entries, _HOLDERS.get(name, _SITEMAP))
    xml = _AMPERSANDS.sub(lambda m: m[1] or b"&amp;", body[root.start() :], count=_MAX_AMPERSANDS)
    problem = reader.read(xml) or problem or ("a <sitemap> without <loc>" if reader.nameless else "")
    urls, indexes = reader.found["url"], reader.found["sitemap"]
    # The root decides, unless all entries are of the other kind.
    index = bool(indexes) if bool(indexes) != bool(urls) else name == b"sitemapindex"
    entries = tuple(indexes if index else urls)
    return Sitemap(
        "index" if index else "urls", entries, problem or ("" if entries else "no entries"), reader.bad_dates
    )


def _from_items(items: list[tuple[str, str]], base: str, max_entries: int, problem: str) -> Sitemap:
    """The entries of a JSON Feed."""
    if len(items) > max_entries:
        problem = problem or f"more than {max_entries} entries"
    entries, bad_dates = [], 0
    for link, text in items[:max_entries]:
        if url := _absolute("".join(link.split()), base):
            date = parse_date(text)
            bad_dates += date is None and bool(text.strip())
            entries.append(Entry(url, date, "", None))
    return Sitemap("urls", tuple(entries), problem or ("" if entries else "no entries"), bad_dates)


def _parse_text(body: bytes, max_entries: int, problem: str) -> Sitemap:
    """One URL per line; other lines are ignored."""
    found = islice(_LINE.finditer(body), max_entries + 1)
    entries = [Entry(line[1].decode("utf-8", "replace"), None, "", None) for line in found]
    if len(entries) > max_entries:
        del entries[max_entries:]
        problem = problem or f"more than {max_entries} entries"
    nothing = "not a sitemap" if body.strip() else "empty"
    return Sitemap("urls", tuple(entries), problem or ("" if entries else nothing))


class _Reader:
    """Collects entries from the events of the XML parser, by kind: `url` or `sitemap`."""

    def __init__(self, url: str, max_entries: int, holders: dict[str, str]) -> None:
        self.found: dict[str, list[Entry]] = {"url": [], "sitemap": []}
        self.bad_dates = 0
        self.nameless = 0
        self._base, self._holders = url, holders
        self._max_entries, self._entries = max_entries, 0
        self._elements = self._depth = self._entry_depth = self._length = 0
        self._entry = self._field = self._parent = ""
        self._text: list[str] = []
        self._fields: dict[str, str] = {}
        self._direct = ""

    def read(self, xml: bytes) -> str:
        """Parse the document; returns the problem, if any."""
        from lxml import etree  # lazy: loads libxml2, and most cycles read no sitemap

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
        except (etree.LxmlError, UnicodeDecodeError):
            return "broken XML"
        finally:
            self._finish()
        if self._entries > self._max_entries:
            return f"more than {self._max_entries} entries"
        return "broken XML" if parser.feed_error_log.filter_from_fatals() else ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called for a start tag."""
        self._elements += 1
        self._depth += 1
        name = tag.rpartition("}")[2]
        if name in self._holders:
            # Inside an entry: the end tag of that entry is missing.
            self._finish()
            self._entry, self._entry_depth = self._holders[name], self._depth
            self._fields, self._direct = {}, ""
        elif self._entry and self._is_field(name):
            self._field, self._length = name, 0
            self._text.clear()
            if name == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
                self._fields.setdefault("link", attributes["href"])
            if name == "guid" and attributes.get("isPermaLink", "true") != "true":
                self._field = ""

    def _is_field(self, name: str) -> bool:
        """Whether the element that starts is a field of the entry; the date of a news article is a level deeper."""
        level = self._depth - self._entry_depth
        if level == 1:
            self._parent = name
        return (level == 1 and name in _FIELDS) or (
            level == 2 and self._parent == "news" and name == "publication_date"
        )

    def data(self, text: str) -> None:
        """Called for text in the current element."""
        if self._field and self._length <= _MAX_TEXT:
            self._text.append(text)
            self._length += len(text)
        elif self._entry == "sitemap" and self._depth == self._entry_depth and len(self._direct) <= _MAX_TEXT:
            self._direct += text

    def end(self, _tag: str) -> None:
        """Called for an end tag, whose name is ignored: it can be wrong in broken XML."""
        if self._field:
            if 0 < self._length <= _MAX_TEXT:
                self._fields.setdefault(self._field, "".join(self._text))
            self._field = ""
        elif self._entry and self._depth == self._entry_depth:
            self._finish()
        self._depth -= 1

    def close(self) -> None:
        """Required by the parser; `read` does the rest."""

    def _finish(self) -> None:
        """Keep the current entry if it has a valid URL."""
        kind, fields = self._entry, self._fields
        self._entry = self._field = ""
        if not kind or not (fields or kind == "sitemap"):
            return
        self._fields = {}
        text = next((fields[name] for name in _URL_FIELDS if name in fields), self._direct)
        url = _absolute("".join(text.split()), self._base)
        if not url:
            self.nameless += kind == "sitemap"
            return
        self._entries += 1
        if self._entries <= self._max_entries:
            text = next((fields[name] for name in _DATES if name in fields), "")
            date = parse_date(text)
            self.bad_dates += date is None and bool(text.strip())
            word = fields.get("changefreq", "").strip().lower()
            frequency = word if word in PERIODS else ""
            self.found[kind].append(Entry(url, date, frequency, _priority(fields.get("priority", ""))))


def _absolute(text: str, base: str) -> str:
    """The absolute URL; empty if it is not http or https."""
    if not text or _HTTP_URL.match(text):
        return text
    try:
        joined = urljoin(base, text)
    except ValueError:
        return ""
    return joined if _HTTP_URL.match(joined) else ""


def _priority(text: str) -> float | None:
    try:
        value = float(text.replace(",", ".", 1))
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


# --------------------------------------------------------------------------------------------------------------------
# From the bytes of a sitemap or feed to UTF-8: gzip is inflated under a size limit, other encodings are converted.


_SLICE = 1 << 16
_MAX_MEMBERS = 1024  # gzip members: some writers start one every 64 KiB, but a million empty ones are an attack
_DECLARED = re.compile(rb"""(?i)<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\r")


def as_utf8(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The document in UTF-8, from at most `max_bytes` of the unpacked body, and the problem, if any."""
    plain, problem = _unpack(body, max_bytes)
    return _decoded(plain), problem


def _unpack(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The uncompressed body, at most `max_bytes` of it, and the problem, if any."""
    if body[:2] != b"\x1f\x8b":
        return body[:max_bytes], "" if len(body) <= max_bytes else f"cut at {max_bytes} bytes"
    plain, problem = _inflate(body, max_bytes)
    return (b"", "gzip inside gzip") if plain[:2] == b"\x1f\x8b" else (plain, problem)


def _inflate(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    out = bytearray()
    members = 0
    stream = zlib.decompressobj(wbits=31)
    for at in range(0, len(body), _SLICE):
        data = body[at : at + _SLICE]
        while data:
            try:
                out += stream.decompress(data, max_bytes - len(out) + 1)
            except zlib.error:
                # Padding or junk after a complete member is common and harmless.
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


def _decoded(body: bytes) -> bytes:
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
            import webencodings  # lazy: nearly all are UTF-8

            # The declaration counts only now: UTF-8 documents often declare another encoding.
            declared = _DECLARED.search(body, 0, 1024)
            label = webencodings.lookup(declared[1].decode("ascii", "replace")) if declared else None
            decode = label.codec_info.decode if label else codecs.utf_8_decode
            body = decode(body, "replace")[0].encode("utf-8", "replace")
    return body.translate(None, _CONTROLS)


# --------------------------------------------------------------------------------------------------------------------
# JSON Feed (https://jsonfeed.org): links and dates of its items.


_MAX_BYTES = 8_000_000
"""A larger document is not parsed: the parser builds all of it."""
_VERSION = "jsonfeed.org/version/"


def read_items(body: bytes, limit: int) -> list[tuple[str, str]] | None:
    """Link and date of the first `limit` items; None if this is not a JSON Feed. Never raises.

    >>> read_items(b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/a"}]}', 10)
    [('/a', '')]
    """
    if not body[:64].lstrip().startswith(b"{") or len(body) > _MAX_BYTES:
        return None
    try:
        feed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(feed, dict) or _VERSION not in _text(feed, "version"):
        return None
    items = feed.get("items")
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [(_link(item), _text(item, "date_modified") or _text(item, "date_published")) for item in found[:limit]]


def _link(item: dict[str, Any]) -> str:
    """The page of an item; without a `url`, its `id` if that is a link."""
    name = _text(item, "id")
    return _text(item, "url") or (name if name.startswith(("http://", "https://")) else "")


def _text(of: dict[str, Any], name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""
