"""Sitemaps of all manners, served over HTTP and crawled for days: the whole way from a date to a choice."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, ServedRequest, app
from recrawl.lab.timelapse import ServerOptions as Manners
from recrawl.model import Outcome
from recrawl.parameters import SITEMAP_KINDS
from recrawl.record.storage import Storage
from tests.crashes import Bench
from tests.world import connection

DAY = 86400.0
WORLD = SyntheticWorld(
    seed=3, sites=1, pages=100, days=20, size_min=1500, size_max=3000, links=8, change_rate=0.15, births=0.0
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    file = tmp_path_factory.mktemp("world") / "world.parquet"
    write(WORLD, file)
    return Archive.open([file])


def found(archive: Archive, folder: Path, how: str) -> tuple[int, int]:
    """Changes that ten days of three visits find, and the signals that came."""
    with Bench(archive, Manners(sitemap=how)) as bench:
        bench.create(folder, sitemap_hours=1.0, feed_hours=0.0)
        bench.clock.set(archive.start + 3600)
        bench.crawl(folder)
        changed = 0
        for day in range(2, 12):
            bench.clock.set(archive.start + day * DAY)
            changed += bench.cycle(folder, "ncis", 3).tally.outcomes[Outcome.CHANGED]
    with Storage(folder) as opened:
        (signals,) = connection(opened.store).execute("SELECT ifnull(sum(signals), 0) FROM sources").fetchone()
    return changed, int(signals)


def test_an_honest_sitemap_finds_more_and_a_lying_one_is_survived(archive: Archive, tmp_path: Path) -> None:
    alone, none = found(archive, tmp_path / "never", "never")
    honest, told = found(archive, tmp_path / "honest", "honest")
    lying, lies = found(archive, tmp_path / "lying", "lying")
    assert none == 0
    assert lies > told > 0
    assert honest >= 25, f"of 30 visits; alone {alone}"
    assert alone <= 15
    assert lying >= alone - 4


@pytest.mark.parametrize("how", SITEMAP_KINDS)
def test_each_manner_can_be_served(archive: Archive, how: str) -> None:
    how = how.replace("DAYS", "2").replace("P,R", "0.5,0.8")
    clock = Clock(archive.start, 0.0, time.monotonic)
    served = app(archive, clock, Manners(sitemap=how))
    first, later = (
        re.findall(
            rb"<lastmod>([^<]+)<", served.answer(ServedRequest("GET", "localhost", 1, "/sitemap.xml", "", {}), at).body
        )
        for at in (archive.start + 10 * DAY, archive.start + 11 * DAY)
    )
    assert len(later) == (0 if how == "never" else len(archive.pages_at(archive.start + 11 * DAY)))
    moves = len(set(later) - set(first))
    assert (moves == 0) == (how in ("never", "silent")), f"{moves} dates are new"
