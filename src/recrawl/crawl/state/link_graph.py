"""The links between the pages of a repository, as a graph of page numbers."""

from __future__ import annotations

import numpy as np

from recrawl.book import LinkGraph
from recrawl.columns import Int32s
from recrawl.record.store import Store


def links_of(store: Store, pages: int) -> LinkGraph:
    """All links; a link to a moved page leads to its new page."""
    lengths = np.zeros(pages, np.int64)
    parts: list[Int32s] = [np.zeros(0, np.int32)]
    for page, packed in store.links.below(pages):
        parts.append(np.frombuffer(packed, "<i4"))
        lengths[page] = len(parts[-1])
    moved = np.arange(pages, dtype=np.int32)
    for page, leads_to in store.pages.moves(pages):
        moved[page] = leads_to
    target = np.concatenate(parts).astype(np.int32)
    # Without links to pages found during this read.
    there = target < pages
    row = np.repeat(np.arange(pages), lengths)[there]
    return LinkGraph(np.concatenate(([0], np.cumsum(np.bincount(row, minlength=pages)))), moved[target[there]])
