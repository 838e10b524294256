"""`recrawl erase` takes pages, sites or old versions out, with all traces; `recrawl thin` old versions, by rules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, as_json, count, note, repository, say, table
from recrawl.errors import UsageError
from recrawl.parameters import Wait
from recrawl.repository.results.words import size
from recrawl.times import stamp

if TYPE_CHECKING:
    from recrawl.repository.erasing import Erasure

_LOG = {
    "number": ">number", "at": "time", "who": "who", "pages": ">pages", "versions": ">versions", "bytes": ">bytes",
    "reason": "reason",
}  # fmt: skip


@example("Example: recrawl erase https://example.org/old --reason 'request of 3 May'")
def erase(
    ctx: typer.Context,
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="URL of a page.")] = None,
    site: Annotated[str, typer.Option("--site", metavar="SITE", help="All of this site.")] = "",
    matching: Annotated[
        str, typer.Option("--matching", metavar="REGEX", help="Pages whose URL matches; with --site only of that.")
    ] = "",
    before: Annotated[
        str,
        typer.Option("--before", metavar="TIME", help="Only versions from before this time; the pages stay."),
    ] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for the log; name no address.")] = "",
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Let the address come back; also one that was erased before."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    log: Annotated[bool, typer.Option("--log", help="List what was erased before: when, by whom, why.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Erase pages, with all traces of them: this cannot be undone.

    Versions, texts, screenshots, files that no other page needs, the index, records of WARC files, alerts and what
    waits for sinks go, and sinks are told that the pages are gone. The URL is kept from coming back by a digest that
    shows nothing of it; --forget leaves none. Other pages keep their links to it. Backups and exports are yours to
    clean. 'recrawl check --erased' proves that nothing is left.
    """
    from getpass import getuser  # lazy: the help does without

    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without

    given = {"site": site, "matching": matching, "before": before or None}
    with repository(ctx) as repo:
        if log:
            rows = repo.erasures()
            as_json(rows) if json else table(map(_line, rows), _LOG)
            return
        planned = repo.erase(*(urls or ()), dry_run=True, **given)  # type: ignore[arg-type]
        if dry_run:
            as_json(planned.as_dict()) if json else _print(planned)
            return
        if not yes:
            _ask(planned)
        with detailed(quiet=json) as bar:
            task = bar.add_task("erasing", total=None, detail="")
            done = repo.erase(
                *(urls or ()),
                reason=reason,
                who=getuser(),
                forget=forget,
                wait=wait,
                progress=lambda what, part, whole: bar.update(task, detail=f"{what}: {part:,} of {whole:,}"),
                **given,  # type: ignore[arg-type]
            )
    if json:
        as_json(done.as_dict())
    else:
        _print(done)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": stamp(row["at"]), "bytes": size(row["bytes"])}


def _ask(planned: Erasure) -> None:
    if not sys.stdin.isatty():
        raise UsageError("erasing cannot be undone: confirm with --yes, or look first with --dry-run")
    typer.confirm(f"Erase {_what(planned)} for ever?", abort=True, err=True)


def _what(found: Erasure) -> str:
    parts = {
        "site": found.sites,
        "page": found.pages,
        "version": found.versions,
        "screenshot": found.screenshots,
        "file": found.requisites,
    }
    return ", ".join(count(number, name) for name, number in parts.items() if number) or "nothing"


def _print(found: Erasure) -> None:
    if found.dry_run:
        say(f"would erase {_what(found)}")
        for url in found.urls:
            say(f"  {url}")
    else:
        records = f"{count(found.records, 'record')} ({size(found.bytes)})"
        say(f"erased {_what(found)}; {records} taken out of {count(found.files, 'archive file')}")
    if found.lifted:
        say(f"{count(found.lifted, 'address')} may come back".replace("addresss", "addresses"))
    for seed in found.seeds:
        note(f"{'would be ' if found.dry_run else ''}removed from recrawl.toml: {seed}")
    for url in found.copies:
        note(f"a copy stays: {url}")
    for place in found.settings:
        note(f"recrawl.toml still names it: {place}")
    for name, number in found.waiting.items():
        note(f"sink {name} was not told of {count(number, 'deletion')} yet: 'recrawl sink run {name}' tries again")
    for file in found.left:
        note(f"not managed by recrawl, look yourself: {file}")
    note("backups, exports and copies elsewhere are not known here: clean them yourself")


@example("Example: recrawl thin --dry-run")
def thin(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Thin out old versions and screenshots, by the settings keep, keep_frame and keep_screenshots.

    Their records leave the archive; that they were recorded, when, and how much had changed stays, so that changes,
    estimates and the choices of policies are as before. The newest version of a page always stays, and so does all that
    has the tag hold. By default, nothing is thinned out.
    """
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without

    with repository(ctx) as repo, detailed(quiet=json or dry_run) as bar:
        task = bar.add_task("thinning out", total=None, detail="")
        found = repo.thin(
            dry_run=dry_run,
            wait=wait,
            progress=lambda what, part, whole: bar.update(task, detail=f"{what}: {part:,} of {whole:,}"),
        )
        nothing = all(repo.settings[name] == "all" for name in ("keep", "keep_frame", "keep_screenshots"))
        nothing = nothing and not repo.settings.keeps
    if json:
        as_json(found.as_dict())
        return
    what = f"{count(found.versions, 'version')} and {count(found.screenshots, 'screenshot')}"
    say(f"{'would thin' if dry_run else 'thinned'} out {what} of {count(found.pages, 'page')}, {size(found.bytes)}")
    if nothing:
        note("the settings keep all: 'recrawl config keep last=3,daily=7,weekly=4,monthly=12' for instance keeps less")
