"""PageRank of a large repository: seconds from scratch, and to update it after few links changed."""

from __future__ import annotations

import time

import numpy as np

from recrawl.book import LinkGraph
from recrawl.learn.structure.pagerank import pagerank as ranked

PAGES = 1_000_000
LINKS = 10_000_000
SITES = 1_000
SECONDS = 5.0  # the bar for a start from nothing
CHANGED = 0.01  # the share of links that lead elsewhere before the update


def pagerank(pages: int = PAGES, links: int = LINKS) -> dict[str, float]:
    """Seconds of CPU for ranks from nothing and for an update from them, and how many pages and links there were."""
    rng = np.random.default_rng(1)
    graph = _web(pages, links, rng)
    ranked(_web(100, 1000, rng))  # loads scipy, which is no part of the work
    began = time.process_time()
    ranks = ranked(graph)
    whole = time.process_time() - began
    target = graph.target.copy()
    moved = rng.integers(0, len(target), int(CHANGED * len(target)))
    target[moved] = rng.integers(0, pages, len(moved))
    began = time.process_time()
    ranked(LinkGraph(graph.start, target), start=ranks)
    return {"pages": pages, "links": links, "seconds": whole, "update_seconds": time.process_time() - began}


def _web(pages: int, links: int, rng: np.random.Generator) -> LinkGraph:
    """Sites of equal size whose front pages are linked most; nine links in ten stay on their site."""
    size = max(1, pages // SITES)
    source = np.sort(rng.integers(0, pages, links))
    site = np.where(rng.random(links) < 0.9, source // size, rng.integers(0, -(-pages // size), links))
    inside = (size * rng.random(links) ** 3).astype(np.int64)
    target = np.minimum(site * size + inside, pages - 1).astype(np.int32)
    return LinkGraph(np.concatenate(([0], np.cumsum(np.bincount(source, minlength=pages)))), target)


if __name__ == "__main__":
    print(pagerank())
