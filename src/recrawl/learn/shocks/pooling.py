"""What the sites of one shard tell of the sites of others: sums over sites, which are added up over the shards.

How often visits find a change (`room`), how often new pages come with changes (`new_pages`) and how far priors hold
(`page_prior`) are learned from all sites. A shard knows its own sites; with the sums of all shards it begins a cycle
from the same averages as without shards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats
from recrawl.learn.shocks import new_pages, page_prior
from recrawl.learn.shocks.room import HITS, hits


def evidence(book: Book) -> Floats:
    """Return the sums over the sites of a book."""
    sums = hits(book.memory, book.share), new_pages.site_sums(book).ravel(), page_prior.site_evidence(book)
    return np.concatenate(sums)


def with_evidence(book: Book, total: Floats) -> Book:
    """Return the book with the evidence of all shards in its memory; the same numbers if there is one shard.

    >>> book = Book.blank(1)
    >>> book.memory["shock.hits"] = np.array([5.0, 1.0])
    >>> with_evidence(book, evidence(book) + 1).memory["shock.hits"].tolist()
    [6.0, 2.0]
    """
    others = total - evidence(book)
    _, relations, weights = np.split(others, [2, len(others) - len(page_prior.WEIGHTS)])
    pooled = {
        HITS: total[:2],
        new_pages.OTHERS: relations.reshape(-1, 2),
        page_prior.OTHERS: np.maximum(weights, 0.0),
    }
    return replace(book, memory=book.memory | pooled)
