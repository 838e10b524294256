"""Large repositories: what a cycle and a crawl cost when ten thousand to a million pages are known.

A repository is filled without crawling, by `python -m benchmarks.scale FOLDER URL PAGES` in a process of its
own, with pages `/known/0.html` … that the benchmark's web serves. Then, from outside:

* plan: from the start of `recrawl cycle` until the first page is asked for, as the server saw it;
* a page of a cycle: the CPU time of a cycle of many pages less that of a cycle of one, by the difference;
* a page of a crawl: the same site as in `crawl`, 10,000 new pages on top of the known ones, start-up included;
* memory: the largest sum of the process tree, in cycles and in the crawl.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import ours
from benchmarks.measure import CommandError
from benchmarks.report import Table, number
from benchmarks.web import Web
from recrawl.discover.urls import directory, key, origin
from recrawl.model import State
from recrawl.record.rows import Batch, NewPage, SiteRow, unvisited
from recrawl.record.storage import SETTINGS
from recrawl.record.store import SqliteStore
from recrawl.settings import Seed, write_seeds

SIZES = [10_000, 100_000, 1_000_000]
CYCLE = 3_000  # three of them fit into the smallest size, so that every visit is a page's first download
REPEATS = 3  # of every cycle, for the difference of two of them is small beside start-up
PLAN_SECONDS = 5.0
MEMORY = 300 * 2**20  # of a crawl, and of a cycle
FLAT = 1.25  # at the largest size, a page and a crawl's memory may cost so much more than at the smallest


@dataclass(frozen=True)
class Size:
    """What was measured at one size."""

    known: int
    plan: float  # seconds
    page: float  # CPU ms of one page of a cycle, start-up and planning taken off
    cycle: float  # CPU ms per page of a whole cycle, start-up and planning included
    crawl: float  # CPU ms of one new page in a first crawl
    memory: int  # bytes, in cycles
    disk: int  # bytes per known page
    crawl_memory: int = 0  # bytes, in the crawl


def urls(web_url: str, pages: int) -> Iterator[str]:
    return (f"{web_url}known/{n}.html" for n in range(pages))


def fill(folder: Path, web_url: str, pages: int) -> None:
    """Put pages into a repository as if each had been visited once, long enough ago to be due."""
    write_seeds(folder / SETTINGS, (Seed(web_url, allow_private=True, delay=0.0),))
    store = SqliteStore(folder / "recrawl.db", create=True)
    blank = SiteRow(0, origin(web_url), 404, b"", time.time(), 0.0, time.time(), 0.0, 0, 0, 0, 0, "")
    store.commit(Batch(sites=[blank]), [])
    numbered = enumerate(urls(web_url, pages))
    while rows := list(itertools.islice(numbered, 50_000)):
        batch = Batch()
        for page, url in rows:
            at = 1e9 + page
            where = key(directory(url))
            batch.pages.append(NewPage(page, key(url), 0, where, 1, -1, at, -1, int(State.LIVE), 0, url))
            seen = unvisited(page)._replace(state=int(State.LIVE), visits=1, changes=1, last_try=at, last_visit=at)
            batch.states.append(seen)
        store.commit(batch, [])
    store.close()


def sizes(web: Web, counts: list[int], work: Path) -> list[Size]:
    """Every size in turn; one that fails costs its own line only."""
    if reason := ours.unavailable():
        print(f"without large repositories: {reason}", flush=True)
        return []
    done = []
    for known in counts:
        try:
            done.append(_size(web, known, Path(tempfile.mkdtemp(dir=work))))
        except CommandError as problem:
            print(f"  FAILED at {known} pages: {problem}", flush=True)
            continue
        last = done[-1]
        print(
            f"  {known:9,} known  plan {last.plan:.2f} s  cycle {last.page:.3f} ms CPU a page  "
            f"crawl {last.crawl:.3f} ms CPU a page  {last.memory / 2**20:.0f} and {last.crawl_memory / 2**20:.0f} MiB",
            flush=True,
        )
    return done


def _size(web: Web, known: int, folder: Path) -> Size:
    web.generation(0, 0.0)
    repository = ours.Repository(folder / "repository", web)
    repository.init(index=False)
    filling = [sys.executable, "-m", "benchmarks.scale", str(repository.folder), web.url, str(known)]
    answer = subprocess.run(filling, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise CommandError(f"filling ended with code {answer.returncode}: {answer.stderr[-800:]}")
    disk = repository.bytes() // known
    budget = min(CYCLE, known)

    one, plan, _ = _cycles(repository, 1)
    many, _, memory = _cycles(repository, budget)
    repository.add()
    web.reset()
    crawl = repository.crawl()
    fresh = web.counts()["full"]
    if fresh < web.pages:
        raise CommandError(f"the crawl fetched {fresh:.0f} pages of {web.pages}")
    return Size(
        known=known,
        plan=plan,
        page=1000 * (many - one) / (budget - 1),
        cycle=1000 * many / budget,
        crawl=1000 * crawl.cpu / fresh,
        memory=memory,
        disk=disk,
        crawl_memory=crawl.memory,
    )


def _cycles(repository: ours.Repository, budget: int) -> tuple[float, float, int]:
    """Median CPU time and planning time of a few cycles of `budget` pages, and their peak memory."""
    costs, plans = [], []
    for _ in range(REPEATS):
        repository.web.reset()
        costs.append(repository.cycle(budget))
        seen = repository.web.counts()
        if seen["full"] < budget:
            raise CommandError(f"the cycle visited {seen['full']:.0f} pages of {budget}")
        plans.append(seen["first"] - costs[-1].started)
    middle = statistics.median
    return middle(one.cpu for one in costs), middle(plans), max(one.memory for one in costs)


def as_json(done: list[Size]) -> list[dict[str, object]]:
    return [asdict(one) for one in done]


def from_json(rows: list[dict[str, object]]) -> list[Size]:
    return [Size(**row) for row in rows]  # type: ignore[arg-type]


def tables(done: list[Size]) -> list[Table]:
    if not done:
        return []
    top = max(one.page for one in done)
    rows = [
        [
            f"{one.known:,}",
            number(one.plan),
            number(one.page),
            number(one.cycle),
            number(one.crawl),
            f"{one.memory / 2**20:.0f}",
            f"{one.crawl_memory / 2**20:.0f}",
            f"{one.disk}",
            "█" * round(20 * one.page / top),
        ]
        for one in done
    ]
    heads = [
        "pages known",
        "plan, s",
        "page of a cycle, CPU ms",
        "with start-up and plan",
        "new page of a crawl, CPU ms",
        "cycle, peak MiB",
        "crawl, peak MiB",
        "bytes on disk a page",
        "curve",
    ]
    return [Table("Large repositories", heads, rows), _bars(done)]


def _bars(done: list[Size]) -> Table:
    small, large = min(done, key=lambda one: one.known), max(done, key=lambda one: one.known)
    grown = f"{large.known:,} known against {small.known:,}"
    memories = {"crawl": (small.crawl_memory, large.crawl_memory), "cycle": (small.memory, large.memory)}
    ratios = {
        "a page of a cycle": (small.page, large.page),
        "a page of a crawl": (small.crawl, large.crawl),
        "memory of a crawl": memories["crawl"],
    }
    checks = [
        (f"plan with {large.known:,} pages known", f"{large.plan:.2f} s", "5 s", large.plan < PLAN_SECONDS),
        *(
            (f"memory of a {what}", f"{most / 2**20:.0f} MiB", f"{MEMORY >> 20} MiB", most <= MEMORY)
            for what, (_, most) in memories.items()
        ),
        *(
            (f"{what}, {grown}", f"{to / max(of, 1e-9):.2f}x", f"{FLAT:g}x", 0 < to <= FLAT * of)
            for what, (of, to) in ratios.items()
        ),
    ]
    rows = [[about, measured, most, "yes" if kept else "NO"] for about, measured, most, kept in checks]
    return Table("Bounds of large repositories", ["", "measured", "at most", "kept"], rows)


if __name__ == "__main__":
    fill(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
