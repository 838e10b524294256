"""Decode a body's bytes to text. Never raises: a page in an unknown encoding still gives some text.

The order is that of browsers: byte order mark, charset in the Content-Type header, the declaration in the document
(`prescan`), then UTF-8 if it is valid, then a guess from a sample. Labels are those of the WHATWG Encoding Standard
(`latin1` is windows-1252). A label that the bytes contradict is ignored.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import lru_cache

import webencodings
from turbohtml.detect import detect  # the module registers the codecs "whatwg-...", which decode as browsers do

from recrawl.compare.parsing.prescan import declared_encoding

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:+-]{1,40})""", re.ASCII | re.IGNORECASE)
_MARKUP = re.compile(rb"<[^<>]*>|[\x00-\x1f ]+")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_SAMPLE_FROM = 65_536
_SAMPLE = 4_096
_AS_BROWSERS = frozenset(("big5", "euc-jp", "euc-kr", "gb18030", "gbk", "koi8-u", "shift_jis"))
"""Encodings that Python decodes otherwise: without the letters that vendors added, or with other signs."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and the WHATWG name of its encoding."""

    text: str
    encoding: str


def decode(body: bytes, content_type: str = "") -> Decoded:
    r"""Return the text of a body. NUL characters are dropped and lone surrogates replaced.

    >>> decode("naïve".encode("cp1252"), "text/html; charset=iso-8859-1")
    Decoded(text='naïve', encoding='windows-1252')
    >>> decode("naïve".encode(), 'text/html; charset="no-such-thing"')
    Decoded(text='naïve', encoding='utf-8')
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _cleaned(body, body[len(mark) :].decode(name, "replace"), name)
    label, is_markup = _header_label(content_type)
    if not label and is_markup:
        label = declared_encoding(body, _name)
    if label and label != "utf-8":
        text = _strictly(body, label)
        if text is not None:
            return _cleaned(body, text, label)
    try:
        return _cleaned(body, body.decode(), "utf-8")
    except UnicodeDecodeError:
        return _guess(body, labelled_utf8=label == "utf-8")


@lru_cache(maxsize=1024)
def _header_label(content_type: str) -> tuple[str, bool]:
    """The encoding that the header names, '' for none; and whether the body may declare one itself."""
    found = _HEADER.search(content_type[:1000])
    mime = content_type[:1000].partition(";")[0].lower()
    return _name(found[1]) if found else "", not mime.strip() or "html" in mime or "xml" in mime


def _name(label: str) -> str:
    """Return the WHATWG name of a label; empty if it names no text encoding."""
    known = webencodings.lookup(label) if label.isascii() else None
    if known is None or known.name == "replacement":
        return ""
    return "windows-1252" if known.name == "x-user-defined" else str(known.name)


def _strictly(body: bytes, name: str) -> str | None:
    """Return the text if the bytes fit the label, except for a few bad ones; None otherwise."""
    if name in _AS_BROWSERS:
        text = _decoded(body, name)
        return text if "\ufffd" not in text or _mostly_right(text) else None
    try:
        return str(webencodings.lookup(name).codec_info.decode(body, "strict")[0])
    except UnicodeDecodeError:
        text = _decoded(body, name)
    return text if _mostly_right(text) else None


def _decoded(body: bytes, name: str) -> str:
    """The text of bytes in an encoding, with U+FFFD for those that it does not know."""
    codec = codecs.lookup(f"whatwg-{name}") if name in _AS_BROWSERS else webencodings.lookup(name).codec_info
    return str(codec.decode(body, "replace")[0])


def _mostly_right(text: str) -> bool:
    bad = text.count("\ufffd")
    return bad <= 2 or bad * 20 <= len(text) - len(text.encode("ascii", "ignore"))


def _guess(body: bytes, *, labelled_utf8: bool) -> Decoded:
    """Guess the encoding of a body without usable label. UTF-8 with a few bad bytes is still UTF-8."""
    text = body.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    other = len(text) - len(text.encode("ascii", "ignore"))
    if bad * 20 <= other or (labelled_utf8 and bad * 3 <= other):
        return _cleaned(body, text, "utf-8")
    name = _name(detect(_sample(body)).encoding or "") or "windows-1252"
    return _cleaned(body, _decoded(body, name), name)


def _sample(body: bytes) -> bytes:
    """Return a few kilobytes around the first non-ASCII characters, without markup."""
    first = _NOT_ASCII.search(body)
    start = max(0, first.start() - 200) if first else 0
    return _MARKUP.sub(b" ", body[start : start + _SAMPLE_FROM])[:_SAMPLE]


def _cleaned(body: bytes, text: str, name: str) -> Decoded:
    # No encoding gives a NUL without a zero byte, and a search in bytes is faster than in wide text.
    if b"\0" in body:
        text = text.replace("\0", "")
    if name != "utf-8" and not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return Decoded(text, name)
