"""`recrawl watch`: keep sites or pages, from the first download on, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, json_line, note, percent, say, when
from recrawl.cli.terminal.signals import Stop
from recrawl.parameters import SiteRules, StartUrl

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository
    from recrawl.repository.results.values import Change

FOLDER = "watched"
_PAGES = 1000


@example("Example: recrawl watch https://example.org/ --every 6h")
def watch(
    ctx: typer.Context,
    *urls: StartUrl,
    count: Annotated[int, typer.Option(min=0, help="Stop after this many cycles; 0 runs until stopped.")] = 0,
    json: AsJson = False,
    **rules: Unpack[SiteRules],
) -> None:
    """Keep sites or pages: download them now, then look for changes and print them, until Ctrl-C.

    Uses the repository of the current folder, or makes one in the folder 'watched'. A site is crawled up to 1,000
    pages, unless --limit says otherwise; --depth 0 keeps one page. --every is how often all its pages are visited and
    how often a cycle begins; without it cycles begin as the setting 'every' says. Alerts and sinks are delivered.
    """
    from recrawl.cli.terminal.run_report import print_report, watched  # lazy: the help does without
    from recrawl.repository.reports.seeds import seed_states  # lazy: the help does without

    stop, every = Stop(), rules.get("every") or ""
    with _opened(ctx.obj, json=json) as repo, watched(quiet=json) as watcher:
        known = {seed.url for seed in repo.settings.seeds}
        for addition in repo.add(*urls, **rules):
            seed = addition.seed
            if seed.url not in known and seed.limit is None and seed.depth is None:
                repo.add(seed.url, limit=_PAGES)
            if not json:
                say(str(addition))
        newest = _newest(repo)
        report = repo.crawl(wait=True, progress=watcher.report, stop=stop)
        watcher.close()
        _tell(report.as_dict(), json=json) if json else print_report(report)
        mine = {addition.seed.url for addition in repo.add(*urls)}
        for state in seed_states(repo, [seed for seed in repo.settings.seeds if seed.url in mine]):
            if state.cause:
                note(f"recrawl: {state.url}: {state.cause} {state.advice}")
        newest = _print_changes(repo, newest, json=json, first=True)
        repo.deliver_all(stop=stop)
        if not json and not stop():
            say(f"watching; changes are printed here, Ctrl-C ends it; the dashboard: recrawl -C {repo.folder} serve")
        for report in repo.run(every=every, count=count, now=False, progress=watcher.report, stop=stop):
            watcher.close()
            _tell(report.as_dict(), json=json)
            newest = _print_changes(repo, newest, json=json)


def _opened(named: Path | None, *, json: bool) -> Repository:
    """The repository that `-C` names, or of the current folder, or the one that this command makes."""
    import recrawl  # lazy: the help does without
    from recrawl.errors import NoRepository  # lazy: see above

    for folder in (named or Path(), *([] if named else [Path(FOLDER)])):
        try:
            return recrawl.open(folder, notify=note)
        except NoRepository:
            made = folder
    repo = recrawl.init(made, notify=note)
    if not json:
        say(f"created a repository in {made}")
    return repo


def _newest(repo: Repository) -> int:
    return next((change.id for change in repo.changes(limit=1)), -1)


def _tell(report: dict[str, Any], *, json: bool) -> None:
    if json:
        json_line(report)


def _print_changes(repo: Repository, after: int, *, json: bool, first: bool = False) -> int:
    """Print what was recorded after a change, oldest first; of a first crawl the numbers alone say enough."""
    for change in repo.changes(after=after):
        after = change.id
        if json:
            json_line(change.as_dict())
        elif not (first and change.outcome == "new"):
            say(_line(change))
    return after


def _line(change: Change) -> str:
    share = "" if change.divergence is None else f" ({percent(change.divergence)} of the words)"
    return f"{when(change.time)}  {change.outcome:<8} {change.url}{share}  {change.title or ''}".rstrip()
