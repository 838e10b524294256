"""`recrawl demo`: generate a web on this machine, serve, crawl and refresh it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from recrawl.choose import make_policy
from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.run_report import describe_counts, watched
from recrawl.cli.terminal.session import Stop, load, options_of, writing
from recrawl.columns import DAY
from recrawl.compare.diff import diff, unified
from recrawl.compare.noise.filters import NO_NOISE
from recrawl.crawl import cycles
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.stored_text import read_lines
from recrawl.discover.urls import key
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer
from recrawl.lab.timelapse import app as timelapse
from recrawl.record import storage
from recrawl.record.storage import Storage
from recrawl.repository.turns import summary_of
from recrawl.settings import TEMPLATE, Seed, write_seeds
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl demo --cycles 10 --budget 0.2"

_SPEED = 0.4 * DAY
"""Virtual seconds per second: a day passes in 2.5 s."""


@dataclass(frozen=True)
class _Stage:
    """The generated web, its clock and server, and the repository."""

    archive: Archive
    clock: Clock
    server: TimeLapseServer
    repository: Storage
    options: CrawlOptions
    quiet: bool


def command(
    ctx: typer.Context,  # noqa: ARG001
    seed: Annotated[int, typer.Option(help="Random seed of the generated web.")] = 1,
    count: Annotated[int, typer.Option("--cycles", min=1, help="Number of days to refresh.")] = 8,
    budget: Annotated[float, typer.Option(help="Visits per day; below 1, a share of the pages.")] = 0.25,
    policy: Annotated[str, typer.Option(help="Policy that chooses the pages; see 'recrawl policies'.")] = "shock",
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Create the repository here and keep it.")] = None,
    json: AsJson = False,
) -> None:
    """Generate a small web, serve it on this machine, crawl it and refresh it.

    A day of its clock takes 2.5 seconds. The demo takes about half a minute and ends by itself.
    """
    stop = Stop()
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
        with (
            TimeLapseServer(timelapse(archive, clock)) as server,
            _opened(folder, archive, clock, server) as (storage_, options),
        ):
            stage = _Stage(archive, clock, server, storage_, options, json)
            days = _play(stage, count, budget, policy, stop)
            finale = _finale(stage)
    if json:
        as_json({"days": days, **finale})
    elif keep:
        say(f"\nThe repository is in {keep}; try 'recrawl -C {keep} status'.")


@contextmanager
def _opened(
    folder: Path, archive: Archive, clock: Clock, server: TimeLapseServer
) -> Iterator[tuple[Storage, CrawlOptions]]:
    storage.create(folder, TEMPLATE)
    starts = [server.url_of(f"https://{host}/") for host in archive.sites]
    write_seeds(folder / storage.SETTINGS, tuple(Seed(url, allow_private=True, delay=0.0) for url in starts))
    values = load(folder)
    options = replace(options_of(values), clock=clock.now)
    with writing(folder, "demo", options, values) as storage_:
        yield storage_, options


def _play(stage: _Stage, count: int, budget: float, policy: str, stop: Stop) -> list[dict[str, Any]]:
    """Crawl on the first day, refresh on every following day, while the clock runs."""
    live = len(stage.archive.pages_at(stage.clock.now()))
    _say(stage, f"a web of {len(stage.archive.sites)} sites and {live:,} pages, on {stamp(stage.clock.now())}\n")
    seeds = [stage.server.url_of(f"https://{host}/") for host in stage.archive.sites]
    stage.clock.run(_SPEED)
    days = []
    for day in range(count + 1):
        with watched("crawling", None, quiet=stage.quiet) as progress:
            crawl = cycles.crawl(stage.repository, stage.options, seeds, cycles.Controls(stop=stop, progress=progress))
        summary = crawl
        if day:
            visits = cycles.budget_of(budget, stage.repository.store)
            with watched("refreshing", visits, quiet=stage.quiet) as progress:
                controls = cycles.Controls(stop=stop, progress=progress)
                summary = cycles.cycle(stage.repository, stage.options, make_policy(policy), visits, 1, controls)
        if stop():
            raise KeyboardInterrupt
        share = freshness(stage)
        row = {"at": iso(stage.clock.now()), "freshness": share, **summary_of(summary)}
        days.append(row)
        what = (
            describe_counts(summary.tally)
            if not day
            else f"{summary.tally.visits:,} visits: {describe_counts(summary.tally)}"
        )
        _say(stage, f"{stamp(stage.clock.now())}  {'crawl' if not day else 'cycle'}: {what}; fresh: {share:.1%}")
        if day < count:
            _sleep_until(stage, stage.archive.start + (2 + day) * DAY, stop)
    stage.clock.pause()
    return days


def freshness(stage: _Stage) -> float:
    """The share of the pages on the web whose current version is in the repository.

    Measured on the web's own history: a page is fresh if it has not changed since our last visit.
    """
    now, archive = stage.clock.now(), stage.archive
    last = stage.repository.store.pages.last_visits()
    pages = archive.pages_at(now).tolist()
    fresh = 0
    for page in pages:
        visited = last.get(key(stage.server.url_of(archive.urls[page])))
        fresh += visited is not None and archive.row_at(page, visited) == archive.row_at(page, now)
    return fresh / max(1, len(pages))


def _finale(stage: _Stage) -> dict[str, Any]:
    reports = stage.repository.store.reports
    totals = reports.totals()
    changed = reports.updates(since=float("-inf"), site="", limit=1000)
    updates = [row for row in changed if row["outcome"] == "changed"]
    word = str(updates[0]["title"]).split()[0] if updates else "the"
    hits = stage.repository.index.search(word, limit=3)
    _say(stage, f"\n{totals['versions']:,} versions of {totals['pages']:,} pages, {totals['visits']:,} visits")
    if updates and not stage.quiet:
        say("\nlatest changes:")
        rows = [{**row, "at": stamp(row["at"]), "share": f"{row['divergence'] or 0:.1%}"} for row in updates[:5]]
        table(rows, {"at": "seen", "share": ">changed", "url": "page", "title": "title"})
        say("\ndiff of the first:")
        say(_difference(stage.repository, updates[0]["url"]))
        say(f"\nsearch results for '{word}':")
        for hit in hits:
            say(f"  {hit.title}  ({hit.url})")
    return {"versions": totals["versions"], "pages": totals["pages"], "visits": totals["visits"], "found": len(hits)}


def _difference(storage_: Storage, url: str) -> str:
    page = storage_.store.pages.number(key(url))
    assert page is not None
    bodies = [storage_.body(version) for version in storage_.store.versions.of_page(page)[-2:]]
    old, new = (read_lines(body, headers, NO_NOISE) for _, headers, body in bodies)
    lines = unified(diff(old, new, context=0)).splitlines()
    return "\n".join(f"  {line[:110]}" for line in lines[:12])


def _sleep_until(stage: _Stage, moment: float, stop: Stop) -> None:
    with _waiting("waiting for the next day ...", quiet=stage.quiet):
        while stage.clock.now() < moment and not stop():
            time.sleep(0.05)


@contextmanager
def _waiting(text: str, *, quiet: bool) -> Iterator[None]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        bar.add_task(text, total=None)
        yield


def _say(stage: _Stage, text: str) -> None:
    if not stage.quiet:
        say(text)
