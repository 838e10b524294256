"""`recrawl rates`."""

from __future__ import annotations

import math
import time
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
import typer
from numpy.typing import NDArray

from recrawl.cli.output import AsJson, as_json, count, note, say, table
from recrawl.cli.session import reading
from recrawl.discover.urls import directory, origin
from recrawl.errors import UnknownName, UsageError
from recrawl.learn.rates.comparison import ESTIMATORS, estimate
from recrawl.learn.rates.posteriors import nested
from recrawl.record.storage import Storage
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.times import iso, moment, span, stamp

EXAMPLE = "Example: recrawl rates --by directory --limit 10"

_SURE = 0.9
"""How likely the true rate lies in the interval."""
_COLUMNS = {
    "page": {"url": "page"},
    "directory": {"url": "directory", "pages": ">pages"},
    "site": {"url": "site", "pages": ">pages"},
}
_RATES = {"rate": ">changes a day", "low": ">at least", "high": ">at most"}
_BASIS = {"visits": ">visits", "changes": ">changes", "days": ">days watched"}
_FARTHEST = 36525.0
"""Days ahead of which no time is named."""


class By(StrEnum):
    """What a row is about."""

    PAGE = "page"
    DIRECTORY = "directory"
    SITE = "site"


def command(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[URL|SITE]...", help="Pages, or sites as example.org; all if none.")
    ] = None,
    by: Annotated[
        By, typer.Option(help="What a row is about; a directory or site has the mean of its pages.")
    ] = By.PAGE,
    estimator: Annotated[str, typer.Option(help=f"Where rates come from: {', '.join(ESTIMATORS)}.")] = "gamma",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="Most rows to list; -1 for all.")] = 50,
    json: AsJson = False,
) -> None:
    """How often pages change: changes a day, how sure that is, and what it rests on. The fastest first.

    Only visits after a page's first can tell. Where a server's Last-Modified has proven right, it dates changes. Asked
    about one page, all estimators answer side by side.
    """
    if estimator not in ESTIMATORS:
        raise UnknownName("estimator", estimator, ESTIMATORS)
    with reading(ctx) as repository:
        sites, pages = _named(repository, names or [])
        if len(pages) == 1 and not sites and by is By.PAGE:
            told = _one(repository, pages[0], estimator, time.time())
            as_json([told]) if json else _show(told)
            return
        rows = _rows(repository, sites, pages, by, estimator, limit)
    if json:
        as_json(rows)
        return
    if not rows:
        note("no page was visited yet: 'recrawl crawl' begins")
    shown = {**_COLUMNS[by], **_RATES, **_BASIS}
    if by is By.PAGE:
        rows = [{**row, "even_chance_by": _minute(row["even_chance_by"])} for row in rows]
    table(rows, shown | ({"even_chance_by": "even chance by"} if by is By.PAGE else {"together": ">together"}))


def _named(repository: Storage, names: list[str]) -> tuple[list[int], list[dict[str, Any]]]:
    """Sites and pages by their names. A name without a path is a site."""
    sites, pages = [], []
    numbers = {row.origin: row.id for row in repository.store.sites()}
    for name in names:
        if urlsplit(name if "://" in name else f"https://{name}").path:
            pages.append(page_of(repository, name))
        else:
            sites.append(numbers[origin_of(repository, name)])
    return sites, pages


def _rows(
    repository: Storage, sites: list[int], pages: list[dict[str, Any]], by: By, estimator: str, limit: int
) -> list[dict[str, Any]]:
    from recrawl.crawl.reports import rates as engine  # lazy: loads slowly: a wrong address is told at once

    seen = engine.watched(repository.store, sorted({*sites, *(page["site"] for page in pages)}) or None)
    told = engine.rates_of(seen, estimator, {By.SITE: seen.site, By.DIRECTORY: seen.folder}.get(by), _SURE)
    keep = ~np.isnan(told.rate)
    if pages and not sites and by is By.PAGE:
        keep &= np.isin(seen.page, [page["id"] for page in pages])
    order = np.flatnonzero(keep)
    order = order[np.argsort(-told.rate[order], kind="stable")]
    order = order if limit < 0 else order[:limit]
    urls = _addresses(repository, seen.page[told.first[order]], by)
    return [
        {"url": url, **_row(told, row, by, float(seen.last_visit[told.first[row]]))}
        for url, row in zip(urls, order.tolist(), strict=True)
    ]


