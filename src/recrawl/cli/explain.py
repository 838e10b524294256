"""Commands that explain and estimate: why, anchor, noise, policies, plugins."""

from __future__ import annotations

import inspect
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from recrawl import plugins as installed
from recrawl.cli.declared import example
from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, count, note, percent, repository, say, table, when
from recrawl.errors import UsageError
from recrawl.parameters import Estimator, Limit, RateOf
from recrawl.times import duration, span

if TYPE_CHECKING:
    from recrawl.repository.explain.rates import PageRate
    from recrawl.repository.repository import Repository

_RATES = {"rate": ">changes per day", "low": ">low", "high": ">high"}
_DAY = 86_400.0
_BASIS = {"visits": ">visits", "changes": ">changes", "days": ">days observed"}


@example("Example: recrawl why https://example.org/news")
def why(
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
        as_json([found.as_dict()]) if json else _why_show(found)
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


def _why_show(found: PageRate) -> None:
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


@example("Example: recrawl anchor https://example.org --every 6h")
def anchor(
    ctx: typer.Context,
    site: Annotated[
        str,
        typer.Argument(
            metavar="[SITE]",
            autocompletion=completions.sites,
            help="A site, or any page of it. Default: a summary of all sites.",
        ),
    ] = "",
    every: Annotated[
        str, typer.Option(metavar="TIME", help="Interval between visits to the pages near the anchor.")
    ] = "6h",
    per_minute: Annotated[
        float, typer.Option(metavar="PAGES", help="Limit of pages per minute over all sites; 0 uses the settings.")
    ] = 0.0,
    name: Annotated[str, typer.Option("--set", metavar="URL", help="Set the anchor by hand.")] = "",
    auto: Annotated[bool, typer.Option("--auto", help="Find the anchor automatically again.")] = False,
    json: AsJson = False,
) -> None:
    """Show the anchor of a site (the page that links its newest pages) and how the change probability falls with the
    link distance from it. The policy anchor-depth visits the pages near the anchor every few hours.
    """
    if name and auto:
        raise UsageError("give --set or --auto, not both")
    with repository(ctx) as repo:
        if name or auto:
            repo.set_anchor(site, name)
        rows = [found.as_dict() for found in repo.anchors(site, every=every, per_minute=per_minute)]
    if json:
        as_json(rows[0] if site else rows)
    elif site:
        _anchor_show(rows[0], duration(every))
    else:
        table(
            ({**row, **row["anchor"], "n": row["recommended"]["n"], "site": row["site"]} for row in rows),
            {"site": "site", "pages": ">pages", "url": "anchor", "score": ">score", "n": ">n"},
        )


def _anchor_show(row: dict[str, Any], period: float) -> None:
    anchor, advice = row["anchor"], row["recommended"]
    say(f"{row['site']}: {count(row['pages'], 'page')}")
    say(f"anchor: {anchor['url']}{' (set by hand)' if anchor['named'] else ''}")
    say(f"  {anchor['why']}")
    say()
    if row["runners_up"]:
        say("other candidates")
        table(
            row["runners_up"],
            {"score": ">score", "links": ">links", "new": ">new", "changed": ">changed", "url": "page"},
        )
        say()
    say(f"change by link distance from the anchor; expected changes after {span(period)}")
    table(
        ({**line, "depth": "unreachable" if line["depth"] is None else line["depth"]} for line in row["depths"]),
        {
            "depth": ">depth",
            "pages": ">pages",
            "changed": ">changed of visits",
            "expected": ">expected",
            "pages_up_to": ">pages up to it",
            "success_up_to": ">success",
            "hours_up_to": ">hours",
        },
    )
    say()
    say(f"recommended: n = {advice['n']}, {count(advice['pages'], 'page')} every {span(period)}; {advice['why']}")


@example("Example: recrawl noise https://example.org/")
def noise(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A page; with --copies, a site. Default: all.")
    ] = None,
    frame: Annotated[
        str, typer.Option("--frame", metavar="SITE", help="List what was learned as the frame of a site instead.")
    ] = "",
    copies: Annotated[
        bool,
        typer.Option("--copies", help="List pages with several URLs, and what was learned from them instead."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Suggest filters for noise (dates, counters, ads) on pages that change at every visit.

    Each filter was tried on the stored changes of the page and of its site: none that would hide a change of content,
    such as the number of a release, is suggested.

    Add a filter to recrawl.toml, for one site or (without site) for all. `selectors` and `patterns` remove noise before
    pages are compared; `frame` and `content` overrule what was learned: elements that never or always count as content.

    \b
        [[filter]]
        site = "https://example.org"
        selectors = ["#visitors"]
        patterns = ['\\d\\d:\\d\\d Uhr']
        frame = ["#latest-posts"]
        content = ["nav .opening-hours"]
    """
    if copies:
        _list_copies(ctx, url or "", json=json)
        return
    if frame:
        _list_frame(ctx, frame, json=json)
        return
    with repository(ctx) as repo:
        rows = [proposal.as_dict() for proposal in repo.noise_proposals(url or "")]
    if json:
        as_json(rows)
        return
    if not rows:
        note("no suggestion: no page changes at every visit because of noise alone")
        return
    table(
        (
            {
                **row,
                "hides": f"{row['hides']} of {row['of']}",
                "site": f"{row['site_hides']} of {row['site_of']}",
                "news": f"{row['news_hidden']} of {row['news']}",
            }
            for row in rows
        ),
        {"url": "page", "kind": "kind", "value": "filter", "hides": ">would hide", "site": ">on other pages"}
        | {"news": ">of the news", "example": "example"},
    )
    say("add the filters you want to recrawl.toml; see 'recrawl noise --help'")


def _list_copies(ctx: typer.Context, site: str, *, json: bool) -> None:
    with repository(ctx) as repo:
        found = repo.copies(site)
    if json:
        as_json(found.as_dict())
        return
    if not found.groups:
        note("no page is known under several URLs")
    for group in found.groups:
        say("\n    also at ".join((group["url"], *group["also"])))
    if found.claims:
        table(
            found.claims, {"site": "site", "right": ">right canonical URLs", "wrong": ">wrong", "believed": "believed"}
        )
    if found.parameters:
        table(found.parameters, {"place": "URLs", "name": "parameter left out", "copies": ">changed none of"})
        say("keep a parameter with 'recrawl config keep_parameters NAME'")


def _list_frame(ctx: typer.Context, site: str, *, json: bool) -> None:
    with repository(ctx) as repo:
        rows = [line._asdict() for line in repo.frame(site)]
    if json:
        as_json(rows)
    elif rows:
        table(rows, {"pages": ">pages", "of": ">of", "text": "line"})
    else:
        note("nothing learned yet: a frame shows once several pages of the site were downloaded")


@example("Example: recrawl policies --json")
def policies(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the policies: purpose, parameters with defaults, and source."""
    from recrawl.choose import parameters, usable_policies  # lazy: the help does without
    from recrawl.lab.replays.clairvoyant import Clairvoyant  # lazy: the help does without

    # `recrawl plugins` lists those that cannot be loaded, with the reason. Only the lab knows the future.
    kinds: dict[str, type[Any]] = {**usable_policies(), Clairvoyant.name: Clairvoyant}
    rows = [
        {
            "name": name,
            "what": (inspect.getdoc(kind) or "").partition("\n")[0],
            "parameters": parameters(name) if kind is not Clairvoyant else {},
            "needs": sorted(kind.needs),
            "source": kind.source,
        }
        for name, kind in kinds.items()
    ]
    if json:
        as_json(rows)
        return
    shown = ({**row, "parameters": ", ".join(f"{k}={v}" for k, v in row["parameters"].items())} for row in rows)
    table(shown, {"name": "policy", "parameters": "parameters", "what": "what it does", "source": "source"})


@example("Example: recrawl plugins --json")
def plugins(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the plug-ins of installed packages: policies, fetchers, parsers, change levels and sinks.

    Each is imported, and the list says why one cannot be used.
    """
    rows = [plugin.as_dict() for plugin in installed.found()]
    if json:
        as_json(rows)
    else:
        table(
            rows, {"group": "group", "name": "name", "package": "package", "version": "version", "problem": "problem"}
        )
