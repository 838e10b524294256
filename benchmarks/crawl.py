"""First crawl and refresh: cost per page of recrawl and of other crawlers.

Every round runs each contender once, in an order that turns from round to round; ratios are taken within a
round and their median and range are reported. A page is counted when the server has served it.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import ours
from benchmarks.measure import CommandError, Cost, must, run
from benchmarks.peers import Peer
from benchmarks.report import Bar, Table, number
from benchmarks.web import Web

CHANGED = 0.1  # the share of pages that change in the round that is not bound by a bar


@dataclass(frozen=True)
class Run:
    """One contender in one round."""

    name: str
    round: int
    pages: int  # distinct pages the server served, 304s included
    full: int
    same: int
    cpu: float
    system: float
    wall: float
    memory: int
    foreign: float
    expected: int

    @property
    def complete(self) -> bool:
        return self.pages == self.expected

    @property
    def per_second(self) -> float:
        return self.pages / self.cpu


Task = Callable[[int, Path], Iterator[Run]]

BARS = [
    *(
        Bar(f"crawl, index {state}", peer, least, goal)
        for state in ("off", "on")
        for peer, least, goal in [
            ("wget", 1.9 if state == "off" else None, 2.3 if state == "off" else None),
            ("scrapy-best", 6.5 if state == "off" else 4.0, 5.5 if state == "on" else None),
            ("scrapy", 11.0, 15.0),
            ("scrapy-wacz", None, None),
            ("wget2", 1.0, None),
            ("crawlee", None, None),
        ]
    ),
    Bar("refresh, same bytes", "crawl, index off", 3.0, None),
    Bar("refresh, same bytes, index on", "crawl, index on", 3.0, None),
    Bar("refresh, 304", "crawl, validators", 5.0, None),
]


def rounds(web: Web, peers: list[Peer], repeats: int, work: Path) -> list[Run]:
    """Every contender, `repeats` times, each in an empty folder below `work`: the same disk for all.

    Folders are left for the caller to remove when all is over, see `workplace` in `__main__`.
    """
    tasks: list[Task] = [_peer(web, peer) for peer in peers]
    if reason := ours.unavailable():
        print(f"without recrawl: {reason}", flush=True)
    else:
        tasks += [_plain(web, index=False), _plain(web, index=True), _validators(web)]
    done: list[Run] = []
    for at in range(repeats):
        turn = at % len(tasks) if tasks else 0
        for task in tasks[turn:] + tasks[:turn]:
            done += _shown(task(at, Path(tempfile.mkdtemp(dir=work))))
    return done


def _shown(runs: Iterator[Run]) -> list[Run]:
    """The runs of a task, each told of when it is over; a contender that fails costs its own line only."""
    done = []
    try:
        for one in runs:
            done.append(one)
            cost = 1000 * one.cpu / max(1, one.pages)
            note = "" if one.complete else f"  INCOMPLETE: {one.pages} of {one.expected} pages"
            print(
                f"  round {one.round + 1}  {one.name:32} {cost:7.3f} ms CPU a page  "
                f"{one.wall:6.1f} s  others used {one.foreign:5.1f} CPU s{note}",
                flush=True,
            )
    except CommandError as problem:
        print(f"  FAILED  {problem}", flush=True)
    return done


def _run(web: Web, name: str, at: int, cost: Cost) -> Run:
    seen = web.counts()
    return Run(
        name=name,
        round=at,
        pages=int(seen["fetched"]),
        full=int(seen["full"]),
        same=int(seen["same"]),
        cpu=cost.cpu,
        system=cost.system,
        wall=cost.wall,
        memory=cost.memory,
        foreign=cost.foreign,
        expected=web.pages,
    )


def _peer(web: Web, peer: Peer) -> Task:
    def task(at: int, folder: Path) -> Iterator[Run]:
        web.generation(0, 0.0)
        web.reset()
        log = folder / "log"
        cost = run(peer.command(web.url, web.pages, folder / "files"), log=log, server=web.pid)
        yield _run(web, peer.name, at, must(cost, peer.name, log, peer.codes))

    return task


def _plain(web: Web, *, index: bool) -> Task:
    """First crawl, a refresh when nothing has changed, one when some pages have; no validators."""
    state = "index on" if index else "index off"
    suffix = ", index on" if index else ""

    def task(at: int, folder: Path) -> Iterator[Run]:
        web.generation(0, 0.0)
        web.reset()
        repository = ours.Repository(folder / "repository", web)
        repository.init(index=index)
        repository.add()
        yield _run(web, f"crawl, {state}", at, repository.crawl())
        web.reset()
        yield _run(web, f"refresh, same bytes{suffix}", at, repository.cycle(web.pages))
        web.generation(1, CHANGED)
        web.reset()
        yield _run(web, f"refresh, {CHANGED:.0%} changed{suffix}", at, repository.cycle(web.pages))

    return task


def _validators(web: Web) -> Task:
    """First crawl of a site that sends ETags, then a refresh that it answers with 304s."""

    def task(at: int, folder: Path) -> Iterator[Run]:
        web.generation(0, 0.0)
        web.reset(validators=True)
        repository = ours.Repository(folder / "repository", web)
        repository.init(index=False)
        repository.add()
        yield _run(web, "crawl, validators", at, repository.crawl())
        web.reset(validators=True)
        yield _run(web, "refresh, 304", at, repository.cycle(web.pages))

    return task


def as_json(runs: list[Run]) -> list[dict[str, object]]:
    return [asdict(one) for one in runs]


def from_json(rows: list[dict[str, object]]) -> list[Run]:
    return [Run(**row) for row in rows]  # type: ignore[arg-type]


def tables(runs: list[Run], about: dict[str, str]) -> list[Table]:
    names = list(dict.fromkeys(one.name for one in sorted(runs, key=lambda one: one.cpu / max(1, one.pages))))
    return [_costs(runs, names, about), ratios(runs, about)]


def _costs(runs: list[Run], names: list[str], about: dict[str, str]) -> Table:
    rows = []
    for name in names:
        mine = [one for one in runs if one.name == name]
        cost = [1000 * one.cpu / max(1, one.pages) for one in mine]
        rows.append(
            [
                about.get(name, f"recrawl: {name}"),
                f"{number(statistics.median(cost))} ({number(min(cost))} to {number(max(cost))})",
                number(statistics.median(1000 * one.system / max(1, one.pages) for one in mine)),
                number(1000 / statistics.median(cost)),
                number(statistics.median(one.pages / one.wall for one in mine)),
                f"{statistics.median(one.memory for one in mine) / 2**20:.0f}",
                f"{min(one.pages for one in mine)}",
                f"{min(one.full for one in mine)} / {min(one.same for one in mine)}",
            ]
        )
    heads = [
        "crawler",
        "CPU ms per page",
        "of it kernel",
        "pages per CPU-second",
        "pages per second",
        "peak MiB",
        "pages",
        "200 / 304",
    ]
    return Table("What a page costs (median of the rounds, range in brackets)", heads, rows)


def ratios(runs: list[Run], about: dict[str, str]) -> Table:
    """What recrawl does, against whom, and by how much: the table to trust, since both sides ran in the same round."""
    rows = []
    for bar in BARS:
        pairs = _pairs(runs, bar)
        if not pairs:
            continue
        middle = statistics.median(pairs)
        verdict = "" if bar.least is None else "yes" if middle >= bar.least else "NO"
        rows.append(
            [
                f"recrawl: {bar.ours}",
                about.get(bar.theirs, f"recrawl: {bar.theirs}"),
                f"{number(middle)}x",
                f"{number(min(pairs))} to {number(max(pairs))}",
                str(len(pairs)),
                "" if bar.least is None else f"{bar.least:g}x",
                "" if bar.goal is None else f"{bar.goal:g}x",
                verdict,
            ]
        )
    heads = ["what", "against", "ratio", "range", "rounds", "bar", "goal", "kept"]
    return Table("Pages per CPU-second, as ratios within one round", heads, rows)


def _pairs(runs: list[Run], bar: Bar) -> list[float]:
    """The ratio in each round in which both sides fetched everything."""
    ours_, theirs = (
        {one.round: one.per_second for one in runs if one.name == name and one.complete}
        for name in (bar.ours, bar.theirs)
    )
    return [ours_[at] / theirs[at] for at in sorted(ours_.keys() & theirs.keys())]
