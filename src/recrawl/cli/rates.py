"""`recrawl rates`: estimate how often pages change."""

from __future__ import annotations

import math
import time
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, say, table
from recrawl.cli.terminal.session import reading
from recrawl.columns import DAY, Ints
from recrawl.discover.urls import directory, origin
from recrawl.errors import UnknownName, UsageError
from recrawl.learn.rates.comparison import ESTIMATORS, estimate
from recrawl.learn.rates.posteriors import nested
from recrawl.record.storage import Storage
from recrawl.repository.lookup import origin_of, page_of
from recrawl.times import iso, moment, span, stamp

EXAMPLE = "Example: recrawl rates --by directory --limit 10"

_INTERVAL = 0.9
"""Probability that the true rate lies in the interval."""
_COLUMNS = {
    "page": {"url": "page"},
    "directory": {"url": "directory", "pages": ">pages"},
    "site": {"url": "site", "pages": ">pages"},
}
_RATES = {"rate": ">changes per day", "low": ">low", "high": ">high"}
_BASIS = {"visits": ">visits", "changes": ">changes", "days": ">days observed"}
_HORIZON = 36525.0
"""Days after which no date is given."""


class By(StrEnum):
    """What a row stands for."""

    PAGE = "page"
    DIRECTORY = "directory"
    SITE = "site"


def command(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|SITE]...", help="Pages, or sites such as example.org. Default: all."),
    ] = None,
    by: Annotated[
        By, typer.Option(help="What a row stands for; a directory or site shows the mean of its pages.")
    ] = By.PAGE,
    estimator: Annotated[str, typer.Option(help=f"Rate estimator: {', '.join(ESTIMATORS)}.")] = "gamma",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many rows; -1 for all.")] = 50,
    json: AsJson = False,
) -> None:
    """Estimate how often pages change: changes per day with a 90 % interval and the data behind it, fastest first.

    Only visits after a page's first one count. Changes are dated by Last-Modified where the server's dates have proved
    right. For a single page, all estimators are shown side by side.
    """
    if estimator not in ESTIMATORS:
        raise UnknownName("estimator", estimator, ESTIMATORS)
    with reading(ctx) as repository:
        sites, pages = _named(repository, names or [])
        if len(pages) == 1 and not sites and by is By.PAGE:
            report = _one(repository, pages[0], estimator, time.time())
            as_json([report]) if json else _show(report)
            return
        rows = _rows(repository, sites, pages, by, estimator, limit)
    if json:
        as_json(rows)
        return
    if not rows:
        note("no page was visited yet; run 'recrawl crawl'")
    shown = {**_COLUMNS[by], **_RATES, **_BASIS}
    if by is By.PAGE:
        rows = [{**row, "even_chance_by": _minute(row["even_chance_by"])} for row in rows]
    table(rows, shown | ({"even_chance_by": "50 % by"} if by is By.PAGE else {"together": ">total"}))


def _named(repository: Storage, names: list[str]) -> tuple[list[int], list[dict[str, Any]]]:
    """Sites and pages by name; a name without a path is a site."""
    sites, pages = [], []
    numbers = {row.origin: row.id for row in repository.store.sites.all()}
    for name in names:
        if urlsplit(name if "://" in name else f"https://{name}").path:
            pages.append(page_of(repository, name))
        else:
            sites.append(numbers[origin_of(repository, name)])
    return sites, pages


def _rows(
    repository: Storage, sites: list[int], pages: list[dict[str, Any]], by: By, estimator: str, limit: int
) -> list[dict[str, Any]]:
    from recrawl.crawl.reports import rates as engine  # lazy: loads scipy; an unknown URL is refused before

    observed = engine.watched(repository.store, sorted({*sites, *(page["site"] for page in pages)}) or None)
    estimated = engine.rates_of(
        observed, estimator, {By.SITE: observed.site, By.DIRECTORY: observed.folder}.get(by), _INTERVAL
    )
    keep = ~np.isnan(estimated.rate)
    if pages and not sites and by is By.PAGE:
        keep &= np.isin(observed.page, [page["id"] for page in pages])
    order = np.flatnonzero(keep)
    order = order[np.argsort(-estimated.rate[order], kind="stable")]
    order = order if limit < 0 else order[:limit]
    urls = _names(repository, observed.page[estimated.first[order]], by)
    return [
        {"url": url, **_row(estimated, row, by, float(observed.last_visit[estimated.first[row]]))}
        for url, row in zip(urls, order.tolist(), strict=True)
    ]


