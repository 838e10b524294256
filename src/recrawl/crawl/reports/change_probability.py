"""The change probability of pages: the chance that the stored copy is out of date, as the active policy estimates it.

Every screen takes it from here. A policy that estimates change (`ChangeEstimator`) is asked; for the others the change
rates of the page and its site decide, as for the freshness of the repository.
"""

from __future__ import annotations

import numpy as np

from recrawl.book import Book
from recrawl.choose import Policy
from recrawl.choose.protocol import ChangeEstimator, Outer
from recrawl.columns import Floats
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.next_plan import book_now
from recrawl.learn.rates import fit_rates
from recrawl.model import Pages
from recrawl.record.storage import Storage
from recrawl.record.store import Store

CHANGE_RATE = "change rate"


def estimated_by(policy: Policy) -> str:
    """What estimates the change probability under a policy: its name, or `change rate`."""
    chooser = _innermost(policy)
    return chooser.name if isinstance(chooser, ChangeEstimator) else CHANGE_RATE


def _innermost(policy: Policy) -> Policy:
    return _innermost(policy.inner_policy()) if isinstance(policy, Outer) else policy


def change_probability(
    repository: Storage, options: CrawlOptions, policy: Policy, seed: int, page: int
) -> float | None:
    """The change probability of one page now; None before its first download.

    The storage must have a connection of its own: the book needs temporary tables.
    """
    book = book_now(repository, options, policy, seed)
    found = float(change_probabilities(repository.store, policy, book, np.array([page]))[0])
    return None if np.isnan(found) else found


def change_probabilities(store: Store, policy: Policy, book: Book, pages: Pages) -> Floats:
    """The change probability of pages at the time of the book; NaN before their first download."""
    downloaded = np.flatnonzero(book.visits[pages] > 0)
    found = np.full(len(pages), np.nan)
    if not len(downloaded):
        return found
    known, estimator = pages[downloaded], _innermost(policy)
    if isinstance(estimator, ChangeEstimator):
        found[downloaded] = estimator.change_probability(book, known)
        return found
    rows = store.pages.summary_columns()
    watched = rows["last_visit"] - rows["found"]
    model = fit_rates(rows["site"], rows["visits"], rows["changes"] - 1, watched, int(rows["site"].max()) + 1)
    unchanged = model.unchanged(np.where(np.isfinite(rows["last_visit"]), book.now - rows["last_visit"], 0.0))
    found[downloaded] = 1.0 - unchanged[known]
    return found
