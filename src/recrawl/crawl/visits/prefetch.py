"""Store rows of pages, read before their turn comes.

Rows are read 100 pages at a time, since reading them one by one costs three times as much: code that changes rows other
than by a visit to the page must call `forget`.
"""

from __future__ import annotations

from collections.abc import Callable

from recrawl.crawl.hints.hint_codec import pack_hints
from recrawl.fetch.lanes import Lanes
from recrawl.record.rows import Batch, PageRow
from recrawl.record.store import Store

_BATCH = 100
"""Pages of one server read at once."""
_MAX_ROWS = 20_000
"""Rows kept for all servers together; beyond that, rows are read one by one."""


class Prefetch:
    """Store rows of pages in the order in which the lanes will request them."""

    def __init__(self, store: Store, lanes: Lanes, clock: Callable[[], float], *, requisites: bool = False) -> None:
        """`requisites` tells whether the run keeps those of any site."""
        self._store = store
        self._lanes = lanes
        self._clock = clock
        self._requisites = requisites
        self._rows: dict[int, PageRow] = {}
        self._hints: dict[int, int] = {}
        self._needs: dict[int, tuple[int, bytes]] = {}

    def take(self, page: int, server: int) -> tuple[PageRow, int]:
        """The row and the packed hints of a page; also reads those of the pages queued behind it."""
        row = self._rows.pop(page, None)
        if row is None:
            upcoming = self._lanes.upcoming(server, _BATCH) if len(self._rows) < _MAX_ROWS else []
            pages = [page, *(item for item in upcoming if isinstance(item, int))]
            self._rows.update(self._store.pages.get_many(pages))
            self._hints.update(pack_hints(self._store, pages, self._clock()))
            if self._requisites:
                self._needs.update(self._store.requisites.of_pages(pages))
            row = self._rows.pop(page)
        return row, self._hints.pop(page, 0)

    def needs(self, page: int) -> tuple[int, bytes] | None:
        """Level and packed numbers of the requisites of a page whose row was taken."""
        return self._needs.pop(page, None)

    def forget(self) -> None:
        """Drop all rows: the store has changed."""
        self._rows.clear()
        self._hints.clear()
        self._needs.clear()

    def committed(self, batch: Batch) -> None:
        """Drop rows that a commit made outdated: a sitemap changes rows of pages that were not visited."""
        if batch.listed:
            self.forget()
