"""A year of daily turns against a small time-lapse web: `python -m benchmarks.soak --days 365`.

Time is turned, not waited for. Every turn is a crawl and a cycle, in this process. The web has three bad days every 30
days (404 or 503 for everything, one text on all pages), of which it must recover. After each turn the resident memory,
the open files and the child processes are counted. The command fails if they grow: memory by more than 5 %, files and
processes at all, between the second quarter and the last one; or if pages that the web serves are not live at the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from recrawl.crawl.reports.figures import current
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer
from recrawl.lab.timelapse.app import Reply, ServedRequest, ServerOptions, TimeLapse
from recrawl.record import storage
from recrawl.record.storage import Storage
from recrawl.repository.turns import Turn, take
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_value

DAY = 86400.0
_EVERY = 30
"""Days from one spell of bad days to the next."""
_SPELL = 3
_HTML = ((b"content-type", b"text/html; charset=utf-8"),)
_SPELLS = (
    Reply(404, _HTML, b"<p>not here"),
    Reply(503, _HTML, b"<p>busy"),
    Reply(200, _HTML, b"<title>For sale</title><p>This domain is for sale"),
)


class Moody(TimeLapse):
    """A time-lapse server with bad days."""

    instead: Reply | None = None

    def answer(self, request: ServedRequest, now: float) -> Reply:
        """The archive's answer, or that of a bad day."""
        if self.instead is not None and request.path != "/robots.txt":
            return self.instead
        return super().answer(request, now)


@dataclass
class Soak:
    """What was counted after each turn, and what is wrong."""

    memory: list[int] = field(default_factory=list)
    """Resident bytes."""
    files: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    visits: int = 0
    database: int = 0
    states: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def count(self) -> None:
        """Count what this process holds now."""
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1])
        self.memory.append(resident * os.sysconf("SC_PAGE_SIZE"))
        self.files.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - one call
        tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
        self.children.append(sum(len((task / "children").read_text().split()) for task in tasks))


def soak(work: Path, *, days: int = 365, sites: int = 3, pages: int = 40, budget: float = 0.3) -> Soak:
    """Run it."""
    world = SyntheticWorld(seed=7, sites=sites, pages=pages, days=days + 10.0, births=0.01, removals=0.0)
    write(world, work / "world.parquet", lambda _done, _rows: None)
    archive = Archive.open([work / "world.parquet"])
    clock = Clock(archive.start + 8 * DAY, 0.0, time.monotonic)
    web, folder, came = Moody(archive, clock, ServerOptions()), work / "repo", Soak()
    with TimeLapseServer(web) as server:
        _prepare(folder, [server.url_of(f"https://{host}/") for host in archive.sites])
        for day in range(days):
            bad = day % _EVERY < _SPELL and _EVERY <= day < days - _EVERY
            web.instead = _SPELLS[day // _EVERY % len(_SPELLS)] if bad else None
            begun = time.time() - clock.now()

            def timer(begun: float = begun) -> float:
                """Real seconds, from the virtual time at which the turn began."""
                return time.time() - begun

            summary = take(folder, Turn(period=DAY, budget=budget), lambda: False, clocks=(clock.now, timer))
            assert summary is not None
            came.visits += summary.tally.visits
            came.count()
            clock.advance(DAY)
    _judge(folder, came)
    return came


def _prepare(folder: Path, urls: list[str]) -> None:
    storage.create(folder, TEMPLATE)
    path = folder / storage.SETTINGS
    write_seeds(path, tuple(Seed(url, allow_private=True, delay=0.0) for url in urls))
    for name, value in (("readers", 1), ("patience", 0.2), ("retries", 0)):
        write_value(path, name, value)


def _judge(folder: Path, came: Soak) -> None:
    quarter = max(1, len(came.memory) // 4)
    for name, most in (("memory", 1.05), ("files", 1.0), ("children", 1.0)):
        counts: list[int] = getattr(came, name)
        before, after = mean(counts[quarter : 2 * quarter]), mean(counts[-quarter:])
        if after > before * most + 0.5:
            came.wrong.append(f"{name} grew from {before:,.1f} to {after:,.1f}")
    with Storage(folder) as opened:
        came.states = current(opened.store, time.time())[0].states
    came.database = (folder / "recrawl.db").stat().st_size
    away = sum(came.states.get(state, 0) for state in ("gone", "moved", "missing", "barred"))
    if away:
        came.wrong.append(f"{away} pages are not back: {came.states}")


def _figures(came: Soak) -> dict[str, Any]:
    def quarters(counts: list[int]) -> list[float]:
        size = max(1, len(counts) // 4)
        return [round(mean(counts[k * size : (k + 1) * size]), 1) for k in range(4) if counts[k * size :]]

    return {
        "turns": len(came.memory),
        "visits": came.visits,
        "memory_mb_by_quarter": [round(value / 1e6, 1) for value in quarters(came.memory)],
        "files_by_quarter": quarters(came.files),
        "children_by_quarter": quarters(came.children),
        "database_mb": round(came.database / 1e6, 1),
        "states": came.states,
        "wrong": came.wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--pages", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        came = soak(Path(scratch), days=chosen.days, sites=chosen.sites, pages=chosen.pages)
    print(json.dumps(_figures(came), indent=2))
    sys.exit(1 if came.wrong else 0)


if __name__ == "__main__":
    main()
