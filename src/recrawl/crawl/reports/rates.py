"""Change rates of the pages of a repository, estimated from its recorded visits as columns. Nothing is written.

If a server's Last-Modified is trusted (spec C6), it dates the change that a visit found. The store has the
Last-Modified of each page's newest version, hence of its last change; for a single page, the headers in the archive
date earlier changes too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.compare.validators import ValidatorTrust, http_time
from recrawl.errors import DamagedRecord
from recrawl.learn.rates import Gaps, Posterior, estimate, nested
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_MAX_VISITS = 5_000_000
"""Newest visits that are used."""
_MAX_VERSIONS = 200
"""Newest versions of a single page whose headers are read."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Visited pages, one row each, with the outcomes of their visits."""

    page: Ints
    """Page numbers, ascending."""
    site: Ints
    folder: Ints
    """Group numbers from 0, as for sites."""
    last_visit: Floats
    gaps: Gaps
    at: Floats
    """One per row of `gaps`: the time of the visit."""

    @property
    def levels(self) -> list[Ints]:
        """The groups whose rates serve as priors of their pages."""
        return [self.site, self.folder]

    def row(self, page: int) -> int:
        """The row of a page, -1 if it was never visited."""
        place = int(np.searchsorted(self.page, page))
        return place if place < len(self.page) and self.page[place] == page else -1


def watched(store: Store, sites: list[int] | None = None) -> Watched:
    """Visited pages of these sites (None: of all)."""
    rows = store.visits.answered(sites, _MAX_VISITS)
    rows = rows[np.argsort(rows["page"], kind="stable")]
    facts = store.pages.last_modified(sites)  # after them, so that every page is there that was visited
    page, first = np.unique(rows["page"], return_index=True)
    owner = np.repeat(np.arange(len(page)), np.diff(np.append(first, len(rows))))
    before = np.append(-np.inf, rows["at"][:-1])
    later = np.ones(len(rows), bool)
    later[first] = False  # first visits have nothing to compare with
    facts = facts[np.searchsorted(facts["id"], page)]
    trustworthy = trusted(store)
    modified = (
        np.where(trustworthy[facts["site"]] & (facts["modified"] > 0), facts["modified"], np.nan)
        if len(page)
        else np.zeros(0)
    )
    answers = rows[later]
    last = _last_change(owner[later], answers["changed"], len(page))
    quiet = _quiet(answers["at"], before[later], modified[owner[later]], last)
    gap = (answers["at"] - before[later]) / DAY
    return Watched(
        page=page,
        site=np.unique(facts["site"], return_inverse=True)[1].reshape(-1).astype(np.int64),
        folder=np.unique(facts["folder"], return_inverse=True)[1].reshape(-1).astype(np.int64),
        last_visit=rows["at"][np.append(first[1:], len(rows)) - 1] if len(rows) else np.zeros(0),
        gaps=Gaps.of(owner[later], gap, answers["changed"], pages=len(page), quiet=quiet),
        at=np.ascontiguousarray(answers["at"]),
    )


def trusted(store: Store) -> Flags:
    """One per site: whether its Last-Modified was right at least once, and rarely wrong."""
    rows = store.sites.all()
    trustworthy = np.zeros(max((row.id for row in rows), default=-1) + 1, bool)
    for row in rows:
        trust = ValidatorTrust(row.lm_good, row.lm_bad, row.etag_good, row.etag_bad)
        trustworthy[row.id] = row.lm_good > 0 and trust.last_modified
    return trustworthy


def _last_change(owner: Ints, changed: Flags, pages: int) -> Flags:
    """Marks the last change of each page; rows are in order of time."""
    last = np.full(pages, -1)
    where = np.flatnonzero(changed)
    last[owner[where]] = where  # the last of several assignments counts
    marked = np.zeros(len(owner), bool)
    marked[last[last >= 0]] = True
    return marked


def _quiet(at: Floats, before: Floats, modified: Floats, marked: Flags) -> Floats:
    """Days from a dated change to the visit that found it; NaN for a date outside the gap."""
    inside = marked & (modified > before) & (modified <= at)
    return np.where(inside, (at - modified) / DAY, np.nan)


def with_headers(seen: Watched, repository: Storage, page: int, site: int) -> Watched:
    """The same, with dates of one page's earlier changes from the archive, if its server is trusted."""
    row = seen.row(page)
    trustworthy = trusted(repository.store)
    if row < 0 or site >= len(trustworthy) or not trustworthy[site]:
        return seen
    modified = np.full(len(seen.at), np.nan)
    mine = np.flatnonzero(seen.gaps.page == row)
    for version in repository.store.versions.of_page(page)[-_MAX_VERSIONS:]:
        try:
            date = next((value for name, value in repository.body(version)[1] if name.lower() == "last-modified"), "")
        except DamagedRecord:
            continue
        modified[mine[np.abs(seen.at[mine] - version.at) < 1e-3]] = http_time(date) if date else np.nan
    before = seen.at - seen.gaps.gap * DAY
    quiet = _quiet(seen.at, before, modified, seen.gaps.changed)
    gaps = seen.gaps
    known = np.where(np.isnan(quiet), gaps.quiet, quiet)
    new = Gaps(gaps.page, gaps.gap, gaps.changed, gaps.pages, gaps.times, known)
    return Watched(seen.page, seen.site, seen.folder, seen.last_visit, new, seen.at)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Estimated rates, one row per page or group of pages."""

    first: Ints
    """The row of the page, or of the first page of the group, in `Watched`."""
    pages: Ints
    rate: Floats
    """Changes per day and page; NaN without data."""
    low: Floats
    high: Floats
    """Interval of the rate; only from `gamma`, NaN from other estimators."""
    even: Floats
    """Days after which a change has probability 0.5."""
    visits: Floats
    """Visits after the first one."""
    changes: Floats
    days: Floats


def rates_of(seen: Watched, estimator: str, group: Ints | None = None, sure: float = 0.9) -> Rates:
    """The rates of pages or, with `group`, the mean rates of groups."""
    own = np.arange(len(seen.page)) if group is None else group
    first, pages = np.unique(own, return_index=True)[1], np.bincount(own)
    gaps = seen.gaps
    posterior = of_groups(nested(gaps, seen.levels), own)
    if estimator == "gamma":
        rate = posterior.rate
        low, high = posterior.interval(sure)
    else:
        estimates = estimate(estimator, gaps)
        defined = ~np.isnan(estimates)
        with np.errstate(invalid="ignore"):
            rate = np.bincount(own[defined], estimates[defined], len(pages)) / np.bincount(
                own[defined], minlength=len(pages)
            )
        low = high = np.full(len(pages), np.nan)
    visits, changes, days = (
        np.bincount(own, column).astype(np.float64) for column in (gaps.visits, gaps.changes, gaps.watched)
    )
    return Rates(first, pages, rate, low, high, posterior.median_days(), visits, changes, days)


def of_groups(pages: Posterior, group: Ints) -> Posterior:
    """The mean rate of each group's pages, as the Gamma distribution with its mean and variance.

    >>> both = of_groups(Posterior(np.array([2.0, 2.0, 1.0]), np.array([1.0, 1.0, 4.0])), np.array([0, 0, 1]))
    >>> both.a.tolist(), both.b.tolist()
    ([4.0, 1.0], [2.0, 4.0])
    """
    count = np.bincount(group)
    mean = np.bincount(group, pages.a / pages.b) / count
    spread = np.bincount(group, pages.a / pages.b**2) / count**2
    return Posterior(mean**2 / spread, mean / spread)
