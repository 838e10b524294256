"""A repository of a generated web, crawled and refreshed day after day without waiting for the days to pass.

Made once for all tests of the dashboard, and by `python -m benchmarks.pictures` for the pictures of the README. One
page is hostile: it says what would run as script, were it ever taken for markup.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from recrawl.choose import make_policy
from recrawl.crawl import cycles
from recrawl.crawl.state import limits
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer
from recrawl.lab.timelapse import app as timelapse
from recrawl.record import storage
from recrawl.repository.opening import held, load, options_of
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_value
from tests.world import Site

DAY = 86400.0
SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@dataclass(frozen=True)
class Living:
    """Where the repository lies, and when its last cycle ended."""

    folder: Path
    ended: float
    hostile: str
    """The address of the page that means harm."""


def live(
    folder: Path,
    *,
    sites: int = 3,
    pages: int = 40,
    days: int = 9,
    budget: float = 0.4,
    policy: str = "shock",
    ending: float | None = None,
) -> Living:
    """Make the repository; `ending` moves its last day there, so that it looks freshly crawled."""
    storage.create(folder, TEMPLATE)
    scratch = folder.with_name(f"{folder.name}-web")
    scratch.mkdir()
    start = int((time.time() if ending is None else ending) - (days + 1.2) * DAY)
    world = SyntheticWorld(seed=3, start=start, sites=sites, pages=pages, days=days + 3.0, births=0.03, removals=0.004)
    write(world, scratch / "world.parquet")
    archive = Archive.open([scratch / "world.parquet"])
    clock = Clock(archive.start + DAY, 0.0, time.monotonic)
    with TimeLapseServer(timelapse(archive, clock)) as server, Site() as hostile:
        starts = [server.url_of(f"https://{host}/") for host in archive.sites]
        trap = hostile.url("/")
        _turn(hostile, 0)
        seeds = tuple(Seed(url, allow_private=True, delay=0.0) for url in [*starts, trap])
        write_seeds(folder / storage.SETTINGS, seeds)
        write_value(folder / storage.SETTINGS, "readers", 1)
        write_value(folder / storage.SETTINGS, "policy", policy)
        write_value(folder / storage.SETTINGS, "budget", budget)
        values = load(folder)
        options = replace(options_of(values), clock=clock.now)
        with held(folder, "test", options, values) as opened:
            controls = cycles.Controls()
            for day in range(days + 1):
                cycles.crawl(opened, options, [*starts, trap], controls)
                if day:
                    visits = limits.budget_of(budget, opened.store, options)
                    cycles.cycle(opened, options, make_policy(policy), visits, 1, controls)
                clock.advance(DAY)
                _turn(hostile, day + 1)
    shutil.rmtree(scratch)
    return Living(folder, clock.now() - DAY, hostile.url("/"))


def _turn(site: Site, day: int) -> None:
    """The hostile page on a day: harm in its title, its text and the addresses that it links."""
    escaped = SCRIPT.replace("<", "&lt;")
    links = "".join(f'<a href="/{name}">x</a>' for name in ("a%3Cscript%3E", "b?q=%22%3E%3Cscript%3Ealert(1)"))
    site["/"] = (
        f"<title>{escaped}</title><p>harmless words</p><p>{escaped} day {day}</p><p>more {day} {escaped}</p>{links}"
    ).encode()
    for path in ("/a%3Cscript%3E", "/b?q=%22%3E%3Cscript%3Ealert(1)"):
        site[path] = f"<title>{escaped}</title><p>day {day // 3} {escaped}</p>".encode()
