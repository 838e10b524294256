"""A crawl or cycle that was interrupted goes on as if it had not been.

A crash is taken by copying the repository's folder while the engine works: what a kill at that moment would have left
behind. The engine itself runs to its end and shows what should have come of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.choose import make_policy
from recrawl.choose.protocol import Choice
from recrawl.crawl import cycles
from recrawl.crawl.state.load_book import load_book
from recrawl.crawl.tally import RunCounts
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import ServerOptions as Manners
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from tests.crashes import SMALL, Bench, archive_of, ask, choices, contents, image, judge

_DAY = 86400.0
_RANDOM = "random"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    path = tmp_path_factory.mktemp("world") / "world.parquet"
    world = SyntheticWorld(
        seed=5, sites=2, pages=40, days=6, size_min=1000, size_max=3000, links=8, change_rate=0.6, births=0.2
    )
    write(world, path)
    with Bench(Archive.open([path])) as made:
        yield made


@pytest.fixture(scope="module")
def crawled(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that crawled the web on its second day."""
    folder = bench.create(tmp_path_factory.mktemp("crawled") / "repo")
    bench.clock.set(bench.archive.start + _DAY)
    assert bench.crawl(folder).finished
    return folder


Batches = list[tuple[list[int], list[float]]]
"""The choices of a policy: pages and scores of each batch."""


def noted_batches(monkeypatch: pytest.MonkeyPatch, policy: str) -> Batches:
    """The batches that policies of this kind make from now on."""
    kind, batches = type(make_policy(policy)), Batches()
    original = kind.cycle

    def cycle(self: Any, book: Any, budget: int, rng: np.random.Generator) -> Choice:
        choice = original(self, book, budget, rng)
        seen: Any = None
        with suppress(StopIteration):
            while True:
                picks = choice.send(seen)
                batches.append((picks.pages.tolist(), picks.score.tolist()))
                seen = yield picks

    monkeypatch.setattr(kind, "cycle", cycle)
    return batches


