"""A week of the service against the time-lapse web, with restarts: `python -m benchmarks.serve_week --days 7`.

Time is turned, not waited for: the web's clock and ours jump from one cycle to the next. The service is stopped and
started again between cycles and in the middle of them. At the end nothing may be lost and nothing done twice: every
cycle came to its end, no page was visited twice in one, every update that visits found is in the outbox of an alert
once. Memory is read after each day; since turns are taken in this very process here, it is the crawler's memory too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from recrawl.cli import invoke as command
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer, app
from recrawl.record.store import SqliteStore
from recrawl.repository.turns import Turn, summary_of, take
from recrawl.serve.service import Service, ServiceConfig
from recrawl.serve.turn_process import Message, TurnResult
from recrawl.settings import Alert, Seed, write_alerts, write_seeds

_REAL = time.time


@dataclass
class Time:
    """Our clock: the real one, put forward."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return _REAL() + self.ahead


class Here:
    """Takes turns in this process, so that they go by our clock; stops one in the middle when told to."""

    def __init__(self, folder: Path, now: Time) -> None:
        self._folder, self._now = folder, now
        self._stop = threading.Event()
        self.ended: queue.Queue[bool] = queue.Queue()
        """For each turn whether it came to its end."""
        self.cut_after: int | None = None
        """Visits after which the next turn is stopped as if the service had been."""

    def run(self, order: Message, on_message: Callable[[Message], None]) -> TurnResult:
        self._stop.clear()
        cut, self.cut_after = self.cut_after, None
        seen = [0]

        @contextlib.contextmanager
        def watch(title: str, _total: int | None) -> Iterator[Callable[[Any], None]]:
            def report(tally: Any) -> None:
                seen[0] = tally.visits
                if title == "visiting" and cut is not None and tally.visits >= cut:
                    self._stop.set()

            on_message({"doing": title})
            yield report

        finished = False
        try:
            with mock.patch("time.time", self._now):
                summary = take(self._folder, Turn(period=order["period"]), self._stop.is_set, watch=watch)
            finished = summary is not None and summary.finished
            return TurnResult(None if summary is None else summary_of(summary))
        finally:
            self.ended.put(finished)

    def stop(self) -> None:
        self._stop.set()


@dataclass
class Week:
    """What it came to."""

    turns: int = 0
    restarts: int = 0
    cut: int = 0
    visits: int = 0
    updates: int = 0
    told: int = 0
    memory: list[int] = field(default_factory=list)
    """Resident bytes after each day."""
    wrong: list[str] = field(default_factory=list)


def resident() -> int:
    """Bytes that this process holds."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def prepare(folder: Path, urls: list[str]) -> None:
    """A repository of all sites, with an alert for everything."""
    with contextlib.redirect_stdout(io.StringIO()):
        command(["init", str(folder)])
        for name, value in (("delay", "0"), ("every", "6h"), ("budget", "0.5"), ("readers", "1"), ("gone_hours", "6")):
            command(["-C", str(folder), "config", name, value])
    write_seeds(folder / "recrawl.toml", tuple(Seed(url, allow_private=True, delay=0.0) for url in urls))
    write_alerts(folder / "recrawl.toml", (Alert("all", "feed"),))


def week(work: Path, *, days: float = 7.0, sites: int = 3, pages: int = 60, seed: int = 1) -> Week:
    """Run it."""
    world = SyntheticWorld.of(
        {"seed": str(seed), "sites": str(sites), "pages": str(pages), "days": str(int(days) + 10)}
    )
    write(world, work / "world.parquet", lambda _done, _rows: None)
    archive = Archive.open([work / "world.parquet"])
    clock = Clock(archive.start + 8 * 86400, 0.0, time.monotonic)
    folder, now, came = work / "repo", Time(), Week()
    with TimeLapseServer(app(archive, clock)) as server:
        prepare(folder, [server.url_of(f"https://{site}/") for site in archive.sites])
        runner = Here(folder, now)
        turns = int(days * 4)
        done = 0
        whole = False
        while done < turns:
            runner.cut_after = 0 if came.restarts % 2 else None
            with Service(folder, ServiceConfig(clock=now, runner=runner)) as service:
                for _ in range(3):
                    if whole:  # else the turn that was stopped is due at once
                        now.ahead += 6 * 3600
                        clock.set(clock.now() + 6 * 3600)
                        service.context.scheduler.wake()
                    whole = runner.ended.get(timeout=600)
                    done, came.turns, came.cut = done + whole, came.turns + 1, came.cut + (not whole)
                    while whole and service.context.scheduler.status().running:
                        time.sleep(0.005)  # it has yet to note that; the clock must not be turned before
                    if whole and done % 4 == 0:
                        came.memory.append(resident())
                    if not whole or done >= turns:
                        break  # stopped in the middle, or at the end of the week
                came.wrong += filter(None, [service.context.scheduler.status().error])
            while not runner.ended.empty():  # a turn that was gone on with at once, and stopped with the service
                whole = runner.ended.get()
                done, came.turns, came.cut = done + whole, came.turns + 1, came.cut + (not whole)
            came.restarts += 1
        with Service(folder, ServiceConfig(clock=now, schedule=False)) as service:
            settle(folder, service)
    judge(folder, came)
    return came


def settle(folder: Path, service: Service) -> None:
    """Let the alerts come to the end of what there is."""
    for _ in range(2000):
        with contextlib.closing(SqliteStore(folder / "recrawl.db")) as store:
            if int(store.meta.get("alerts:seen", -1)) >= store.next_id("visits") - 1:
                return
        service.dispatcher.wake()
        time.sleep(0.01)


def judge(folder: Path, came: Week) -> None:
    """Say everything that is wrong."""
    with contextlib.closing(SqliteStore(folder / "recrawl.db")) as store:
        db = store.db
        came.visits = db.execute("SELECT count(*) FROM visits").fetchone()[0]
        twice = db.execute(
            """SELECT count(*) FROM (SELECT 1 FROM visits v JOIN cycles c ON c.id = v.cycle WHERE c.kind = 'cycle'
               GROUP BY v.cycle, v.page HAVING count(*) > 1)"""
        ).fetchone()[0]
        open_ = db.execute("SELECT count(*) FROM cycles WHERE finished IS NULL").fetchone()[0]
        summed = db.execute("SELECT sum(visits) FROM cycle_summaries").fetchone()[0]
        came.updates = db.execute("SELECT count(*) FROM visits WHERE outcome IN (1, 2, 3)").fetchone()[0]
        came.told = db.execute("SELECT count(*) FROM outbox").fetchone()[0]
    for number, what in ((twice, "pages visited twice in a cycle"), (open_, "cycles without an end")):
        if number:
            came.wrong.append(f"{number} {what}")
    if summed != came.visits:
        came.wrong.append(f"{came.visits} visits, {summed} in the sums")
    if came.told != came.updates:
        came.wrong.append(f"{came.updates} updates, {came.told} told")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--pages", type=int, default=60)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        came = week(Path(scratch), days=chosen.days, sites=chosen.sites, pages=chosen.pages)
    print(json.dumps({**came.__dict__, "memory": [f"{value / 1e6:.0f} MB" for value in came.memory]}, indent=2))


if __name__ == "__main__":
    main()
