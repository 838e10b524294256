"""Commands that list what is stored: status, usage, sites, pages, changes, log, show, diff, search."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import (
    AsJson,
    as_json,
    clean,
    count,
    note,
    percent,
    repository,
    say,
    show_markdown,
    table,
    when,
    write_picture,
)
from recrawl.errors import UsageError
from recrawl.parameters import ChangeQuery, Hits, Limit, PageQuery, Query, SearchQuery, Url
from recrawl.repository.results.words import held_text, shared_text, size
from recrawl.times import span, stamp

if TYPE_CHECKING:
    from recrawl.repository.reports.usage import UsedSpace
    from recrawl.repository.repository import Repository
    from recrawl.repository.results.difference import Difference
    from recrawl.repository.results.pages import Version
    from recrawl.repository.results.values import Change, SearchHit, Site, Status, Visit

_MOST_SITES = 5
_CYCLE_COLUMNS = {
    "cycle": ">no",
    "kind": "kind",
    "policy": "policy",
    "started": "started",
    "visits": ">visits",
    "new": ">new",
    "changed": ">changed",
    "gone": ">gone",
    "unchanged": ">same",
    "missing": ">missing",
    "skipped": ">skipped",
    "failed": ">failed",
    "state": "",
}
_SITES = 10
_AGES = {"month": "last 30 days", "year": "the year before", "older": "older"}
_VISITS = {
    "at": "visited",
    "outcome": "outcome",
    "status": ">HTTP",
    "failure": "failure",
    "received": ">bytes",
    "detail": "detail",
}
_VERSIONS = {
    "number": ">version",
    "at": "downloaded",
    "what": "outcome",
    "divergence": ">changed",
    "size": ">bytes",
    "title": "title",
}
_STYLES = {"in": "green", "out": "red", "same": "dim"}
_SIGNS = {"in": "+ ", "out": "- ", "same": "  "}


@example("Example: recrawl status")
def status(ctx: typer.Context, json: AsJson = False) -> None:
    """Show what is stored, how long ago it was checked, and what the last cycles found."""
    from recrawl.repository.running import describe_running  # lazy: the help does without

    with repository(ctx) as repo:
        status = repo.status()
    if json:
        as_json(status.as_dict())
        return
    if status.running is not None:
        say(describe_running(status.running))
    for problem in status.problems:
        note(problem)
    states = ", ".join(f"{number:,} {name}" for name, number in status.states.items() if number)
    say(f"{count(status.sites, 'site')}, {count(status.pages, 'page')} ({states or 'none yet'})")
    if status.freshness is not None and status.freshness_low is not None and status.freshness_high is not None:
        interval = f"{100 * status.freshness_low:.0f}–{100 * status.freshness_high:.0f} %"
        pages = count(status.stored, "stored page")
        say(f"fresh now: {percent(status.freshness)} of {pages} (90 % interval {interval})")
    archived = f"{status.archive_bytes / 1e6:,.1f} MB archived"
    say(f"{status.versions:,} versions, {archived}, {status.searchable:,} pages searchable")
    kept = [count(number, name) for name, number in _besides(status) if number]
    if kept:
        say(f"{' and '.join(kept)} besides the pages")
    say(f"{status.visits:,} visits, last {when(status.last_visit)}")
    if status.age_seconds:
        median, p90, oldest = (span(status.age_seconds[name]) for name in ("p50", "p90", "p100"))
        say(f"last checked: median {median} ago, p90 {p90} ago, oldest {oldest} ago")
    for brake in status.brakes:
        say(shared_text(brake["site"], brake["title"], brake["pages"], brake["recent"], when(brake["since"])))
    if status.cycles:
        say()
        table(map(_cycle, status.cycles), _CYCLE_COLUMNS)
    if status.spending:
        say()
        _print_spending(status.spending)


def _besides(status: Status) -> list[tuple[str, int]]:
    """What is kept of pages besides their versions, by name."""
    return [("page requisite", status.requisites), ("screenshot", status.screenshots)]


def _print_spending(spending: dict[str, Any]) -> None:
    visits, same = spending["visits"], spending["not_modified"]
    share = f", {percent(same / visits)} of the responses 304 (not modified)" if visits else ""
    most = spending["limits"].get("bytes")
    received = f"{spending['received'] / 1e6:,.1f}{f' of {most / 1e6:,.1f}' if most else ''} MB received"
    say(f"cycle {spending['cycle']} spent {visits:,} of {count(spending['budget'], 'visit')}, {received}{share}:")
    columns = {"site": "site", "visits": ">visits", "updates": ">updates", "not_modified": ">304", "failed": ">failed"}
    table(spending["sites"][:_MOST_SITES], {**columns, "received": ">bytes"})
    for held in spending["held"]:
        say(held_text(**held))
    if len(spending["sites"]) > _MOST_SITES:
        say(f"... and {count(len(spending['sites']) - _MOST_SITES, 'site')} more; --json lists all")


def _cycle(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "started": when(row["started"]), "state": "" if row["finished"] else "unfinished"}


@example("Example: recrawl usage --sites 20")
def usage(
    ctx: typer.Context,
    sites: Annotated[int, typer.Option("--sites", min=0, help="List the largest sites, at most so many.")] = _SITES,
    json: AsJson = False,
) -> None:
    """Show what takes space: by kind, site and age, with the growth of the last 30 days and when the disk is full."""
    with repository(ctx) as repo:
        used = repo.usage()
    if json:
        as_json(used.as_dict())
        return
    grown = "" if used.month is None else f", {size(used.month)} of it from the last 30 days"
    say(f"{size(used.bytes)}{grown}")
    room = f"{size(used.free)} free on this disk"
    if used.limit is not None:
        room = f"{size(used.limit)} are its limit; {room}"
    full = "" if used.full is None else stamp(used.full.timestamp())[:10]
    say(f"{room}: full on {full} if it goes on like this" if full else room)
    if used.remote:
        note("finished archive files are in the object store: on this disk there is a cache of them alone")
    say()
    table(
        map(_usage_row, used.kinds),
        {"name": "kind", "records": ">records", "bytes": ">bytes", "month": ">last 30 days"},
    )
    if used.sites and sites:
        say()
        heads = {"name": "site", "records": ">records", "bytes": ">bytes", "month": ">last 30 days"}
        table(map(_usage_row, used.sites[:sites]), heads)
    say()
    table(
        ({"name": text, "bytes": size(used.ages[name])} for name, text in _AGES.items()),
        {"name": "archived", "bytes": ">bytes"},
    )


def _usage_row(part: UsedSpace) -> dict[str, str]:
    return {
        "name": part.name,
        "records": f"{part.records:,}" if part.records else "",
        "bytes": size(part.bytes),
        "month": size(part.month),
    }


@example("Example: recrawl sites --json")
def sites(ctx: typer.Context, json: AsJson = False) -> None:
    """List the sites: pages, visits, changes, status of robots.txt, and precision and recall of hints."""
    with repository(ctx) as repo:
        sites = repo.sites()
    if json:
        as_json([site.as_dict() for site in sites])
        return
    table(
        (
            {**site.as_dict(), "last_visit": when(site.last_visit), "robots": _robots(site), "hints": _hints(site)}
            for site in sites
        ),
        {
            "url": "site",
            "pages": ">pages",
            "live": ">live",
            "found": ">to visit",
            "gone": ">gone",
            "visits": ">visits",
            "changes": ">changes",
            "last_visit": "last visit",
            "robots": "robots.txt",
            "hints": "hints (precision, recall)",
        },
    )


def _robots(site: Site) -> str:
    if site.robots_status < 0:
        return "not fetched yet"
    return "no response" if site.robots_status == 0 else f"HTTP {site.robots_status}"


def _hints(site: Site) -> str:
    """Each kind of hint with its precision and recall."""
    return ", ".join(
        f"{hint['kind']} (not measured yet)"
        if hint["precision"] is None
        else f"{hint['kind']} ({percent(hint['precision'])}, {percent(hint['recall'])})"
        for hint in site.hints
    )


@example("Example: recrawl pages --state live --limit 20")
def pages(ctx: typer.Context, limit: Limit = -1, json: AsJson = False, **only: Unpack[PageQuery]) -> None:
    """List the pages: state, depth, visits, changes, last visit, title."""
    with repository(ctx) as repo:
        pages = repo.pages(limit=limit, **only)
        if json:
            as_json([page.as_dict() for page in pages])
            return
        table(
            ({**page.as_dict(), "last_visit": when(page.last_visit)} for page in pages),
            {
                "url": "page",
                "state": "state",
                "depth": ">depth",
                "visits": ">visits",
                "changes": ">changes",
                "last_visit": "last visit",
                "title": "title",
            },
        )


@example("Example: recrawl changes --since 2d")
def changes(
    ctx: typer.Context,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark all changes so far as read.")] = False,
    saved_filter: Annotated[
        str, typer.Option("--filter", metavar="NAME", help="Only changes that this saved filter lets through.")
    ] = "",
    saved: Annotated[bool, typer.Option("--saved", help="List the saved filters.")] = False,
    save: Annotated[str, typer.Option(metavar="NAME", help="Save the options given here as a filter.")] = "",
    forget: Annotated[str, typer.Option(metavar="NAME", help="Delete this saved filter.")] = "",
    limit: Limit = -1,
    json: AsJson = False,
    **only: Unpack[ChangeQuery],
) -> None:
    """List what changed, newest first: new, changed and gone pages, by how much, and how likely it is news.

    A filter is a set of options under a name. The dashboard shows the same ones, and its own can be used here.
    """
    with repository(ctx) as repo:
        if mark_read:
            repo.mark_read()
            return
        if saved or save or forget:
            _keep(repo, save, forget, only, json=json)
            return
        if saved_filter:
            if any(only.values()):
                raise UsageError("give '--filter', or options such as '--since' and '--site', not both")
            changes: Iterable[Change] = repo.saved_changes(saved_filter, limit)
        else:
            changes = repo.changes(limit=limit, **only)
        _print(changes, json=json)


def _print(changes: Iterable[Change], *, json: bool) -> None:
    if json:
        as_json([change.as_dict() for change in changes])
        return
    table(
        ({**change.as_dict(), "at": when(change.time), **_amounts(change)} for change in changes),
        {
            "at": "seen",
            "outcome": "outcome",
            "share": ">changed",
            "news": ">news",
            "new_links": ">new links",
            "url": "page",
            "title": "title",
        },
    )


def _keep(repo: Repository, save: str, forget: str, only: ChangeQuery, *, json: bool) -> None:
    """Save or delete a filter, or list all of them."""
    if save:
        from recrawl.repository.marks import fields_of  # lazy: the help does without

        repo.save_filter(save, **fields_of(only))
    if forget:
        repo.remove_filter(forget)
    filters = repo.saved_filters()
    if json:
        as_json(filters)
    else:
        rows = ({"name": name, "filter": ", ".join(map(" ".join, fields.items()))} for name, fields in filters.items())
        table(rows, {"name": "name", "filter": "filter"})


def _amounts(change: Change) -> dict[str, str]:
    """The share of words that changed, and the probability that a reader calls it news."""
    share = "" if change.divergence is None else percent(change.divergence)
    return {"share": share, "news": "" if change.significance is None else percent(change.significance)}


@example("Example: recrawl log https://example.org/news")
def log(
    ctx: typer.Context,
    url: Url,
    visits: Annotated[bool, typer.Option("--visits", help="List every visit instead of the versions.")] = False,
    json: AsJson = False,
) -> None:
    """List the versions of a page, newest first; number 1 is the oldest."""
    with repository(ctx) as repo:
        page = repo.page(url)
        rows: list[Visit | Version] = list(page.visits) if visits else list(page.versions[::-1])
    if json:
        as_json([row.as_dict() for row in rows])
        return
    table(map(_log_row, rows), _VISITS if visits else _VERSIONS)


def _log_row(row: Visit | Version) -> dict[str, Any]:
    made = {**row.as_dict(), "at": when(row.time)}
    if made.get("rendered"):
        made["what"] += ", rendered"
    return made


@example("Example: recrawl show https://example.org/news --at 2026-03-01")
def show(
    ctx: typer.Context,
    url: Url,
    at: Annotated[str, typer.Option(help="A version: its number or a time. Default: the newest.")] = "-1",
    source: Annotated[bool, typer.Option("--source", help="Print the stored bytes.")] = False,
    screenshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the screenshot of the version to this file, as PNG.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print all text in lines, with menus and footers, without markup.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print the content of a version of a page: as it reads on a terminal, as Markdown in a pipe.

    Menus, footers and other parts of the site's frame are left out; --text prints them too.
    """
    from recrawl.repository.results.values import iso  # lazy: the help does without

    with repository(ctx) as repo:
        version = repo.page(url).version(at)
        if screenshot is not None:
            write_picture(screenshot, version.screenshot, json=json)
        elif json:
            as_json(
                {
                    "url": version.url,
                    "at": iso(version.time),
                    "title": version.title,
                    "mime": version.mime,
                    "encoding": version.encoding,
                    "language": version.language,
                    "description": version.description,
                    "image": version.image,
                    "published": iso(version.published),
                    "updated": iso(version.updated),
                    "headers": [list(pair) for pair in version.headers],
                    "text": version.text,
                    "markdown": version.markdown,
                    **({"source": version.html} if source else {}),
                }
            )
        elif source:
            sys.stdout.buffer.write(version.body)
        else:
            shown = version.text if text else version.markdown
            say(f"{version.title or version.url}  ({when(version.time)})\n")
            if text or not shown:
                say(shown or "(no content; --text prints all text)")
            else:
                show_markdown(shown)


