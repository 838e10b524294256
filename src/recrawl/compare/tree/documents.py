"""The content tree of any page, and what it says about itself.

HTML and Markdown are parsed and judged. Feeds are a heading and the content for each entry, JSON is a list of its
values, PDF and plain text are paragraphs: all of that is content.
"""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import turbohtml
from turbohtml.extract import feed

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.file_types import Lines, hypertext, json_feed, lines_of
from recrawl.compare.parsing.media_types import MARKDOWN, PDF, is_json, is_xml
from recrawl.compare.tree.blocks import (
    CONTENT,
    FRAME,
    Ancestor,
    BlockKind,
    Container,
    ContainerKind,
    ContentBlock,
    ContentTree,
    Span,
)
from recrawl.compare.tree.builder import html_tree, resolved
from recrawl.compare.tree.fields import StatedFields, fields
from recrawl.compare.tree.main_content import judge
from recrawl.compare.tree.stated import Statements, statements

_MARKUP = re.compile(r"(?is)<(script|style|template)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[a-z/!?][^<>]*>?")
_FEED = re.compile(r"<(?:\w{1,32}:)?(?:rss|feed|rdf)\b", re.IGNORECASE)
_LOST = 2_000_000
"""Characters that are read of a page that no parser can read."""
_FEW_WORDS = 20
_FULL_LINE = 0.7
"""A line of a PDF that is shorter than this share of the longest ones ends a paragraph."""


class ReadPage(NamedTuple):
    """A page's tree, judged, and its fields."""

    tree: ContentTree
    fields: StatedFields


class ParsedPage(NamedTuple):
    """A page as parsed, what it states, and its tree, not judged yet."""

    page: turbohtml.Document
    said: Statements
    tree: ContentTree


def parse_html(text: str, url: str = "", noise: Noise = NO_NOISE) -> ParsedPage:
    """Parse an HTML page and make its tree, without noise."""
    page = parse(text)
    said = statements(page)
    noise.prune(page)
    for selectors, name in ((noise.frame, FRAME), (noise.content, CONTENT)):
        for selector in selectors:
            with contextlib.suppress(ValueError):  # `Noise.check` has told the user
                for node in page.select(selector):
                    node.attrs[name] = ""
    tree = html_tree(page, url, said)
    tree.has_choice = bool(noise.frame or noise.content)
    _erase(tree.blocks, noise)
    return ParsedPage(page, said, tree)


def read_html(text: str, url: str = "", latest: date | None = None, noise: Noise = NO_NOISE) -> ReadPage:
    """An HTML page; dates after `latest` are not believed."""
    page, said, tree = parse_html(text, url, noise)
    judge(tree)
    if sum(len(block.text.split()) for block in tree.blocks) < _FEW_WORDS:
        tree.blocks += _from_head(tree)
    return ReadPage(tree, fields(page, said, tree, latest))


def _from_head(tree: ContentTree) -> list[ContentBlock]:
    """What the head of a page says that has nearly no text, since scripts make it."""
    shown = {block.text for block in tree.blocks}
    blocks = line_blocks((tree.stated or tree.description).split("\n"))
    for block in blocks:
        block.element = Ancestor("noscript")  # not in the text that is compared
    return [block for block in blocks if block.text not in shown]


def read_document(
    body: bytes, content_type: str, mime: str, url: str = "", latest: date | None = None, noise: Noise = NO_NOISE
) -> ReadPage:
    """A page of any type; what is not text has no blocks."""
    decoded = hypertext(body, content_type, mime)
    if decoded is None:
        tree = _other_tree(body, content_type, mime, url, noise) or ContentTree([], url=url)
        return ReadPage(tree, NOTHING._replace(title=tree.title or None))
    if mime.startswith(MARKDOWN):
        page, said, tree = parse_html(decoded.text, url, noise)
        return ReadPage(tree, fields(page, said, tree, latest))
    return read_html(decoded.text, url, latest, noise)


def document_tree(
    body: bytes, content_type: str, mime: str, url: str = "", noise: Noise = NO_NOISE
) -> ContentTree | None:
    """The tree of a page of any type, not judged; None for one that is not text."""
    decoded = hypertext(body, content_type, mime)
    if decoded is None:
        return _other_tree(body, content_type, mime, url, noise)
    page = parse(decoded.text)
    noise.prune(page)
    tree = html_tree(page, url, Statements({}, []))  # what the page states is no part of its text
    _erase(tree.blocks, noise)
    return tree


def _other_tree(body: bytes, content_type: str, mime: str, url: str, noise: Noise) -> ContentTree | None:
    found = lines_of(body, content_type, mime, noise)
    if found is None:
        return None
    blocks: list[ContentBlock] = []
    if is_xml(mime):
        blocks = _feed_blocks(body.decode(found.encoding, "replace"), url)
    elif is_json(mime):
        blocks = _entries(*entries, url) if (entries := json_feed(body)) else _items(found.lines)
    elif mime == PDF:
        blocks = list(_paragraphs(found.lines))
    elif mime == "text/plain":
        blocks = list(_stanzas(found.lines))
    if is_xml(mime) and blocks:
        blocks += _rest(blocks, found)
    blocks = blocks or line_blocks(found.lines)
    _erase(blocks, noise)
    return ContentTree(blocks, found.title, url)


