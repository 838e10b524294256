"""What the sites of one shard tell of the sites of others: sums over sites, which are added up over the shards.

How often visits find a change (`room`), how often new pages come with changes (`new_pages`) and how far priors hold
(`page_prior`) are learned from all sites. A shard knows its own sites; with the sums of all shards it begins a cycle
from the same averages as without shards. The share of visits that find a change is averaged by the visits that each
shard made in its last cycle, not by its pages: most visits may go to a few shards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats
from recrawl.learn.shocks import new_pages, page_prior
from recrawl.learn.shocks.new_pages import HITS, hits

_VISITS = "shock.by_site.tries"
"""Memory key of the visits, site by bin of time."""
_FEW = 1e-3
"""Visits of all shards, divided by pages, so that shards without visits count by their pages."""


def evidence(book: Book) -> Floats:
    """Return the sums over the sites of a book."""
    return np.concatenate((_last_hits(book), new_pages.site_sums(book).ravel(), page_prior.site_evidence(book)))


def _last_hits(book: Book) -> Floats:
    """Return the visits of the last cycle, and how many of them found a change by the share of the latest visits."""
    visits, changed = hits(book.memory, book.share)
    last = book.memory.get(_VISITS, np.zeros((0, 1)))[:, -1:].sum() + _FEW * book.share
    return np.array([last, last * changed / visits])


def with_evidence(book: Book, total: Floats) -> Book:
    """Return the book with the evidence of all shards in its memory; the book itself if there is one shard.

    >>> book = Book.blank(1)
    >>> book.memory |= {"shock.hits": np.array([5.0, 1.0]), "shock.by_site.tries": np.array([[7, 20]])}
    >>> with_evidence(book, evidence(book) + 1).memory["shock.hits"].round(2).tolist()
    [21.0, 5.0]
    """
    others = total - evidence(book)
    if not others.any():
        return book
    shares, relations, weights = np.split(others, [2, len(others) - len(page_prior.WEIGHTS)])
    pooled = {
        HITS: total[:2] if shares.any() else hits(book.memory, book.share),
        new_pages.OTHERS: relations.reshape(len(new_pages.RELATIONS), -1),
        page_prior.OTHERS: np.maximum(weights, 0.0),
    }
    return replace(book, memory=book.memory | pooled)
