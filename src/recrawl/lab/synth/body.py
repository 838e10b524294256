"""A page's own content: blocks of HTML, and their edits."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from recrawl.columns import Ints
from recrawl.lab.synth.site_kinds import Kind
from recrawl.lab.synth.vocabulary import Words

BLOCK_BYTES = 420
"""Approximate mean size of a block."""

_PARAGRAPH, _HEADING, _LIST, _TABLE, _CODE, _FIGURE = range(6)
_WORDS = np.array([(35, 110), (30, 70), (30, 60), (16, 40), (20, 50), (6, 14)])


def anchor(path: str, title: bytes) -> bytes:
    """Return a link.

    >>> anchor("/a.html", b"A")
    b'<a href="/a.html">A</a>'
    """
    return b'<a href="%s">%s</a>' % (escape(path).encode(), title)


class Body:
    """The blocks of one page, edited in place from version to version."""

    def __init__(self, kind: Kind, words: Words, topic: Ints, rng: np.random.Generator) -> None:
        self._edges = np.cumsum(kind.blocks) / sum(kind.blocks)
        self._words = words
        self._topic = topic
        self._rng = rng
        self.blocks: list[bytes] = []

    def fill(self, size: int, links: Sequence[bytes]) -> None:
        """Write about `size` bytes, with the links distributed over the blocks."""
        self.blocks = self._write(max(2, round(size / BLOCK_BYTES)))
        for place, link in zip(self._rng.integers(0, len(self.blocks), len(links)).tolist(), links, strict=True):
            head, paragraph, tail = self.blocks[place].rpartition(b"</p>")
            text = b" See also " + link + b"."
            self.blocks[place] = head + text + paragraph + tail if paragraph else tail + b"<p>" + text[1:] + b"</p>\n"

    def edit(self) -> None:
        """Make one edit: rewrite, add or delete a block, or sometimes rewrite a third of the page."""
        draw, place = self._rng.random(2)
        count = len(self.blocks)
        at = int(place * count)
        if draw < 0.55:
            self.blocks[at : at + 1] = self._write(1)
        elif draw < 0.75:
            self.blocks[at:at] = self._write(1)
        elif draw < 0.93 and count > 3:
            del self.blocks[at]
        else:
            fresh = self._write(max(1, count // 3))
            at = int(place * (count - len(fresh) + 1))
            self.blocks[at : at + len(fresh)] = fresh

    def _write(self, count: int) -> list[bytes]:
        rng = self._rng
        shapes = np.minimum(np.searchsorted(self._edges, rng.random(count), side="right"), 5)
        bounds = _WORDS[shapes]
        lengths: list[int] = rng.integers(bounds[:, 0], bounds[:, 1]).tolist()
        texts = self._words.prose(rng, lengths, self._topic)
        return [_SHAPES[shape](text, rng) for shape, text in zip(shapes.tolist(), texts, strict=True)]


def _groups(text: bytes, size: int) -> list[list[bytes]]:
    words = text.replace(b".", b"").lower().split(b" ")
    return [words[i : i + size] for i in range(0, len(words), size)]


def _paragraph(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    return b"<p>" + text + b"</p>\n"


def _heading(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    words = text.split(b" ", 5)
    title = b" ".join(words[:5]).replace(b".", b"")
    return b"<h2>" + title + b"</h2>\n<p>" + words[-1][:1].upper() + words[-1][1:] + b"</p>\n"


def _list(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    items = [b"<li>" + b" ".join(group).capitalize() + b"</li>\n" for group in _groups(text, 8)]
    return b"<ul>\n" + b"".join(items) + b"</ul>\n"


def _table(text: bytes, rng: np.random.Generator) -> bytes:
    rows = _groups(text, 3)
    prices = rng.integers(100, 99_999, len(rows)).tolist()
    cells = [
        b"<tr><td>%s</td><td>%d.%02d</td></tr>\n" % (b" ".join(row).capitalize(), price // 100, price % 100)
        for row, price in zip(rows, prices, strict=True)
    ]
    return b"<table>\n<tr><th>Item</th><th>Value</th></tr>\n" + b"".join(cells) + b"</table>\n"


def _code(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    lines = [group[0] + b"(" + b", ".join(group[1:]) + b")\n" for group in _groups(text, 5)]
    return b"<pre><code>" + b"".join(lines) + b"</code></pre>\n"


def _figure(text: bytes, rng: np.random.Generator) -> bytes:
    alt = text.partition(b".")[0]
    image = b'<img src="/images/%d.jpg" width="640" height="420" alt="%s">' % (
        int(rng.integers(1, 5000)),
        alt,
    )
    return b"<figure>" + image + b"<figcaption>" + text + b"</figcaption></figure>\n"


_SHAPES = (_paragraph, _heading, _list, _table, _code, _figure)
