"""Cut the content of a page into chunks for retrieval, along its tree and at places that edits do not move.

A chunk ends before a heading, or after a block that is chosen by a hash of its text. So an edit changes the chunks
around it and no others, and only these have to be embedded again. No chunk has more words than the maximum. Code and
rows of tables are not cut; only code that alone is larger than the maximum is, between its lines.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from recrawl.compare.tree.blocks import BlockKind, ContainerKind, ContentBlock
from recrawl.words import count_words, cut_words, has_spaceless

WORDS = 300
_ENDS = 6
"""Of the blocks at which a chunk could end, one in this many is chosen."""


class ContentChunk(NamedTuple):
    """A stretch of a page's content."""

    headings: tuple[str, ...]
    """The headings under which it stands, from the outermost."""
    text: str
    kind: str = "text"
    """What most of it is: text, code, table or list."""


class _Piece(NamedTuple):
    """What is not cut."""

    text: str
    words: int
    kind: str
    level: int = 0
    """Of a heading."""


def chunks_of(blocks: Iterable[ContentBlock], words: int = WORDS, overlap: int = 0) -> list[ContentChunk]:
    """Blocks in chunks of at most this many words; each begins with the last `overlap` words of the one before it.

    >>> from recrawl.compare.tree.blocks import Span
    >>> heading = ContentBlock(BlockKind.HEADING, [Span("Sport")], level=1)
    >>> chunks_of([heading, ContentBlock(BlockKind.TEXT, [Span("We won.")])])
    [ContentChunk(headings=('Sport',), text='Sport\\nWe won.', kind='text')]
    """
    room = max(1, words - overlap)
    made: list[ContentChunk] = []
    path: list[tuple[int, str]] = []
    under: tuple[str, ...] = ()
    held: list[_Piece] = []
    size = 0

    def end() -> None:
        nonlocal held, size
        if held:
            made.append(_chunk(held, under))
        held, size = [], 0

    for part in _parts(blocks, room):
        if part.level:
            only_headings = all(one.level for one in held)
            if held and not only_headings and (2 * size >= room or part.level <= 2):
                end()
            path = [*(one for one in path if one[0] < part.level), (part.level, part.text)]
        if held and size + part.words > room:
            end()
        if not held or all(one.level for one in held):
            under = tuple(text for _, text in path)
        held.append(part)
        size += part.words
        if not part.level and 2 * size >= room and zlib.crc32(part.text.encode("utf-8", "replace")) % _ENDS == 0:
            end()
    end()
    return _overlapping(made, overlap) if overlap else made


def _overlapping(chunks: list[ContentChunk], overlap: int) -> list[ContentChunk]:
    found = chunks[:1]
    for before, chunk in pairwise(chunks):
        found.append(chunk._replace(text=f"{_last_words(before.text, overlap)}\n{chunk.text}"))
    return found


def _last_words(text: str, count: int) -> str:
    if not has_spaceless(text):
        return " ".join(text.split()[-count:])
    pieces = cut_words(" ".join(text.split()), 1)
    return "".join(pieces[-count:])


def _chunk(parts: list[_Piece], under: tuple[str, ...]) -> ContentChunk:
    sizes: dict[str, int] = {}
    for part in parts:
        sizes[part.kind] = sizes.get(part.kind, 0) + part.words
    return ContentChunk(under, "\n".join(part.text for part in parts), max(sizes, key=lambda kind: sizes[kind]))


def _parts(blocks: Iterable[ContentBlock], words: int) -> Iterator[_Piece]:
    """What is not cut, in order; longer blocks in pieces."""
    for block in blocks:
        text = block.text
        if not text or block.kind is BlockKind.OTHER:
            continue
        kind = _kind(block)
        count = count_words(text)
        if count <= words:
            yield _Piece(text, count, kind, block.level if block.kind is BlockKind.HEADING else 0)
        elif block.kind in (BlockKind.CODE, BlockKind.TABLE):
            yield from _lines_together(text.split("\n"), words, kind)
        else:
            yield from _cut(text, words, kind)


def _lines_together(lines: Iterable[str], words: int, kind: str) -> Iterator[_Piece]:
    """Lines in parts of at most this many words; a line that is longer in pieces."""
    held: list[str] = []
    size = 0
    for line in lines:
        count = count_words(line)
        if held and size + count > words:
            yield _Piece("\n".join(held), size, kind)
            held, size = [], 0
        if count > words:
            yield from _cut(line, words, kind)
            continue
        held.append(line)
        size += count
    if held:
        yield _Piece("\n".join(held), size, kind)


def _cut(text: str, words: int, kind: str) -> Iterator[_Piece]:
    for piece in cut_words(" ".join(text.split()), words):
        yield _Piece(piece, count_words(piece), kind)


def _kind(block: ContentBlock) -> str:
    if block.kind in (BlockKind.CODE, BlockKind.TABLE):
        return block.kind.value
    return "list" if any(one.kind is ContainerKind.ITEM for one in block.within) else "text"
