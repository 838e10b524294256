"""Change rates of pages, directories and sites, with intervals and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from recrawl.choose import policy_of
from recrawl.columns import DAY, Ints
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports import rates as estimates
from recrawl.crawl.reports.change_probability import change_probability
from recrawl.discover.urls import directory, origin
from recrawl.errors import UnknownName, UsageError
from recrawl.learn.rates import ESTIMATORS, estimate
from recrawl.record.storage import Storage
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.results.values import Row, at, iso
from recrawl.settings import Settings

__all__ = ["ESTIMATORS", "By", "PageRate", "Rate", "check_estimator", "rate", "rates"]

By = Literal["page", "directory", "site"]
_CONFIDENCE = 0.9
"""Probability that the true rate lies in the interval."""
_FARTHEST_DAYS = 36525.0
"""A change that is expected later than this has no date."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Changes per day of a page, or the mean over the pages of a directory or site."""

    url: str
    rate: float | None
    low: float | None
    """90 % interval."""
    high: float | None
    visits: int
    """Visits that could be compared with an earlier one."""
    changes: int
    days: float | None
    """Days between the first and the last of these visits."""
    pages: int | None = None
    """Of a directory or site."""
    together: float | None = None
    """Changes per day of all its pages."""
    even_chance_by: datetime | None = None
    """When a page has changed with a probability of 50 %, by its rate alone."""

    def as_dict(self) -> Row:
        """As `recrawl why --rate --json` prints it."""
        row = asdict(self)
        pages, together, even = row.pop("pages"), row.pop("together"), iso(row.pop("even_chance_by"))
        if pages is None:
            return row | {"even_chance_by": even}
        return {"url": row.pop("url"), "pages": pages, **row, "together": together}


@dataclass(frozen=True, slots=True)
class PageRate:
    """Changes per day of one page, by every estimator."""

    rate: Rate
    last_visit: datetime
    chance_by_now: float | None
    """The change probability now, as `predict` and `why` give it."""
    dated_changes: int
    """Changes that the server's Last-Modified dated."""
    estimates: dict[str, float | None]
    """Changes per day by estimator."""

    def as_dict(self) -> Row:
        """As `recrawl why --rate URL --json` prints it."""
        return {
            **self.rate.as_dict(),
            "last_visit": iso(self.last_visit),
            "chance_by_now": self.chance_by_now,
            "dated_changes": self.dated_changes,
            "estimates": self.estimates,
        }


def rates(storage: Storage, names: Iterable[str], by: By, estimator: str, limit: int) -> list[Rate]:
    """The rates of named pages and sites, or of all, fastest first."""
    check_estimator(estimator)
    sites, pages = named(storage, names)
    seen = estimates.watched(storage.store, sorted({*sites, *(page["site"] for page in pages)}) or None)
    groups = {"site": seen.site, "directory": seen.folder}.get(by)
    table = estimates.rates_of(seen, estimator, groups, _CONFIDENCE)
    keep = ~np.isnan(table.rate)
    if pages and not sites and by == "page":
        keep &= np.isin(seen.page, [page["id"] for page in pages])
    order = np.flatnonzero(keep)
    order = order[np.argsort(-table.rate[order], kind="stable")]
    order = order if limit < 0 else order[:limit]
    urls = _urls(storage, seen.page[table.first[order]], by)
    return [
        _rate(url, table, row, by, float(seen.last_visit[table.first[row]]))
        for url, row in zip(urls, order.tolist(), strict=True)
    ]


def rate(folder: Path, values: Settings, options: CrawlOptions, url: str, estimator: str) -> PageRate:
    """The rate of one page by every estimator, and its change probability now."""
    check_estimator(estimator)
    with Storage(folder) as storage:  # a connection of its own: the book needs temporary tables
        page = page_of(storage, url)
        seen = estimates.with_headers(
            estimates.watched(storage.store, [page["site"]]), storage, page["id"], page["site"]
        )
        row = seen.row(page["id"])
        if row < 0:
            raise UsageError(f"{page['url']} was never downloaded; 'recrawl why' explains it")
        policy = policy_of(values["policy"])
        probability = change_probability(storage, options, policy, values["seed"], page["id"])
    table = estimates.rates_of(seen, estimator, None, _CONFIDENCE)
    last_visit = float(seen.last_visit[row])
    return PageRate(
        rate=_rate(page["url"], table, row, "page", last_visit),
        last_visit=at(last_visit),
        chance_by_now=probability,
        dated_changes=int((seen.gaps.changed & ~np.isnan(seen.gaps.quiet) & (seen.gaps.page == row)).sum()),
        estimates={name: _number(estimate(name, seen.gaps, seen.levels)[row]) for name in ESTIMATORS},
    )


def named(storage: Storage, names: Iterable[str]) -> tuple[list[int], list[Row]]:
    """Numbers of sites and rows of pages by name; a name without a path is a site."""
    sites, pages = [], []
    numbers = {row.origin: row.id for row in storage.store.sites.all()}
    for name in names:
        if urlsplit(name if "://" in name else f"https://{name}").path:
            pages.append(page_of(storage, name))
        else:
            sites.append(numbers[origin_of(storage, name)])
    return sites, pages


def check_estimator(name: str) -> None:
    """Raise `UnknownName` for an unknown estimator."""
    if name not in ESTIMATORS:
        raise UnknownName("estimator", name, ESTIMATORS)


def _rate(url: str, table: Any, row: int, by: By, last_visit: float) -> Rate:
    cells: dict[str, Any] = {name: _number(getattr(table, name)[row]) for name in ("rate", "low", "high", "days")}
    cells |= {name: int(getattr(table, name)[row]) for name in ("visits", "changes")}
    if by != "page":
        together = float(table.rate[row] * table.pages[row])
        return Rate(url, **cells, pages=int(table.pages[row]), together=together)
    days = float(table.even[row])
    even = at(last_visit + days * DAY) if days < _FARTHEST_DAYS else None
    return Rate(url, **cells, even_chance_by=even)


def _urls(storage: Storage, pages: Ints, by: By) -> list[str]:
    """The URL of each page, or of its directory or site."""
    found = storage.store.pages.urls_of(pages.tolist())
    urls = [found[page] for page in pages.tolist()]
    if by == "page":
        return urls
    return [directory(url) if by == "directory" else f"{origin(url)}/" for url in urls]


def _number(value: float) -> float | None:
    """None for what JSON cannot hold: not a number, infinite."""
    return float(value) if math.isfinite(value) else None