def _erase(blocks: Iterable[ContentBlock], noise: Noise) -> None:
    """Remove the text that the user calls noise; a paragraph that has some loses its links and emphasis."""
    if not noise.patterns:
        return
    for block in blocks:
        for spans in [block.spans, *(cell for row in block.rows for cell in row)]:
            text = "".join(span.text for span in spans if not span.image)
            if (erased := noise.erase(text)) != text:
                spans[:] = [Span(erased if block.kind is BlockKind.CODE else _folded_lines(erased))]


def _folded_lines(text: str) -> str:
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


def line_blocks(lines: Iterable[str]) -> list[ContentBlock]:
    """Lines as paragraphs."""
    folded = (" ".join(line.split()) for line in lines)
    return [ContentBlock(BlockKind.TEXT, [Span(line)]) for line in folded if line]


def _items(lines: Iterable[str]) -> list[ContentBlock]:
    """Lines as the items of a list."""
    blocks, around = line_blocks(lines), Container(ContainerKind.LIST)
    for block in blocks:
        block.within = (around, Container(ContainerKind.ITEM))
    return blocks


def _stanzas(lines: Iterable[str]) -> Iterator[ContentBlock]:
    """Paragraphs between empty lines; those in which each line is indented are code."""
    held: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            held.append(line.rstrip())
        elif held:
            if all(one.startswith(("    ", "\t")) for one in held):
                yield ContentBlock(BlockKind.CODE, [Span("\n".join(held))])
            else:
                yield ContentBlock(BlockKind.TEXT, [Span("\n".join(" ".join(one.split()) for one in held))])
            held = []


def _paragraphs(lines: Sequence[str]) -> Iterator[ContentBlock]:
    """The lines of a PDF, those that fill the page together with what follows them."""
    sizes = sorted(map(len, lines))
    full = _FULL_LINE * sizes[9 * len(sizes) // 10] if sizes else 0
    held: list[str] = []
    for line in lines:
        held.append(" ".join(line.split()))
        if len(line) < full:
            yield ContentBlock(BlockKind.TEXT, [Span("\n".join(held))])
            held = []
    if held:
        yield ContentBlock(BlockKind.TEXT, [Span("\n".join(held))])


def _feed_blocks(text: str, url: str) -> list[ContentBlock]:
    """The blocks of an RSS or Atom feed; none for any other XML."""
    if not _FEED.search(text[:4_000]) or "<!DOCTYPE" in text[:4_000]:
        return []
    try:
        found = feed(text)
    except (ValueError, turbohtml.HTMLParseError):
        return []
    if found is None:
        return []
    head = {"title": found.title, "description": found.description, "updated": found.updated}
    return _entries(head, [one._asdict() for one in found.entries], found.link or url)


def _entries(head: Mapping[str, object], entries: Iterable[Mapping[str, object]], url: str) -> list[ContentBlock]:
    """The blocks of a feed: its title, and the heading, date and content of each entry."""
    blocks = _line(BlockKind.HEADING, head.get("title"), level=1)
    blocks += _line(BlockKind.TEXT, head.get("description")) + _line(BlockKind.OTHER, head.get("updated"))
    for entry in entries:
        link = resolved(str(entry.get("link") or ""), url)
        blocks += _line(BlockKind.HEADING, entry.get("title") or (link and readable(link)), link, level=2)
        about = " · ".join(str(entry[key]) for key in ("published", "author") if entry.get(key))
        blocks += _line(BlockKind.TEXT, about)
        said = entry.get("content") or entry.get("summary")
        if isinstance(said, str) and said.strip():
            blocks += html_tree(parse(said), link or url).blocks
    return blocks


def readable(link: str) -> str:
    """A URL as the title of an entry that has none."""
    return link.partition("://")[2] or link


def _line(kind: BlockKind, text: object, link: str = "", level: int = 0) -> list[ContentBlock]:
    folded = " ".join(str(text or "").split())
    return [ContentBlock(kind, [Span(folded, 0, link)], level=level)] if folded else []


def _rest(blocks: Iterable[ContentBlock], found: Lines) -> Iterator[ContentBlock]:
    """What else stands in a feed, without what is markup: numbers, times and names of entries."""
    known = {block.text for block in blocks}
    for line in found.lines:
        if line not in known and not _MARKUP.search(line):
            known.add(line)
            yield ContentBlock(BlockKind.OTHER, [Span(line)])


def read_roughly(text: str, url: str = "") -> ReadPage:
    """A page that could not be parsed: its text without what looks like markup."""
    shown = html.unescape(_MARKUP.sub("\n", text[:_LOST]))
    return ReadPage(ContentTree(line_blocks(shown.splitlines()), url=url), NOTHING)


NOTHING = StatedFields(None, None, None, None, None)
