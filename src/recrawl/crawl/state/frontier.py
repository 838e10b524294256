"""The order of a crawl (Q §2.1, spec K1, K6): the lanes of a run, and the rank of its pages if it goes by rank.

Only a crawl has an order of its own: a cycle visits the pages in the order in which the policy chose them.
"""

from __future__ import annotations

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.book_columns import links_of
from recrawl.fetch.lanes import Lanes, Order
from recrawl.learn.structure.neighbours import FrontierRank, ImportanceRank, PathRank
from recrawl.record.rows import CycleRow
from recrawl.record.store import Store


def lanes_for(store: Store, options: CrawlOptions, cycle: CycleRow) -> tuple[Lanes, FrontierRank | None]:
    """The lanes of a run, and the rank that its visits update; None if pages are not ranked."""
    named = options.order if cycle.kind == "crawl" else "breadth"
    rank = _rank(store, named)
    order: Order = rank.of if rank is not None else "depth" if named == "depth" else "breadth"
    lanes = Lanes(
        delay=options.delay,
        per_server=options.per_server,
        overall_per_second=options.per_second,
        order=order,
        max_delay=options.max_delay,
        patience=options.patience,
        back_off=cycle.kind != "record",
    )
    return lanes, rank


def _rank(store: Store, order: str) -> FrontierRank | None:
    """The ranks at the start of the run, from what the store has; a resumed crawl ranks its pages anew."""
    if order == "path":
        return PathRank(store.pages.book_columns()["depth"])
    if order == "importance":
        return ImportanceRank.of_links(links_of(store, store.next_id("pages")))
    return None
