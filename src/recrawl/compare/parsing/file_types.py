"""Pages that are not HTML: Markdown, plain text, JSON, XML, feeds and PDF, as lines of text.

    hypertext   HTML of a page that is HTML or Markdown; it is read like any other HTML page
    lines_of    title and lines of any other page: the values of JSON with their keys, the text of XML, of PDF

PDF needs the extra `pdf` (pypdfium2): without it such pages are kept, but have no text. Everything here runs in the
reader process, under its deadline; a document that its parser refuses is read as plain text, or not at all.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from recrawl import plugins
from recrawl.characters import storable
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing.encoding import Decoded, decode
from recrawl.compare.parsing.media_types import HTML, MARKDOWN, PDF, has_pdf, is_json, is_xml
from recrawl.errors import Unreadable

if TYPE_CHECKING:
    from lxml import etree

_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript")
_JSON_BYTES = 8_000_000
"""A larger document is read as plain text: the parser builds all of it."""
_MAX_PAGES = 2_000
_MAX_CHARACTERS = 5_000_000
"""Of the text of a PDF."""
_ENTITIES = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_TITLE = 300


class Lines(NamedTuple):
    """The text of a page that is not HTML."""

    lines: list[str]
    title: str = ""
    encoding: str = "utf-8"


def hypertext(body: bytes, content_type: str, mime: str) -> Decoded | None:
    """A page as HTML, if it is HTML or Markdown; None for any other.

    >>> hypertext(b"# News\\n[more](/more)", "text/markdown", "text/markdown").text
    '<title>News</title><h1>News</h1>\\n<p><a href="/more">more</a></p>\\n'
    """
    if mime.startswith(HTML):
        return decode(body, content_type)
    if not mime.startswith(MARKDOWN):
        return None
    decoded = decode(body, content_type)
    made = _markdown().render(decoded.text)
    heading = re.search(r"<h1>(.*?)</h1>", made, re.DOTALL)
    title = f"<title>{re.sub(r'<[^>]*>', '', heading[1])}</title>" if heading else ""
    return Decoded(title + made, decoded.encoding)


@lru_cache(maxsize=1)
def _markdown() -> Any:
    from markdown_it import MarkdownIt  # lazy: few pages are Markdown

    return MarkdownIt("commonmark").enable("table")


def lines_of(body: bytes, content_type: str, mime: str, noise: Noise = NO_NOISE) -> Lines | None:
    r"""Title and lines of a page that is not HTML; None if it is not text. A plug-in for its type comes first.

    >>> ascii(lines_of(rb'{"text": "Our new shop \ud83d"}', "", "application/json").lines[0])
    "'text: Our new shop \\ufffd'"
    """
    found = _lines_of(body, content_type, mime, noise)
    if found is None:
        return None
    # An escape of JSON can write half of a character, and a plug-in or a PDF anything.
    return Lines(list(map(storable, found.lines)), storable(found.title), found.encoding)


def _lines_of(body: bytes, content_type: str, mime: str, noise: Noise) -> Lines | None:
    if (parser := plugins.load("parsers", mime)) is not None:
        return _by_plugin(parser, body, content_type, mime)
    if mime == PDF:
        return _pdf(body) if has_pdf() else None
    if not (mime.startswith(_TEXTUAL) or is_xml(mime) or is_json(mime)):
        return None
    decoded = decode(body, content_type)
    found = None
    if is_json(mime) and len(body) <= _JSON_BYTES:
        found = _json(decoded.text, noise)
    elif is_xml(mime):
        found = _xml(body, noise)
    return (found or Lines(decoded.text.splitlines()))._replace(encoding=decoded.encoding)


def _by_plugin(parser: Any, body: bytes, content_type: str, mime: str) -> Lines:
    try:
        return Lines(str(parser(body, content_type)).splitlines())
    except plugins.ERRORS as error:
        raise Unreadable(f"the parser of {mime} failed: {type(error).__name__}: {error}") from error


def _json(text: str, noise: Noise) -> Lines | None:
    """One line for each value, with the keys that lead to it; None if it is not JSON."""
    from recrawl.compare.noise.json_filter import json_leaves  # lazy: loads jmespath

    try:
        leaves = list(json_leaves(json.loads(text), text, noise.expressions("jmespath:")))
    except (ValueError, RecursionError):
        return None
    title = next((str(value) for path, value in leaves if path in ("title", "name") and isinstance(value, str)), "")
    return Lines([f"{path}: {_shown(value)}" if path else _shown(value) for path, value in leaves], title[:_TITLE])


def json_feed(body: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """Head and entries of a JSON Feed, with the names that entries of RSS and Atom have; None for any other JSON."""
    try:
        found = json.loads(body) if len(body) <= _JSON_BYTES and b"jsonfeed.org/version" in body[:4_000] else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(items := found.get("items"), list):
        return None
    entries = [
        {
            "title": item.get("title"),
            "link": item.get("url"),
            "published": item.get("date_published"),
            "author": next(iter(_names(item.get("authors") or item.get("author"))), None),
            "content": item.get("content_html") or html.escape(str(item.get("content_text") or "")),
            "summary": item.get("summary"),
        }
        for item in items
        if isinstance(item, dict)
    ]
    return found, [{key: _text(value) for key, value in entry.items()} for entry in entries]


def _names(value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"]


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _xml(body: bytes, noise: Noise) -> Lines | None:
    """The text of each element, and the title of a feed; None for broken XML, and for one with a DTD."""
    if _ENTITIES.search(body):
        return None
    from lxml import etree  # lazy: few pages are XML

    from recrawl.compare.noise.xpath import removed_by_xpath  # lazy: loads lxml

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True)
    try:
        root = etree.fromstring(body.strip(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    removed_by_xpath(root, noise.expressions("xpath:"))
    title = next((node.text or "" for node in root.iter("{*}title")), "")
    return Lines([line for line in _texts(root) if line], " ".join(title.split())[:_TITLE])


def _texts(root: etree._Element) -> Iterator[str]:
    for text in root.itertext():
        yield from (" ".join(line.split()) for line in text.split("\n"))


def _pdf(body: bytes) -> Lines | None:
    """The text of a PDF, and its title; None if it has none: scanned, encrypted or broken."""
    import pypdfium2  # lazy: an extra

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError:
        return None
    try:
        title = str(document.get_metadata_dict().get("Title", ""))
        found: list[str] = []
        size = 0
        for number in range(min(len(document), _MAX_PAGES)):
            text = document[number].get_textpage().get_text_bounded()
            size += len(text)
            found += [line for line in map(str.strip, text.splitlines()) if line]
            if size > _MAX_CHARACTERS:
                break
    except pypdfium2.PdfiumError:
        return None
    finally:
        document.close()
    return Lines(found, " ".join(title.split())[:_TITLE]) if found else None
