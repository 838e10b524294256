"""What is given to a run: seeds, and links and requisites that other shards of a cluster have found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.live import LiveCrawl
from recrawl.discover.urls import canonical
from recrawl.record.rows import Batch, CycleRow, OutgoingRequisite


class IncomingLinks(Protocol):
    """Links and requisites that other shards have found and this one owns."""

    def take(self, *, idle: bool) -> Sequence[tuple[str, int]] | None:
        """Those that wait, each a URL with its depth. `idle`: nothing is left to visit, so this waits for some.

        None if there will be no more.
        """
        ...

    def recorded(self) -> None:
        """The pages of what was taken last are recorded."""
        ...

    def take_requisites(self) -> Sequence[OutgoingRequisite]:
        """Requisites that wait, some at a time; none if no more wait."""
        ...

    def requisites_recorded(self) -> None:
        """The requisites that were taken last are recorded."""
        ...


def add_pages(live: LiveCrawl, options: CrawlOptions, urls: Iterable[tuple[str, int]], row: CycleRow) -> set[int]:
    """Add the pages of URLs, each with its depth; returns their numbers."""
    batch = Batch()
    pages = set()
    for given, depth in urls:
        url = canonical(given, rules=options.rules)
        if url is not None and options.owns(url):
            pages.add(live.discovery.add(url, parent=-1, depth=depth, at=row.started, batch=batch)[0])
    live.record_pages(batch)
    return pages


def take_links(
    live: LiveCrawl, options: CrawlOptions, row: CycleRow, incoming: IncomingLinks | None, *, idle: bool = False
) -> bool:
    """Add the pages of links that wait; False if there will be no more."""
    links = None if incoming is None else incoming.take(idle=idle)
    if incoming is None or links is None:
        return False
    if links:
        add_pages(live, options, links, row)
        incoming.recorded()
    return True


def fetch_requisites(live: LiveCrawl, incoming: IncomingLinks | None) -> None:
    """Request what the pages of this run need to be shown as they looked, and what those of other shards need."""
    while incoming is not None and (handed := incoming.take_requisites()):
        live.take_requisites(handed)
        incoming.requisites_recorded()
    live.fetch_requisites()