class Snapshots:
    """Takes an image of a repository at every n-th report of the engine."""

    def __init__(self, folder: Path, target: Path, every: int, made: Batches | None = None) -> None:
        """`made` are the batches of a cycle, as the policy makes them."""
        self.folder, self.target, self.every = folder, target, every
        self.made: Batches = [] if made is None else made
        self.reports = 0
        self.images: list[tuple[Path, Batches]] = []

    def __call__(self, _tally: RunCounts) -> None:
        self.reports += 1
        if self.reports % self.every == 0:
            self.images.append((image(self.folder, self.target / f"image-{len(self.images)}"), self.made.copy()))

    def some(self, most: int) -> list[tuple[Path, Batches]]:
        """A few of them, evenly, each with the batches that were made by then."""
        assert len(self.images) >= 3, "the run was too short to crash"
        return self.images[:: -(-len(self.images) // most)]


def stop_after(visits: int) -> cycles.Controls:
    """Stop, politely, once so many visits were made."""
    made = 0

    def progress(tally: RunCounts) -> None:
        nonlocal made
        made = tally.visits

    return cycles.Controls(stop=lambda: made >= visits, progress=progress)


# -- crashes -----------------------------------------------------------------------------------------------


def test_a_crawl_that_crashed_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path / "repo")
    snapshots = Snapshots(folder, tmp_path, every=4)
    bench.crawl(folder, cycles.Controls(progress=snapshots), **SMALL)
    judge(folder)
    for crashed, _ in snapshots.some(4):
        before = ask(crashed, "SELECT page, outcome, at FROM visits")
        summary = bench.crawl(crashed)
        assert (summary.resumed, summary.finished) == (True, True)
        judge(crashed)
        assert contents(crashed) == contents(folder)
        assert set(before) <= set(ask(crashed, "SELECT page, outcome, at FROM visits")), "a visit was lost"
        assert ask(crashed, "SELECT count(*) FROM cycles") == [(1,)]


@pytest.mark.parametrize("policy", [_RANDOM, "round-robin(order=shuffled)", "shock"])
def test_a_cycle_that_crashed_makes_the_same_choices(
    bench: Bench, crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """All choices that were made before the crash are made again, in the same batches, recorded or not."""
    batches = noted_batches(monkeypatch, policy)
    bench.clock.set(bench.archive.start + 2 * _DAY)
    folder = image(crawled, tmp_path / "repo")
    snapshots = Snapshots(folder, tmp_path, every=3, made=batches)
    number = bench.cycle(folder, policy, 50, cycles.Controls(progress=snapshots), **SMALL).cycle.id
    judge(folder)
    assert len(choices(folder, number)) == 50
    for crashed, made in snapshots.some(3):
        before = choices(crashed, number)
        bench.clock.advance(60)  # it is resumed later, and still knows only what it knew
        batches.clear()
        summary = bench.cycle(crashed, "round-robin", 3)
        assert batches[: len(made)] == made, "other batches were chosen"
        assert (summary.resumed, summary.finished, summary.cycle.id) == (True, True, number)
        judge(crashed)
        after = choices(crashed, number)
        assert before.items() <= after.items()
        assert len(after) == 50
        assert after == choices(folder, number), "an undisturbed cycle makes other choices"


def test_the_index_never_claims_more_than_it_holds(bench: Bench, tmp_path: Path) -> None:
    """The mark `indexed` must not run ahead of the store: what is behind it is never looked at again."""
    ahead: list[tuple[int, int]] = []

    def look(_tally: RunCounts) -> None:
        mark = ask(folder, "SELECT ifnull((SELECT value FROM meta WHERE name = 'indexed'), -1)")[0][0]
        last = ask(folder, "SELECT ifnull(max(id), -1) FROM visits")[0][0]
        if mark > last:
            ahead.append((mark, last))

    with Bench(bench.archive, Manners(latency=0.004)) as slow:  # so that visits trickle in
        slow.clock.set(bench.archive.start + _DAY)
        folder = slow.create(tmp_path / "repo")
        controls = cycles.Controls(progress=look)
        slow.crawl(folder, controls, commit_visits=15, commit_seconds=10.0, index_seconds=0.01, per_server=1)
    assert ahead == []


def test_a_page_that_asks_not_to_be_indexed_is_not_after_a_crash_either(tmp_path: Path) -> None:
    hidden = b'<meta name="robots" content="noindex"><title>Hidden</title><p>secret words <a href="/">home</a>'
    rows = [
        ("https://a.example/", 1_700_000_000, b'<title>Home</title><p>open words <a href="/hidden">on</a>'),
        ("https://a.example/hidden", 1_700_000_000, hidden),
    ]
    with Bench(archive_of(rows)) as bench:
        folder = bench.create(tmp_path / "repo")
        bench.crawl(folder)
        with Storage(folder) as open_one:
            assert [hit.title for hit in open_one.index.search("words")] == ["Home"]
        crashed = image(folder, tmp_path / "crashed")
        with Storage(crashed) as open_one:
            open_one.store.meta.set("indexed", -1)  # as after a crash before the first commit of the index
        with bench.opened(crashed) as (open_one, _):
            assert [hit.title for hit in open_one.index.search("words")] == ["Home"]


def test_after_a_run_that_ended_well_there_is_nothing_to_mend(tmp_path: Path) -> None:
    """Not even when all that it saw were failures and pages that did not change."""
    home = b'<title>Home</title><p>words <a href="/dead">gone</a>'
    rows = [("https://a.example/", 1_700_000_000, home), ("https://a.example/", 1_700_200_000, home + b"<!-- same -->")]
    with Bench(archive_of(rows)) as bench:
        folder = bench.create(tmp_path / "repo")
        for work in (bench.crawl, bench.cycle, bench.cycle):
            work(folder)
            with Storage(folder) as open_one:
                assert open_one.unindexed() == []
            bench.clock.advance(2 * _DAY)
    assert ask(folder, "SELECT count(*) FROM visits WHERE outcome = 4")[0][0] > 1


# -- stops -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visits", [1, 40])
def test_a_cycle_that_was_stopped_goes_on(bench: Bench, crawled: Path, tmp_path: Path, visits: int) -> None:
    bench.clock.set(bench.archive.start + 2 * _DAY)
    whole, cut = image(crawled, tmp_path / "whole"), image(crawled, tmp_path / "cut")
    number = bench.cycle(whole, _RANDOM, 60).cycle.id
    first = bench.cycle(cut, _RANDOM, 60, stop_after(visits))
    assert not first.finished
    judge(cut)
    second = bench.cycle(cut, _RANDOM, 60)
    assert (second.resumed, second.finished) == (True, True)
    assert first.tally.visits + second.tally.visits == 60
    judge(cut)
    assert choices(cut, number) == choices(whole, number)


def test_a_crawl_that_was_stopped_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    whole, cut = bench.create(tmp_path / "whole"), bench.create(tmp_path / "cut")
    bench.crawl(whole)
    stops = 0
    while not (summary := bench.crawl(cut, stop_after(10), commit_visits=5)).finished:
        stops += 1
        judge(cut)
        assert stops < 50
    assert summary.resumed
    assert stops >= 1
    judge(cut)
    assert contents(cut) == contents(whole)


def test_a_crawl_in_between_does_not_change_the_choices_of_a_cycle(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    """Pages that were found and visited since the cycle was stopped are unknown to it when it goes on."""
    bench.clock.set(bench.archive.start + 5 * _DAY)
    whole, cut = image(crawled, tmp_path / "whole"), image(crawled, tmp_path / "cut")
    pages = ask(cut, "SELECT count(*) FROM pages")[0][0]
    number = bench.cycle(whole, _RANDOM, pages - 5).cycle.id
    bench.cycle(cut, _RANDOM, pages - 5, stop_after(60), commit_visits=5)
    bench.clock.advance(60)
    assert bench.crawl(cut).tally.outcomes[Outcome.NEW] > 0
    assert bench.cycle(cut, _RANDOM, 1).resumed
    judge(cut)
    assert choices(cut, number) == choices(whole, number)


# -- the book ------------------------------------------------------------------------------------------------


def books_equal(one: Path, other: Path, number: int) -> None:
    """Both repositories give the same book for a cycle."""
    loaded = []
    for folder in (one, other):
        with Storage(folder) as open_one:
            (row,) = [row for row in open_one.store.cycles.newest() if row.id == number]
            loaded.append(load_book(open_one.store, row, {}))
    before, after = loaded
    size = len(before)
    for name in ("known", "visits", "changes", "failures", "last_try", "last_visit", "last_change", "found", "site"):
        np.testing.assert_array_equal(getattr(after, name)[:size], getattr(before, name), err_msg=name)
    assert not after.known[size:].any(), "pages found since are known"


def after_a_cycle(bench: Bench, folder: Path, tmp_path: Path, policy: str = "round-robin") -> tuple[Path, Path, int]:
    """A repository at the start of a cycle, the same at its end, and the cycle's number."""
    begun: list[Path] = []

    def begin() -> bool:
        if not begun:
            begun.append(image(folder, tmp_path / "begun"))
        return False

    number = bench.cycle(folder, policy, 1000, cycles.Controls(stop=begin)).cycle.id
    return begun[0], folder, number


def test_the_book_is_taken_back_to_where_the_cycle_began(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    folder = image(crawled, tmp_path / "repo")
    for day in (2, 3):
        bench.clock.set(bench.archive.start + day * _DAY)
        bench.cycle(folder, "random", 40)
        bench.crawl(folder)
    bench.clock.set(bench.archive.start + 5 * _DAY)
    begun, ended, number = after_a_cycle(bench, folder, tmp_path)
    assert ask(ended, "SELECT count(*) FROM visits WHERE cycle = ?", number)[0][0] > 60
    books_equal(begun, ended, number)


Rows = list[tuple[str, int, bytes | None]]


def _site(pages: int, change: Callable[[int], list[tuple[int, bytes | None]]]) -> Rows:
    links = " ".join(f'<a href="/{n}">{n}</a>' for n in range(pages))
    rows: Rows = [("https://a.example/", 0, f"<p>home {links}".encode())]
    for number in range(pages):
        rows.append((f"https://a.example/{number}", 0, f"<p>page {number}".encode()))
        rows += [(f"https://a.example/{number}", at, body) for at, body in change(number)]
    return [(url, at + 1_700_000_000, body) for url, at, body in rows]


def test_the_book_is_taken_back_for_pages_that_went_and_came_again(tmp_path: Path) -> None:
    days = 86400
    rows = _site(12, lambda n: [(2 * days, None), (9 * days, b"<p>again")] if n < 2 else [(n * days, b"<p>new")])
    with Bench(archive_of(rows)) as bench:
        folder = bench.create(tmp_path / "repo")
        for day in (1, 3, 4, 5, 10):
            bench.clock.set(bench.archive.start + day * _DAY)
            bench.crawl(folder)
            bench.cycle(folder)
        assert ask(folder, "SELECT count(*) FROM visits WHERE outcome = ?", int(Outcome.GONE))[0][0] == 2
        bench.clock.set(bench.archive.start + 12 * _DAY)
        begun, ended, number = after_a_cycle(bench, folder, tmp_path)
        books_equal(begun, ended, number)


def test_the_book_is_taken_back_for_pages_that_were_held_off(tmp_path: Path) -> None:
    """A page that was only held off has not failed, in the cycle that goes on as in the one that began."""
    with Bench(archive_of(_site(12, lambda _: []))) as bench:
        folder = bench.create(tmp_path / "repo")
        bench.crawl(folder)
        bench.clock.advance(_DAY)
        bench.server.__exit__(None, None, None)  # the server is down: most of its pages are not even tried
        bench.cycle(folder)
        kinds = dict(ask(folder, "SELECT failure, count(*) FROM visits WHERE outcome = 4 GROUP BY failure"))
        assert kinds.get("held-off", 0) or kinds.get("unreachable-connect", 0), kinds
        bench.clock.advance(600)  # sooner than a failed page would be tried again
        begun, ended, number = after_a_cycle(bench, folder, tmp_path)
        assert ask(ended, "SELECT count(*) FROM visits WHERE cycle = ?", number)[0][0] > 0
        books_equal(begun, ended, number)
