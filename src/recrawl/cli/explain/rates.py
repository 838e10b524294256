"""`recrawl rates`: estimate how often pages change."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, percent, say, table, when
from recrawl.cli.terminal.session import repository
from recrawl.columns import DAY
from recrawl.repository.explain.rates import ESTIMATORS, PageRate, check_estimator
from recrawl.times import span

EXAMPLE = "Example: recrawl rates --by directory --limit 10"
_RATES = {"rate": ">changes per day", "low": ">low", "high": ">high"}
_BASIS = {"visits": ">visits", "changes": ">changes", "days": ">days observed"}


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
    check_estimator(estimator)
    with repository(ctx) as repo:
        if names and len(names) == 1 and by is By.PAGE and _is_page(names[0]):
            found = repo.rate(names[0], estimator=estimator)
            as_json([found.as_dict()]) if json else _show(found)
            return
        rates = repo.rates(names or (), by=by.value, estimator=estimator, limit=limit)
    if json:
        as_json([rate.as_dict() for rate in rates])
        return
    if not rates:
        note("no page was visited yet; run 'recrawl crawl'")
    if by is By.PAGE:
        rows = [{**rate.as_dict(), "even_chance_by": _date(rate.even_chance_by)} for rate in rates]
        table(rows, {"url": "page", **_RATES, **_BASIS, "even_chance_by": "50 % by"})
    else:
        columns = {"url": by.value, "pages": ">pages", **_RATES, **_BASIS, "together": ">total"}
        table((rate.as_dict() for rate in rates), columns)


def _is_page(name: str) -> bool:
    """A name with a path is a page, one without is a site."""
    return bool(urlsplit(name if "://" in name else f"https://{name}").path)


def _show(found: PageRate) -> None:
    rate = found.rate
    say(rate.url)
    basis = f"{count(rate.changes, 'change')} at {count(rate.visits, 'later visit')}"
    dated = f", {found.dated_changes} of them dated by Last-Modified" if found.dated_changes else ""
    if not rate.visits:
        basis = "no comparable visit yet; the estimates come from its site"
    say(f"  {basis}{dated}")
    if rate.rate is not None:
        interval = "" if rate.low is None else f", 90 % interval {rate.low:.3g} to {rate.high:.3g}"
        often = f"once in {span(DAY / rate.rate)}" if rate.rate > 0 else "never so far"
        say(f"  {rate.rate:.3g} changes per day{interval}: {often}")
    say(f"  by its rate alone, it has changed with a probability of 50 % by {_date(rate.even_chance_by)}")
    if found.chance_by_now is not None:
        say(f"  change probability now: {percent(found.chance_by_now)}; 'recrawl predict' says why")
    say("  estimators, in changes per day:")
    for name, value in found.estimates.items():
        say(f"    {name:<10} {'-' if value is None else format(value, '.3g'):>8}   {ESTIMATORS[name][1]}")


def _date(time: datetime | None) -> str:
    return "no foreseeable date" if time is None else when(time)
