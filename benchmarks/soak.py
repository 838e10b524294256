"""A year of daily turns against a small time-lapse web: `python -m benchmarks.soak --days 365`.

Time is turned, not waited for. Every turn is a crawl and a cycle, in this process; the web is another process. Every
week the repository is also read (status, search, changes) and checked. The web has three bad days every 30 days (404 or
503 for everything, one text on all pages), of which it must recover. After each turn the resident memory, the open
files and the child processes are counted. The command fails if they grow: memory by more than 5 %, files and processes
at all, between the second quarter and the last one; or if pages that the web serves are not live at the end. Ctrl-C
prints the days so far.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean

import recrawl
from benchmarks.report import Table
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, Reply, ServedRequest, ServerOptions, TimeLapse, TimeLapseServer
from recrawl.record import storage
from recrawl.repository.turns import Turn, take
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_values

DAY = 86400.0
FORK = get_context("fork")
_EVERY = 30
"""Days from one spell of bad days to the next."""
_SPELL = 3
_HTML = [(b"content-type", b"text/html; charset=utf-8")]
_SPELLS = (
    Reply(404, _HTML, b"<p>not here"),
    Reply(503, _HTML, b"<p>busy"),
    Reply(200, _HTML, b"<title>For sale</title><p>This domain is for sale"),
)
_GOOD = -1


class Web:
    """The web, in a process of its own: its memory is not the program's."""

    def __init__(self, work: Path, world: SyntheticWorld) -> None:
        self._day, self._spell = FORK.Value("d", 0.0), FORK.Value("i", _GOOD)
        ours, theirs = FORK.Pipe()
        self._process = FORK.Process(target=self._serve, args=(work, world, theirs), daemon=True)
        self._process.start()
        self.start: float
        self.urls: list[str]
        self.start, self.urls = ours.recv()

    def show(self, day: int, spell: int) -> None:
        """Show a day of the archive, or a bad day."""
        self._day.value, self._spell.value = day * DAY, spell

    def _serve(self, work: Path, world: SyntheticWorld, parent: Connection) -> None:
        write(world, work / "world.parquet", lambda _done, _rows: None)
        archive = Archive.open([work / "world.parquet"])
        start, spell = archive.start + 8 * DAY, self._spell

        class Moody(TimeLapse):
            """A time-lapse server with bad days."""

            def answer(self, request: ServedRequest, now: float) -> Reply:
                """The archive's answer, or that of a bad day."""
                bad = spell.value != _GOOD and request.path != "/robots.txt"
                return _SPELLS[spell.value] if bad else super().answer(request, now)

        clock = Clock(start, 1.0, lambda: self._day.value)
        with TimeLapseServer(Moody(archive, clock, ServerOptions())) as server:
            parent.send((start, [server.url_of(f"https://{host}/") for host in archive.sites]))
            threading.Event().wait()


@dataclass(frozen=True)
class Day:
    """What was counted after a turn."""

    visits: int
    memory: float
    """Resident bytes."""
    files: int
    processes: int
    database: int
    seconds: float

    @classmethod
    def count(cls, visits: int, folder: Path, seconds: float) -> Day:
        """Count what this process holds now; freed memory that the C library keeps for later is given back first."""
        gc.collect()
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one call
        children = 0
        for task in Path(f"/proc/{os.getpid()}/task").iterdir():
            with suppress(FileNotFoundError):  # a thread that has just ended
                children += len((task / "children").read_text().split())
        return cls(visits, resident, files, children, (folder / "recrawl.db").stat().st_size, seconds)


def soak(folder: Path, web: Web, days: int, budget: float) -> Iterator[Day]:
    """The days, one after the other."""
    storage.create(folder, TEMPLATE)
    path = folder / storage.SETTINGS
    write_seeds(path, tuple(Seed(url, allow_private=True, delay=0.0) for url in web.urls))
    write_values(path, {"readers": 1, "patience": 0.2, "retries": 0})
    for day in range(days):
        bad = day % _EVERY < _SPELL and _EVERY <= day < days - _EVERY
        web.show(day, day // _EVERY % len(_SPELLS) if bad else _GOOD)
        begun, now = time.time(), web.start + day * DAY

        def timer(begun: float = begun, now: float = now) -> float:
            """Real seconds, from the virtual time at which the turn began."""
            return now + time.time() - begun

        turn = Turn(period=DAY, budget=budget)
        summary = take(folder, turn, lambda: False, clocks=(lambda now=now: now, timer))  # type: ignore[misc]
        assert summary is not None
        if day % 7 == 0:
            read(folder)
        yield Day.count(summary.tally.visits, folder, time.time() - begun)


def read(folder: Path) -> None:
    """Read and check the repository."""
    with recrawl.open(folder) as repo:
        repo.status()
        list(repo.search("the"))
        list(repo.changes())
        if problems := repo.check().problems:
            raise SystemExit(f"check finds {problems}")


def faults(folder: Path, days: list[Day]) -> list[str]:
    """What grew, and the pages that are not back."""
    quarter, found = max(1, len(days) // 4), []
    for name, most in (("memory", 1.05), ("files", 1.0), ("processes", 1.0)):
        counts = [float(getattr(day, name)) for day in days]
        before, after = mean(counts[quarter : 2 * quarter]), mean(counts[-quarter:])
        if after > before * most + 0.5:
            found.append(f"{name} grew from {before:,.1f} to {after:,.1f}")
    with recrawl.open(folder) as repo:
        states = repo.status().states
    away = sum(states.get(state, 0) for state in ("gone", "moved", "missing", "barred"))
    return [*found, f"{away} pages are not back: {states}"] if away else found


def table(days: list[Day]) -> Table:
    """The days in groups of 30."""
    heads = ["days", "visits", "memory, MB", "files", "processes", "database, MB", "seconds per day"]
    rows = []
    for first in range(0, len(days), _EVERY):
        some = days[first : first + _EVERY]
        memory = [day.memory / 1e6 for day in some]
        files, processes = (sorted({getattr(day, name) for day in some}) for name in ("files", "processes"))
        rows.append(
            [
                f"{first + 1} to {first + len(some)}",
                f"{sum(day.visits for day in some):,}",
                f"{min(memory):.0f} to {max(memory):.0f}",
                ", ".join(map(str, files)),
                ", ".join(map(str, processes)),
                f"{some[-1].database / 1e6:.1f}",
                f"{mean(day.seconds for day in some):.2f}",
            ]
        )
    return Table("After each day", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--pages", type=int, default=30, help="pages of a site")
    parser.add_argument("--budget", type=float, default=0.3, help="share of the pages that a cycle visits")
    chosen = parser.parse_args()
    world = SyntheticWorld(
        seed=7, sites=chosen.sites, pages=chosen.pages, days=chosen.days + 10.0, births=0.001, removals=0.0
    )
    days: list[Day] = []
    with tempfile.TemporaryDirectory() as scratch:
        web, folder = Web(Path(scratch), world), Path(scratch) / "repo"
        with suppress(KeyboardInterrupt):
            for day in soak(folder, web, chosen.days, chosen.budget):
                days.append(day)
                if len(days) % 10 == 0:
                    print(f"day {len(days)}: {day}", file=sys.stderr, flush=True)
        found = faults(folder, days)
    table(days).show()
    print("\n".join(found) or "nothing grew, and every page is live")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
