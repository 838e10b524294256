"""Rows of pages that are about to be asked for, looked up a hundred at a time: alone, each costs three times as much.

A row is looked up before it is its page's turn, so whoever changes rows in the store other than by a visit to that very
page calls `forget`.
"""

from __future__ import annotations

from collections.abc import Callable

from recrawl.crawl.hints.hint_codec import packed
from recrawl.fetch.lanes import Lanes
from recrawl.record.store import PageRow, Store

_AHEAD = 100
"""Pages of a server that are looked up at once."""
_MOST = 20_000
"""Rows that may wait, of all servers together; beyond that they are looked up one by one."""


class Prefetch:
    """The store's rows, in the order in which lanes will ask for them."""

    def __init__(self, store: Store, lanes: Lanes, clock: Callable[[], float]) -> None:
        self._store = store
        self._lanes = lanes
        self._clock = clock
        self._rows: dict[int, PageRow] = {}
        self._hints: dict[int, int] = {}

    def take(self, page: int, server: int) -> tuple[PageRow, int]:
        """The row of a page of this server, and its hints; those that wait behind it are looked up with it."""
        row = self._rows.pop(page, None)
        if row is None:
            more = self._lanes.upcoming(server, _AHEAD) if len(self._rows) < _MOST else []
            self._rows.update(self._store.pages([page, *more]))
            self._hints.update(packed(self._store, [page, *more], self._clock()))
            row = self._rows.pop(page)
        return row, self._hints.pop(page, 0)

    def forget(self) -> None:
        """Look everything up again: the store has changed."""
        self._rows.clear()
        self._hints.clear()
