"""`recrawl why`: why a page was visited or not, how likely it has changed, and how often pages change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, percent, say, table, when
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.parameters import Estimator, Limit, RateOf
from recrawl.times import span

if TYPE_CHECKING:
    from recrawl.repository.explain.rates import PageRate
    from recrawl.repository.repository import Repository

EXAMPLE = "Example: recrawl why https://example.org/news"
_RATES = {"rate": ">changes per day", "low": ">low", "high": ">high"}
_DAY = 86_400.0
_BASIS = {"visits": ">visits", "changes": ">changes", "days": ">days observed"}


def command(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL|SITE]...", help="A page; with --rate, pages or sites such as example.org, or all."
        ),
    ] = None,
    chance: Annotated[
        bool, typer.Option("--chance", help="Estimate how likely a page has changed since its last visit.")
    ] = False,
    rate: Annotated[bool, typer.Option("--rate", help="Estimate how often pages change, fastest first.")] = False,
    by: RateOf = "page",
    estimator: Estimator = "gamma",
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """Explain why a page was visited or not, and whether the next cycle would choose it.

    With --chance: the probability that the page has changed by now, from its own history, related pages and its
    content. With --rate: changes per day with a 90 % interval and the data behind it. Only visits after a page's first
    one count. Changes are dated by Last-Modified where the server's dates have proved right. For a single page, all
    estimators are shown side by side; --by, --estimator and --limit are for --rate.
    """
    if chance and rate:
        raise UsageError("give --chance or --rate, not both")
    with repository(ctx) as repo:
        if rate:
            _rates(repo, names or [], by, estimator, limit, json=json)
            return
        if not names or len(names) > 1:
            raise UsageError("name one page: recrawl why https://example.org/news")
        found = repo.predict(names[0]) if chance else repo.why(names[0])
    if json:
        as_json(found.as_dict())
        return
    say(found.url)
    for sentence in str(found).splitlines():
        say(f"  {sentence}")


def _rates(repo: Repository, names: list[str], by: RateOf, estimator: str, limit: int, *, json: bool) -> None:
    if len(names) == 1 and by == "page" and _is_page(names[0]):
        found = repo.rate(names[0], estimator=estimator)
        as_json([found.as_dict()]) if json else _show(found)
        return
    rates = repo.rates(names, by=by, estimator=estimator, limit=limit)
    if json:
        as_json([rate.as_dict() for rate in rates])
        return
    if not rates:
        note("no page was visited yet; run 'recrawl crawl'")
    if by == "page":
        rows = [{**rate.as_dict(), "even_chance_by": _date(rate.even_chance_by)} for rate in rates]
        table(rows, {"url": "page", **_RATES, **_BASIS, "even_chance_by": "50 % by"})
    else:
        columns = {"url": by, "pages": ">pages", **_RATES, **_BASIS, "together": ">total"}
        table((rate.as_dict() for rate in rates), columns)


def _is_page(name: str) -> bool:
    """A name with a path is a page, one without is a site."""
    return bool(urlsplit(name if "://" in name else f"https://{name}").path)


def _show(found: PageRate) -> None:
    from recrawl.repository.explain.rates import ESTIMATORS  # lazy: the help does without

    rate = found.rate
    say(rate.url)
    basis = f"{count(rate.changes, 'change')} at {count(rate.visits, 'later visit')}"
    dated = f", {found.dated_changes} of them dated by Last-Modified" if found.dated_changes else ""
    if not rate.visits:
        basis = "no comparable visit yet; the estimates come from its site"
    say(f"  {basis}{dated}")
    if rate.rate is not None:
        interval = "" if rate.low is None else f", 90 % interval {rate.low:.3g} to {rate.high:.3g}"
        often = f"once in {span(_DAY / rate.rate)}" if rate.rate > 0 else "never so far"
        say(f"  {rate.rate:.3g} changes per day{interval}: {often}")
    say(f"  by its rate alone, it has changed with a probability of 50 % by {_date(rate.even_chance_by)}")
    if found.chance_by_now is not None:
        say(f"  change probability now: {percent(found.chance_by_now)}; 'recrawl why --chance' says why")
    say("  estimators, in changes per day:")
    for name, value in found.estimates.items():
        say(f"    {name:<10} {'-' if value is None else format(value, '.3g'):>8}   {ESTIMATORS[name][1]}")


def _date(time: datetime | None) -> str:
    return "no foreseeable date" if time is None else when(time)
