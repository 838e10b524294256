"""Anchors of the sites of a repository: the book with its links, and what follows from them (spec A1, A2).

For `recrawl anchor`; a cycle that needs links gets its book from `policy_memory.ready_book`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats, Ints
from recrawl.crawl.state.book_columns import links_of
from recrawl.learn.structure.anchor import Candidates, anchors, candidates
from recrawl.learn.structure.depth import Layers, from_anchors, layers, recommend
from recrawl.model import State
from recrawl.record.store import Store

_VISITABLE = (State.FOUND, State.LIVE, State.MISSING)


@dataclass(frozen=True, slots=True)
class Survey:
    """Anchors and depths of all sites; arrays by site unless noted."""

    anchor: Ints
    """Pages, -1 for a site without any."""
    named: Ints
    """The pages that the user named."""
    found: Candidates
    table: Layers
    n: Ints
    """Recommended depth of the group that is visited often."""


def survey(book: Book, named: Ints, *, period: float, room: float, room_per_site: float | Floats) -> Survey:
    """Anchors and depths of all sites; `period` is the target interval in seconds, `room` the visits per period."""
    chosen = anchors(book, named=named)
    table = layers(book, from_anchors(book, chosen), period, room=room, room_per_site=room_per_site)
    return Survey(chosen, named, candidates(book), table, recommend(table))


def load(store: Store, now: float) -> Book:
    """The book with the links of every page's newest version."""
    columns: dict[str, Any] = {**store.pages.book_columns()}
    known = np.isin(columns.pop("state"), _VISITABLE)
    del columns["cycle"]
    book = Book(now=now, known=known, **columns)
    book.links = links_of(store, len(book))
    return book