@example("Example: recrawl diff https://example.org/news -2 -1")
def diff(
    ctx: typer.Context,
    url: Url,
    old: Annotated[str, typer.Argument(metavar="[A]", help="A version: its number or a time.")] = "",
    new: Annotated[str, typer.Argument(metavar="[B]", help="The version to compare with. Default: the newest.")] = "-1",
    frame: Annotated[
        bool, typer.Option("--frame", help="Show changed lines of the site's frame too (menus, footers, stamps).")
    ] = False,
    visual: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the screenshots side by side to this file, as PNG, changes outlined."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare the text of two versions of a page. Default: the last change.

    Version 1 is the oldest, version -1 the newest. Changed lines that belong to the frame of the site are folded.
    """
    with repository(ctx) as repo:
        page = repo.page(url)
        if visual is not None:
            picture = page.visual_diff(old or None, new)
            write_picture(visual, picture.side_by_side(), json=json, regions=picture.regions)
            return
        found = page.diff(old or None, new)
        single = len(page.versions) == 1
        if json:
            as_json(found.as_dict())
            return
    say(f"{page.url}: {when(found.old.time)} to {when(found.new.time)}")
    if not found.hunks:
        say("only one version" if single else "no difference in the text")
    elif sys.stdout.isatty():
        _diff_paint(found, frame=frame)
    elif frame or found.content_text:
        say(found.text if frame else found.content_text)
    if found.frame_count and not frame:
        say(f"{count(found.frame_count, 'changed line')} of the site's frame not shown; use --frame to see them")


def _diff_paint(found: Difference, *, frame: bool) -> None:
    from rich.console import Console  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    console = Console()
    for hunk in found.hunks if frame else found.content_hunks:
        console.print(Text(f"@@ -{hunk.old_start} +{hunk.new_start} @@", style="cyan"))
        for row in hunk.rows:
            style = "dim" if row.frame else _STYLES[row.kind]
            line = Text(_SIGNS[row.kind] + clean(row.text), style=style)
            for start, end in row.marks:
                line.stylize("reverse", start + 2, end + 2)
            console.print(line)


@example("Example: recrawl search 'title:election +recount -poll'")
def search(
    ctx: typer.Context, *query: Query, limit: Hits = 10, json: AsJson = False, **only: Unpack[SearchQuery]
) -> None:
    """Search the newest version of every page. A change is searchable seconds after the visit."""
    with repository(ctx) as repo:
        hits = repo.search(" ".join(query), limit=limit, **only)
    if hits.problem:
        note(hits.problem)
    if json:
        as_json([hit.as_dict() for hit in hits])
        return
    if not hits:
        note("nothing found")
    for hit in hits:
        if not sys.stdout.isatty():
            also = [f"also at {url}" for url in hit.also]
            say("\t".join((hit.url, when(hit.time), hit.title, " ".join(hit.snippet.split()), *also)))
        else:
            _search_paint(hit)


def _search_paint(hit: SearchHit) -> None:
    from rich.console import Console  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    snippet = Text(clean(hit.snippet))
    for start, end in hit.marks:
        snippet.stylize("bold yellow", start, end)
    title, url = Text(clean(hit.title or hit.url), style="bold"), Text(clean(hit.url), style="blue")
    also = [Text(f"also at {clean(other)}", style="dim") for other in hit.also]
    Console().print(title, url, *also, snippet, sep="\n")
    say()
