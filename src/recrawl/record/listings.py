"""Iterate over tables that grow (pages, visits, versions, changes), block by block.

A block is fetched whole before its first row is yielded, and the next one starts after the last row read: no cursor
stays open while the caller works, writes or closes the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recrawl.record.rows import Row
from recrawl.record.storage import Storage
from recrawl.record.store.reports import StreamPlace

_BLOCK = 1000
_LARGEST = 1 << 62

Open = Callable[[], Storage]
"""Returns the open storage; called before every block, since a writing call reopens it."""


def page_rows(opened: Open, *, site: str = "", state: int | None = None, limit: int = -1) -> Iterator[Row]:
    """Pages, in the order in which they were found."""
    return _blocks(
        lambda last, size: opened().store.listings.pages_after(last["id"] if last else -1, site, state, size), limit
    )


def change_rows(
    opened: Open,
    *,
    since: float,
    until: float,
    site: str = "",
    tag: str = "",
    unread: bool = False,
    limit: int = -1,
) -> Iterator[Row]:
    """Updates (pages created, changed, removed), newest first."""

    def block(last: Row | None, size: int) -> list[Row]:
        place = StreamPlace(last["at"], last["id"]) if last else StreamPlace(until, _LARGEST)
        return opened().store.listings.changes_before(place, since, site, size, tag=tag, unread=unread)

    return _blocks(block, limit)


def changes_after(opened: Open, after: int, *, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Updates recorded after a visit, in the order of their recording."""
    return _blocks(
        lambda last, size: opened().store.listings.changes_after(last["id"] if last else after, site, size), limit
    )


def deliveries_after(opened: Open, after: int, *, site: str = "") -> Iterator[Row]:
    """Updates recorded after a visit, in the order of their recording, with `page` and `version`."""
    return _blocks(
        lambda last, size: opened().store.listings.deliveries_after(last["id"] if last else after, site, size), -1
    )


def visit_rows(opened: Open, *, since: float, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Visits to all pages, in the order of their recording."""
    return _blocks(
        lambda last, size: opened().store.listings.visits_after(last["id"] if last else -1, since, site, size), limit
    )


def visits_of_page(opened: Open, page: int) -> Iterator[Row]:
    """The visits of a page, newest first."""
    return _blocks(
        lambda last, size: opened().store.listings.visits_before(page, last["id"] if last else _LARGEST, size), -1
    )


def version_rows(opened: Open, *, since: float, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Versions of all pages with `url` and `number` (1 is the page's oldest), in the order of their recording."""
    return _blocks(
        lambda last, size: opened().store.listings.versions_after(last["id"] if last else -1, since, site, size), limit
    )


def _blocks(block: Callable[[Row | None, int], list[Row]], limit: int) -> Iterator[Row]:
    """The rows of all blocks, at most `limit` unless negative; `block` takes the last row read and a size."""
    last, read = None, 0
    while limit < 0 or read < limit:
        size = _BLOCK if limit < 0 else min(_BLOCK, limit - read)
        rows = block(last, size)
        yield from rows
        if len(rows) < size:
            return
        last, read = rows[-1], read + len(rows)
