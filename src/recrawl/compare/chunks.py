"""Cut the content of a page into chunks of some hundred words for retrieval, at places that edits do not move.

A chunk ends before a heading, or after a line that is chosen by a hash of its text. So an edit changes the chunks
around it and no others, and only these have to be embedded again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from recrawl.compare.content.places import FRAME_ELEMENTS
from recrawl.compare.noise.filters import NO_NOISE, Noise, remove
from recrawl.compare.parsing import text

WORDS = 300
_HEADINGS = "h1,h2,h3,h4,h5,h6"
_ENDS = 8
"""Of the lines at which a chunk could end, one in this many is chosen."""


class Chunk(NamedTuple):
    """A stretch of a page's content."""

    heading: str
    """The nearest heading before it, or the one that it begins with."""
    text: str


def page_chunks(tree: LexborHTMLParser, noise: Noise = NO_NOISE, words: int = WORDS) -> list[Chunk]:
    """The chunks of a page without its navigation, footer, asides and forms. Changes the tree.

    >>> page = LexborHTMLParser("<nav>Home</nav><h1>News</h1><p>Rain today.<h2>Sport</h2><p>We won.")
    >>> page_chunks(page, words=4)
    [Chunk(heading='News', text='News\\nRain today.'), Chunk(heading='Sport', text='Sport\\nWe won.')]
    """
    remove(tree.css(f"{FRAME_ELEMENTS},form"))
    headings = {" ".join(node.text().split()) for node in tree.css(_HEADINGS)}
    return list(cut(text.lines(tree, noise), headings, words))


def cut(lines: Sequence[str], headings: set[str], words: int = WORDS) -> Iterator[Chunk]:
    """Cut lines into chunks of about this many words, at most twice as many."""
    heading, chunk, size = "", list[str](), 0
    for line in _short(lines, words):
        count = line.count(" ") + 1
        if chunk and ((line in headings and 2 * size >= words) or size + count > 2 * words):
            yield Chunk(heading, "\n".join(chunk))
            chunk, size = [], 0
        if line in headings:
            heading = line if not chunk else heading
        chunk.append(line)
        size += count
        if 2 * size >= words and zlib.crc32(line.encode("utf-8", "replace")) % _ENDS == 0:
            yield Chunk(heading, "\n".join(chunk))
            chunk, size = [], 0
    if chunk:
        yield Chunk(heading, "\n".join(chunk))


def _short(lines: Sequence[str], words: int) -> Iterator[str]:
    """The lines, longer ones in pieces."""
    for line in lines:
        parts = line.split(" ")
        yield from (" ".join(parts[start : start + words]) for start in range(0, len(parts), words))
