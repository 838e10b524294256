"""The links between the pages of a repository, as a graph of page numbers, and the anchors that the user named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph
from recrawl.choose.protocol import NAMED
from recrawl.columns import Int32s, Ints, unique
from recrawl.discover.urls import key
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


def named_pages(store: Store, urls: Iterable[str]) -> Ints:
    """The pages that the user named as anchors, in order; unknown URLs are left out."""
    found = [page for url in urls if (page := store.pages.number(key(url))) is not None]
    return unique(np.array(found, np.int64))


def named_anchors(store: Store, urls: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The named anchors for the memory of the policy `anchor-depth` (see `policy_memory.ready_book`)."""
    return {NAMED: named_pages(store, urls)}
