"""Rows of pages that are about to be asked for, looked up a hundred at a time: alone, each costs three times as much.

A row is looked up before it is its page's turn, so whoever changes rows in the store other than by a visit to that very
page calls `forget`.
"""

from __future__ import annotations

from recrawl.fetch.lanes import Lanes
from recrawl.record.store import PageRow, Store

_AHEAD = 100
"""Pages of a server that are looked up at once."""
_MOST = 20_000
"""Rows that may wait, of all servers together; beyond that they are looked up one by one."""


class Ahead:
    """The store's rows, in the order in which lanes will ask for them."""

    def __init__(self, store: Store, lanes: Lanes) -> None:
        self._store = store
        self._lanes = lanes
        self._rows: dict[int, PageRow] = {}

    def take(self, page: int, server: int) -> PageRow:
        """The row of a page of this server; those that wait behind it are looked up with it."""
        row = self._rows.pop(page, None)
        if row is None:
            more = self._lanes.upcoming(server, _AHEAD) if len(self._rows) < _MOST else []
            self._rows.update(self._store.pages([page, *more]))
            row = self._rows.pop(page)
        return row

    def forget(self) -> None:
        """Look everything up again: the store has changed."""
        self._rows.clear()
