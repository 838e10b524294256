"""The text of stored pages: for digests, for the index and for readers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from turbohtml import Document

from recrawl.compare.content.lines import Line
from recrawl.compare.content.lines import lines as content_lines
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.file_types import hypertext, lines_of
from recrawl.compare.tree.documents import document_tree
from recrawl.compare.tree.renderers import ShownLine, text_lines


class StoredText:
    """The text of a stored page, as used for its digest, and its lines."""

    def __init__(self, body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> None:
        self._read_lines = partial(shown_lines, body, headers)
        content_type, mime = media_type(body, headers)
        self.tree: Document | None = None
        """The parsed page, until its lines have been read; None if it is not HTML."""
        page = hypertext(body, content_type, mime)
        if page is not None:
            self.tree = parse(page.text)
            self.text = text.visible(self.tree, noise)
        else:
            self.text = plain(body, content_type, mime, noise)[0]

    def lines(self, noise: Noise) -> list[Line] | None:
        """The lines as content detection sees them, once; None if the page is not HTML."""
        tree, self.tree = self.tree, None
        return None if tree is None else content_lines(tree, noise)

    def shown_lines(self, noise: Noise) -> list[ShownLine]:
        """The lines for display."""
        return self._read_lines(noise)


def read_text(body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> str:
    """The text of a stored page, as used for its digest."""
    return StoredText(body, headers, noise).text


def read_page(body: bytes, headers: tuple[tuple[str, str], ...]) -> tuple[str, int]:
    """The unfiltered text of a stored page, and its number of images."""
    content_type, mime = media_type(body, headers)
    page = hypertext(body, content_type, mime)
    if page is None:
        return plain(body, content_type, mime, NO_NOISE)[0], 0
    tree = parse(page.text)
    return text.visible(tree), len(tree.find_all("img"))


def read_lines(body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> list[str]:
    """The lines of a stored page, for display."""
    return [line.text for line in shown_lines(body, headers, noise)]


def shown_lines(body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> list[ShownLine]:
    """The same, with the stretches of the page that each line holds."""
    content_type, mime = media_type(body, headers)
    tree = document_tree(body, content_type, mime, noise=replace(noise, patterns=()))  # those apply to all lines
    return [ShownLine("(not text)", ())] if tree is None else text_lines(tree, noise)


def plain(body: bytes, content_type: str, mime: str, noise: Noise) -> tuple[str, str, str]:
    """Text, encoding and title of a body that is neither HTML nor Markdown; all empty if it is not text."""
    found = lines_of(body, content_type, mime, noise)
    return ("", "", "") if found is None else (text.plain("\n".join(found.lines), noise), found.encoding, found.title)


def header(headers: tuple[tuple[str, str], ...], name: str) -> str:
    """The value of the last header with this lower-case name; empty if there is none."""
    return next((value for key, value in reversed(headers) if key.lower() == name), "")


def media_type(body: bytes, headers: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The content type of a page as it was sent, and its MIME type, which is guessed if nothing was sent."""
    content_type = header(headers, "content-type")
    return content_type, content_type.partition(";")[0].strip().lower() or sniff(body)


def sniff(body: bytes) -> str:
    """The likely type of a body without a content type."""
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<":
        return "text/html"
    return "application/octet-stream" if b"\0" in body[:512] else "text/plain"
