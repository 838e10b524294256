"""How accurately a replay estimates change rates (spec M7, Q table 4.2): 100 - |real - estimated|, in points.

The real rate of a site is the share of its pages that change in a cycle, as a mean over the cycles. The estimate comes
from what the visits have shown by the end: every page's estimated changes per day, as `recrawl why --rate` shows them,
give its probability to change in a cycle, and a site's estimate is the mean over its pages. Pages that exist at the
start count; the measure is the mean over sites.
"""

from __future__ import annotations

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.change_frequency import page_rates
from recrawl.columns import DAY, Floats, unique
from recrawl.lab.histories.history import History


def rate_accuracy(history: History, book: Book, cycle: float, cycles: int) -> float:
    """Return the mean accuracy over sites in percentage points; nan without pages at the start."""
    old = np.flatnonzero(history.time[history.first[:-1]] <= 0)
    site = history.site[old].astype(np.int64)
    pages = np.bincount(site, minlength=len(history.sites))
    real = np.bincount(site, real_rates(history, cycle, cycles)[old], len(pages))
    estimated = np.bincount(site, -np.expm1(-page_rates(book)[old] * cycle / DAY), len(pages))
    there = pages > 0
    error = np.abs(real - estimated)[there] / pages[there]
    return 100 - 100 * float(error.mean()) if len(error) else float("nan")


def real_rates(history: History, cycle: float, cycles: int) -> Floats:
    """Return the share of cycles in which each page changed at least once."""
    page = history.page_of
    changed = np.append(False, (page[1:] == page[:-1]) & (history.version[1:] != history.version[:-1]))
    number = np.ceil(history.time / cycle).astype(np.int64)
    within = changed & (number >= 1) & (number <= cycles)
    pairs = unique(page[within] * np.int64(cycles + 1) + number[within])
    return np.bincount(pairs // (cycles + 1), minlength=len(history)) / cycles