def _row(estimated: Any, row: int, by: By, last_visit: float) -> dict[str, Any]:
    columns = {name: getattr(estimated, name)[row] for name in ("rate", "low", "high", "visits", "changes", "days")}
    cells: dict[str, Any] = {
        name: int(value) if name in ("visits", "changes") else _number(value) for name, value in columns.items()
    }
    if by is not By.PAGE:
        return {
            "pages": int(estimated.pages[row]),
            **cells,
            "together": float(estimated.rate[row] * estimated.pages[row]),
        }
    days = float(estimated.even[row])
    return {**cells, "even_chance_by": iso(last_visit + days * DAY) if days < _HORIZON else None}


def _names(repository: Storage, pages: Ints, by: By) -> list[str]:
    """Names of rows: the page's URL, or that of its directory or site."""
    urls = repository.store.pages.urls_of(pages.tolist())
    named = [str(urls[page]) for page in pages.tolist()]
    if by is By.PAGE:
        return named
    return [directory(url) if by is By.DIRECTORY else f"{origin(url)}/" for url in named]


def _one(repository: Storage, page: dict[str, Any], estimator: str, now: float) -> dict[str, Any]:
    """All estimates for one page."""
    from recrawl.crawl.reports import rates as engine  # lazy: loads scipy

    observed = engine.with_headers(
        engine.watched(repository.store, [page["site"]]), repository, page["id"], page["site"]
    )
    row = observed.row(page["id"])
    if row < 0:
        raise UsageError("this page was never downloaded; 'recrawl why' explains it")
    estimated = engine.rates_of(observed, estimator, None, _INTERVAL)
    dated = int((observed.gaps.changed & ~np.isnan(observed.gaps.quiet) & (observed.gaps.page == row)).sum())
    posterior = nested(observed.gaps, observed.levels)
    waited = max(0.0, now - float(observed.last_visit[row])) / DAY
    return {
        "url": page["url"],
        **_row(estimated, row, By.PAGE, float(observed.last_visit[row])),
        "last_visit": iso(float(observed.last_visit[row])),
        "chance_by_now": float(posterior.chance(waited)[row]),
        "dated_changes": dated,
        "estimates": {name: _number(estimate(name, observed.gaps, observed.levels)[row]) for name in ESTIMATORS},
    }


def _show(report: dict[str, Any]) -> None:
    say(report["url"])
    basis = f"{count(report['changes'], 'change')} at {count(report['visits'], 'later visit')}"
    dated = f", {report['dated_changes']} of them dated by Last-Modified" if report["dated_changes"] else ""
    if not report["visits"]:
        basis = "no comparable visit yet; the estimates come from its site"
    say(f"  {basis}{dated}")
    if report["rate"] is not None:
        interval = "" if report["low"] is None else f", 90 % interval {report['low']:.3g} to {report['high']:.3g}"
        often = f"once in {span(DAY / report['rate'])}" if report["rate"] > 0 else "never so far"
        say(f"  {report['rate']:.3g} changes per day{interval}: {often}")
    when = report["even_chance_by"]
    say(f"  probability of a change by now: {report['chance_by_now']:.0%}; 50 % by {_minute(when)}")
    say("  estimators, in changes per day:")
    for name, rate in report["estimates"].items():
        say(f"    {name:<10} {'-' if rate is None else format(rate, '.3g'):>8}   {ESTIMATORS[name][1]}")


def _minute(text: str | None) -> str:
    return "no foreseeable date" if text is None else stamp(moment(text, 0.0))


def _number(value: float) -> float | None:
    """JSON has no NaN or infinity: None instead."""
    return float(value) if math.isfinite(value) else None
