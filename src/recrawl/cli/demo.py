"""`recrawl demo`: a repository that stays fresh, on a small web."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, as_json, percent, say, table, when
from recrawl.cli.terminal.signals import Stop
from recrawl.errors import UsageError
from recrawl.times import iso, stamp

if TYPE_CHECKING:
    from recrawl.lab.formats.archive import Archive
    from recrawl.lab.timelapse import Clock, TimeLapseServer
    from recrawl.repository.repository import Repository

_DAY = 86_400.0
_SPEED = 0.4 * _DAY
"""Virtual seconds per second: a day passes in 2.5 s."""


@dataclass(frozen=True)
class _Stage:
    """The generated web, its clock and server, and the repository."""

    archive: Archive
    clock: Clock
    server: TimeLapseServer
    repo: Repository
    quiet: bool


@example("Example: recrawl demo --cycles 10 --budget 0.2")
def demo(
    ctx: typer.Context,  # noqa: ARG001
    seed: Annotated[int, typer.Option(help="Random seed of the generated web.")] = 1,
    count: Annotated[int, typer.Option("--cycles", min=1, help="Number of days to refresh.")] = 8,
    budget: Annotated[float, typer.Option(help="Visits per day; below 1, a share of the pages.")] = 0.25,
    policy: Annotated[str, typer.Option(help="Policy that chooses the pages; see 'recrawl policies'.")] = "shock",
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Create the repository here and keep it.")] = None,
    json: AsJson = False,
) -> None:
    """Generate a small web, serve it on this machine, crawl it and refresh it.

    A day of its clock takes 2.5 seconds; the demo ends by itself after the days of --cycles.
    """
    from recrawl.choose import make_policy  # lazy: the help does without
    from recrawl.columns import DAY  # lazy: the help does without
    from recrawl.lab.formats.archive import Archive  # lazy: the help does without
    from recrawl.lab.synth import SyntheticWorld, write  # lazy: the help does without
    from recrawl.lab.timelapse import Clock, TimeLapseServer  # lazy: the help does without
    from recrawl.lab.timelapse import app as timelapse  # lazy: the help does without
    from recrawl.repository.repository import Repository  # lazy: the help does without

    make_policy(policy)  # refuse an invalid policy before the work begins
    if not budget > 0:
        raise UsageError(f"invalid budget {budget:g}: must be above 0")
    with tempfile.TemporaryDirectory(prefix="recrawl-demo-") as scratch:
        world = SyntheticWorld(seed=seed, sites=5, pages=120, days=count + 3.0, births=0.03, removals=0.004)
        with _waiting("generating a web ...", quiet=json):
            write(world, Path(scratch) / "world.parquet")
            archive = Archive.open([Path(scratch) / "world.parquet"])
        clock = Clock(archive.start + DAY, 0.0, time.monotonic)
        folder = keep or Path(scratch) / "repository"
        with TimeLapseServer(timelapse(archive, clock)) as server, Repository.create(folder, clock=clock.now) as repo:
            repo.add(*(server.url_of(f"https://{host}/") for host in archive.sites), allow_private=True, delay=0.0)
            stage = _Stage(archive, clock, server, repo, json)
            days = _play(stage, count, budget, policy, Stop())
            finale = _finale(stage)
    if json:
        as_json({"days": days, **finale})
    elif keep:
        say(f"\nThe repository is in {keep}; try 'recrawl -C {keep} status'.")


def _play(stage: _Stage, count: int, budget: float, policy: str, stop: Stop) -> list[dict[str, Any]]:
    """Crawl on the first day, refresh on every following day, while the clock runs."""
    from recrawl.cli.terminal.run_report import describe_outcomes, watched  # lazy: the help does without
    from recrawl.columns import DAY  # lazy: the help does without

    clock, repo = stage.clock, stage.repo
    live = len(stage.archive.pages_at(clock.now()))
    _say(stage, f"a web of {len(stage.archive.sites)} sites and {live:,} pages, on {stamp(clock.now())}\n")
    clock.run(_SPEED)
    days = []
    for day in range(count + 1):
        with watched(quiet=stage.quiet) as watcher:
            report = repo.crawl(progress=watcher.report, stop=stop)
            if day and not stop():
                report = repo.cycle(budget=budget, policy=policy, progress=watcher.report, stop=stop)
        if stop():
            raise KeyboardInterrupt
        share = freshness(stage)
        days.append({"at": iso(clock.now()), "freshness": share, **report.as_dict()})
        visits = f"{report.visits:,} visits: " if day else ""
        outcomes = describe_outcomes(report.outcomes, report.failures)
        _say(stage, f"{stamp(clock.now())}  {report.kind}: {visits}{outcomes}; fresh: {percent(share)}")
        if day < count:
            _sleep_until(stage, stage.archive.start + (2 + day) * DAY, stop)
    clock.pause()
    return days


def freshness(stage: _Stage) -> float:
    """The share of the pages on the web whose current version is in the repository.

    Measured on the web's own history: a page is fresh if it has not changed since our last visit.
    """
    now, archive = stage.clock.now(), stage.archive
    last = {page.url: page.last_visit for page in stage.repo.pages()}
    pages = archive.pages_at(now).tolist()
    fresh = 0
    for page in pages:
        visited = last.get(stage.server.url_of(archive.urls[page]))
        fresh += visited is not None and archive.row_at(page, visited.timestamp()) == archive.row_at(page, now)
    return fresh / max(1, len(pages))


def _finale(stage: _Stage) -> dict[str, Any]:
    repo = stage.repo
    status = repo.status()
    updates = [change for change in repo.changes(limit=1000) if change.outcome == "changed"]
    word = str(updates[0].title).split()[0] if updates else "the"
    hits = repo.search(word, limit=3)
    _say(stage, f"\n{status.versions:,} versions of {status.pages:,} pages, {status.visits:,} visits")
    if updates and not stage.quiet:
        say("\nlatest changes:")
        rows = [
            {**change.as_dict(), "at": when(change.time), "share": percent(change.divergence or 0)}
            for change in updates[:5]
        ]
        table(rows, {"at": "seen", "share": ">changed", "url": "page", "title": "title"})
        say("\ndiff of the first:")
        for line in repo.page(updates[0].url).diff().text.splitlines()[:12]:
            say(f"  {line[:110]}")
        say(f"\nsearch results for '{word}':")
        for hit in hits:
            say(f"  {hit.title}  ({hit.url})")
    return {"versions": status.versions, "pages": status.pages, "visits": status.visits, "found": len(hits)}


def _sleep_until(stage: _Stage, moment: float, stop: Stop) -> None:
    with _waiting("waiting for the next day ...", quiet=stage.quiet):
        while stage.clock.now() < moment and not stop():
            time.sleep(0.05)


@contextmanager
def _waiting(text: str, *, quiet: bool) -> Iterator[None]:
    from rich.progress import Progress, SpinnerColumn, TextColumn  # lazy: the help does without

    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        bar.add_task(text, total=None)
        yield


def _say(stage: _Stage, text: str) -> None:
    if not stage.quiet:
        say(text)
