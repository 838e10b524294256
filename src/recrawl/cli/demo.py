"""`recrawl demo`: a living web on this machine, crawled, refreshed and shown."""

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
from recrawl.cli.output import AsJson, as_json, say, table
from recrawl.cli.session import Stop, load, options_of, writing
from recrawl.cli.watch_run import news_of, watched
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
from recrawl.record import questions, storage
from recrawl.record.storage import Storage
from recrawl.repository.times import iso, stamp
from recrawl.repository.turns import summary_of
from recrawl.settings import TEMPLATE, Seed, write_seeds

EXAMPLE = "Example: recrawl demo --cycles 10 --budget 0.2"

_DAY = 86400.0
_SPEED = 0.4 * _DAY
"""The clock of the web runs this much faster than ours: a day passes in two and a half seconds."""


@dataclass(frozen=True)
class _Stage:
    """What the demo plays on."""

    archive: Archive
    clock: Clock
    server: TimeLapseServer
    repository: Storage
    options: CrawlOptions
    quiet: bool


def command(
    ctx: typer.Context,  # noqa: ARG001
    seed: Annotated[int, typer.Option(help="Another seed, another web.")] = 1,
    count: Annotated[int, typer.Option("--cycles", min=1, help="How many days to refresh.")] = 8,
    budget: Annotated[float, typer.Option(help="Visits a day; under 1, a share of the pages.")] = 0.25,
    policy: Annotated[str, typer.Option(help="How to choose pages; see 'recrawl policies'.")] = "shock",
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Make the repository here, and keep it.")] = None,
    json: AsJson = False,
) -> None:
    """See it all work: a small living web is generated and served on this machine, then crawled and refreshed.

    Its clock runs a day in two and a half seconds. Takes about half a minute and ends by itself.
    """
    stop = Stop()
    make_policy(policy)  # complain before the work begins
    if not budget > 0:
        raise UsageError(f"a budget must be more than zero, not {budget:g}")
    with tempfile.TemporaryDirectory(prefix="recrawl-demo-") as scratch:
        world = SyntheticWorld(seed=seed, sites=5, pages=120, days=count + 3.0, births=0.03, removals=0.004)
        with _waiting("generating a living web ...", quiet=json):
            write(world, Path(scratch) / "world.parquet")
            archive = Archive.open([Path(scratch) / "world.parquet"])
        clock = Clock(archive.start + _DAY, 0.0, time.monotonic)
        folder = keep or Path(scratch) / "repository"
        with (
            TimeLapseServer(timelapse(archive, clock)) as server,
            _opened(folder, archive, clock, server) as (open_one, options),
        ):
            stage = _Stage(archive, clock, server, open_one, options, json)
            days = _play(stage, count, budget, policy, stop)
            finale = _finale(stage)
    if json:
        as_json({"days": days, **finale})
    elif keep:
        say(f"\nThe repository is in {keep}: try 'recrawl -C {keep} status'.")


@contextmanager
def _opened(
    folder: Path, archive: Archive, clock: Clock, server: TimeLapseServer
) -> Iterator[tuple[Storage, CrawlOptions]]:
    storage.create(folder, TEMPLATE)
    starts = [server.url_of(f"https://{host}/") for host in archive.sites]
    write_seeds(folder / storage.SETTINGS, tuple(Seed(url, allow_private=True, delay=0.0) for url in starts))
    values = load(folder)
    options = replace(options_of(values), clock=clock.now)
    with writing(folder, "demo", options, values) as open_one:
        yield open_one, options


def _play(stage: _Stage, count: int, budget: float, policy: str, stop: Stop) -> list[dict[str, Any]]:
    """Crawl on the first day, refresh on every day after it, while the clock runs."""
    live = len(stage.archive.pages_at(stage.clock.now()))
    _tell(stage, f"a web of {len(stage.archive.sites)} sites and {live:,} pages, on {stamp(stage.clock.now())}\n")
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
        what = news_of(summary.tally) if not day else f"{summary.tally.visits:,} visits: {news_of(summary.tally)}"
        _tell(stage, f"{stamp(stage.clock.now())}  {'crawl' if not day else 'cycle'}: {what}; fresh {share:.1%}")
        if day < count:
            _sleep_until(stage, stage.archive.start + (2 + day) * _DAY, stop)
    stage.clock.pause()
    return days


def freshness(stage: _Stage) -> float:
    """The share of the pages now on the web whose newest version is in the repository.

    The web's own history is the judge: a page is fresh when nothing has happened to it since our last visit.
    """
    now, archive = stage.clock.now(), stage.archive
    last = dict(stage.repository.store.db.execute("SELECT key, last_visit FROM pages WHERE last_visit NOT NULL"))
    pages = archive.pages_at(now).tolist()
    fresh = 0
    for page in pages:
        visited = last.get(key(stage.server.url_of(archive.urls[page])))
        fresh += visited is not None and archive.row_at(page, visited) == archive.row_at(page, now)
    return fresh / max(1, len(pages))


def _finale(stage: _Stage) -> dict[str, Any]:
    db = stage.repository.store.db
    totals = questions.totals(db)
    changed = questions.changes(db, since=float("-inf"), site="", limit=1000)
    updates = [row for row in changed if row["outcome"] == "changed"]
    word = str(updates[0]["title"]).split()[0] if updates else "the"
    hits = stage.repository.index.search(word, limit=3)
    _tell(stage, f"\n{totals['versions']:,} versions of {totals['pages']:,} pages, {totals['visits']:,} visits in all")
    if updates and not stage.quiet:
        say("\nthe last changes that were seen:")
        rows = [{**row, "at": stamp(row["at"]), "much": f"{row['divergence'] or 0:.1%}"} for row in updates[:5]]
        table(rows, {"at": "seen", "much": ">changed", "url": "page", "title": "title"})
        say("\nwhat changed on the first of them:")
        say(_difference(stage.repository, updates[0]["url"]))
        say(f"\nsearching for '{word}' finds:")
        for hit in hits:
            say(f"  {hit.title}  ({hit.url})")
    return {"versions": totals["versions"], "pages": totals["pages"], "visits": totals["visits"], "found": len(hits)}


def _difference(open_one: Storage, url: str) -> str:
    page = questions.find_page(open_one.store.db, key(url), url)
    bodies = [open_one.body(version) for version in questions.versions(open_one.store.db, page["id"])[-2:]]
    old, new = (read_lines(body, headers, NO_NOISE) for _, headers, body in bodies)
    lines = unified(diff(old, new, context=0)).splitlines()
    return "\n".join(f"  {line[:110]}" for line in lines[:12])


def _sleep_until(stage: _Stage, moment: float, stop: Stop) -> None:
    with _waiting("the web lives on ...", quiet=stage.quiet):
        while stage.clock.now() < moment and not stop():
            time.sleep(0.05)


@contextmanager
def _waiting(text: str, *, quiet: bool) -> Iterator[None]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        bar.add_task(text, total=None)
        yield


def _tell(stage: _Stage, text: str) -> None:
    if not stage.quiet:
        say(text)