def _row(told: Any, row: int, by: By, last_visit: float) -> dict[str, Any]:
    columns = {name: getattr(told, name)[row] for name in ("rate", "low", "high", "visits", "changes", "days")}
    cells: dict[str, Any] = {
        name: int(value) if name in ("visits", "changes") else _number(value) for name, value in columns.items()
    }
    if by is not By.PAGE:
        return {"pages": int(told.pages[row]), **cells, "together": float(told.rate[row] * told.pages[row])}
    days = float(told.even[row])
    return {**cells, "even_chance_by": iso(last_visit + days * 86400) if days < _FARTHEST else None}


def _addresses(repository: Storage, pages: NDArray[np.int64], by: By) -> list[str]:
    """What rows are called: the page, or the directory or site that it stands for."""
    sql = "SELECT id, url FROM pages WHERE id IN (SELECT value FROM json_each(?))"
    urls = dict(repository.store.db.execute(sql, (str(pages.tolist()),)))
    named = [str(urls[page]) for page in pages.tolist()]
    if by is By.PAGE:
        return named
    return [directory(url) if by is By.DIRECTORY else f"{origin(url)}/" for url in named]


def _one(repository: Storage, page: dict[str, Any], estimator: str, now: float) -> dict[str, Any]:
    """Everything about one page."""
    from recrawl.crawl.reports import rates as engine  # lazy: loads slowly

    seen = engine.with_headers(engine.watched(repository.store, [page["site"]]), repository, page["id"], page["site"])
    row = seen.row(page["id"])
    if row < 0:
        raise UsageError("this page was never downloaded; 'recrawl why' says why")
    told = engine.rates_of(seen, estimator, None, _SURE)
    dated = int((seen.gaps.changed & ~np.isnan(seen.gaps.quiet) & (seen.gaps.page == row)).sum())
    belief = nested(seen.gaps, seen.levels)
    waited = max(0.0, now - float(seen.last_visit[row])) / 86400
    return {
        "url": page["url"],
        **_row(told, row, By.PAGE, float(seen.last_visit[row])),
        "last_visit": iso(float(seen.last_visit[row])),
        "chance_by_now": float(belief.chance(waited)[row]),
        "dated_changes": dated,
        "estimates": {name: _number(estimate(name, seen.gaps, seen.levels)[row]) for name in ESTIMATORS},
    }


def _show(told: dict[str, Any]) -> None:
    say(told["url"])
    basis = f"{count(told['changes'], 'change')} at {count(told['visits'], 'later visit')}"
    dated = f", {told['dated_changes']} of them dated by the server" if told["dated_changes"] else ""
    if not told["visits"]:
        basis = "no visit that could be compared yet: what follows is what is usual on its site"
    say(f"  {basis}{dated}")
    if told["rate"] is not None:
        range_ = "" if told["low"] is None else f", between {told['low']:.3g} and {told['high']:.3g} (9 to 1)"
        often = f"once in {span(86400 / told['rate'])}" if told["rate"] > 0 else "never, as far as was seen"
        say(f"  {told['rate']:.3g} changes a day{range_}: {often}")
    when = told["even_chance_by"]
    say(f"  it has changed by now with a chance of {told['chance_by_now']:.0%}; the chance is even by {_minute(when)}")
    say("  what the estimators say, in changes a day:")
    for name, rate in told["estimates"].items():
        say(f"    {name:<10} {'-' if rate is None else format(rate, '.3g'):>8}   {ESTIMATORS[name][1]}")


def _minute(text: str | None) -> str:
    return "nothing that can be foreseen" if text is None else stamp(moment(text, 0.0))


def _number(value: float) -> float | None:
    """JSON has no such thing as not a number."""
    return float(value) if math.isfinite(value) else None
