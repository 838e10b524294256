"""What a policy remembers, live: the file of it is a convenience, the recorded visits are what counts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import POLICIES, make_policy
from recrawl.choose.protocol import Choice
from recrawl.crawl import cycles
from recrawl.crawl.state import policy_memory
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.book_columns import add_folders
from recrawl.crawl.state.load_book import load_book
from recrawl.crawl.state.policy_memory import file_of, ready_book, recorded_visits, save_memory, words_of_visits
from recrawl.crawl.tally import RunCounts
from recrawl.discover.urls import directory, key
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.learn.shocks.url_templates import index_pages, url_templates
from recrawl.learn.structure.directories import places
from recrawl.loop import note
from recrawl.model import Outcome, Outcomes, Picks
from recrawl.record.rows import Batch, CycleRow, NewPage, VisitRow
from recrawl.record.storage import Storage, create
from recrawl.record.store.sql.tables.pages import SqlPages
from recrawl.settings import TEMPLATE
from recrawl.version import __version__
from tests.crashes import SMALL, Bench, ask, choices, image, judge
from tests.world import connection

_DAY = 86400.0
_STORM = "stormcrawler(interval=700, fill=true)"
_MACHINES = "predicted(method=3d, k=3, train=10, retrain=2)"
_TESTED = ("wary", _STORM, _MACHINES)


class Wary:
    """A policy that shows in its memory everything that `learn` was told and could see."""

    name: ClassVar[str] = "wary"
    source: ClassVar[str] = "tests"
    needs: ClassVar[frozenset[str]] = frozenset({"links", "folders"})

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        assert book.links is not None
        assert book.folders is not None
        score = (
            book.kept("wary.score", 0.0) + 0.001 * np.diff(book.links.start) + 0.01 * book.folders.level[book.folder]
        )
        pages = np.flatnonzero(book.known)
        pages = rng.permutation(pages)
        pages = pages[np.argsort(-score[pages], kind="stable")][:budget]
        for part in np.array_split(pages, 3):
            yield Picks(part, score[part], "is suspicious")

    def learn(self, book: Book, seen: Outcomes, at: np.ndarray) -> None:
        assert book.folders is not None
        assert len(book.folder) == len(book)
        score = book.kept("wary.score", 0.0)
        score *= 0.5
        score[seen.pages] += 1.0 + seen.what + book.visits[seen.pages] * 0.1 + book.failures[seen.pages] * 0.01
        book.memory["wary.score"] = score
        facts = [
            len(book), book.known.sum(), book.now, book.visits.sum(), book.changes.sum(), len(seen), at.sum(),
            book.last_try[np.isfinite(book.last_try)].sum(), book.folder.sum(),
        ]  # fmt: skip
        log = book.memory.get("wary.log", np.zeros((0, len(facts))))
        book.memory["wary.log"] = np.vstack([log, facts])


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    POLICIES["wary"] = Wary
    yield
    del POLICIES["wary"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    path = tmp_path_factory.mktemp("world") / "world.parquet"
    world = SyntheticWorld(
        seed=6, sites=2, pages=25, days=8, size_min=1000, size_max=1500, links=6, change_rate=0.6, births=0.3
    )
    write(world, path)
    with Bench(Archive.open([path])) as made:
        yield made


@pytest.fixture(scope="module")
def crawled(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = bench.create(tmp_path_factory.mktemp("crawled") / "repo")
    bench.clock.set(bench.archive.start + _DAY)
    assert bench.crawl(folder).finished
    return folder


def later(bench: Bench, folder: Path, policy: str, days: list[int]) -> None:
    """A cycle and a crawl on each of these days."""
    for day in days:
        bench.clock.set(bench.archive.start + day * _DAY)
        bench.cycle(folder, policy, 20)
        bench.clock.advance(60)
        bench.crawl(folder)


def row_now(open_one: Storage, now: float) -> CycleRow:
    """The cycle that would come next."""
    store = open_one.store
    numbers = [store.next_id(table) for table in ("cycles", "visits", "pages")]
    return CycleRow(numbers[0], "cycle", "", 0, 0, now, None, numbers[1], numbers[2])


def memory(bench: Bench, folder: Path, policy: str) -> dict[str, np.ndarray]:
    """What the policy would remember in a cycle that began now."""
    with Storage(folder) as open_one:
        row = row_now(open_one, bench.clock.now())
        return ready_book(open_one, make_policy(policy), row, {}, begin=False)[0].memory


def saved(folder: Path, policy: str) -> dict[str, np.ndarray]:
    with Storage(folder) as open_one:
        found = read_arrays(file_of(open_one, make_policy(policy)))
    assert found is not None
    return found


def forget(folder: Path) -> None:
    shutil.rmtree(folder / "models", ignore_errors=True)


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    assert one
    for name, column in one.items():
        np.testing.assert_array_equal(other[name], column, err_msg=name)


# -- saved and folded anew -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", _TESTED)
def test_what_was_saved_is_what_the_visits_say(bench: Bench, crawled: Path, tmp_path: Path, policy: str) -> None:
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, policy, [2, 3])
    later(bench, folder, "random", [4])
    later(bench, folder, policy, [5])
    kept = memory(bench, folder, policy)
    assert saved(folder, policy)["upto"] > 50
    forget(folder)
    same(memory(bench, folder, policy), kept)
    assert not (folder / "models").exists(), "a question must not write"


@pytest.mark.parametrize("policy", _TESTED)
def test_without_the_file_the_choices_are_the_same(bench: Bench, crawled: Path, tmp_path: Path, policy: str) -> None:
    """Both cycles begin from one store: in which order answers come in is not the same in two crawls."""
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, policy, [2])
    for day in (3, 4):
        bench.clock.set(bench.archive.start + day * _DAY)
        blank = image(folder, tmp_path / f"blank-{day}")
        forget(blank)
        number = bench.cycle(folder, policy, 20).cycle.id
        assert bench.cycle(blank, policy, 20).cycle.id == number
        assert choices(folder, number)
        assert choices(folder, number) == choices(blank, number)
        bench.crawl(folder)


def test_each_cycle_and_each_crawl_is_told_once(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, "wary", [2, 3])
    log = memory(bench, folder, "wary")["wary.log"]
    told = [row[0] for row in ask(folder, "SELECT count(*) FROM visits GROUP BY cycle ORDER BY cycle")]
    assert log[:, 5].tolist() == told
    assert log[0, 3] == 0, "the book is blank before the first crawl"
    starts = ask(folder, "SELECT started, known FROM cycles WHERE id IN (SELECT cycle FROM visits) ORDER BY id")
    assert log[:, 2].tolist() == [row[0] for row in starts]
    assert (log[1:, 0] >= [row[1] for row in starts][1:]).all()


def test_a_policy_that_remembers_nothing_leaves_no_file(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, "round-robin", [2])
    assert not (folder / "models").exists()


def test_policies_do_not_share_a_memory(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    folder = image(crawled, tmp_path / "repo")
    for policy in ("nutch", "nutch(sync=false)", "stormcrawler"):
        bench.clock.advance(_DAY)
        bench.cycle(folder, policy, 5)
    assert len(list((folder / "models").iterdir())) == 3


# -- files that cannot be used ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(bench: Bench, crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """A repository after a few cycles, and what its policy remembers."""
    folder = image(crawled, tmp_path_factory.mktemp("kept") / "repo")
    later(bench, folder, _STORM, [2, 3])
    return folder, memory(bench, folder, _STORM)


def test_a_damaged_file_is_not_believed(bench: Bench, kept: tuple[Path, dict[str, np.ndarray]], tmp_path: Path) -> None:
    folder, right = image(kept[0], tmp_path / "repo"), kept[1]
    (path,) = (folder / "models").iterdir()
    whole = path.read_bytes()
    for wrong in (
        b"",
        b"nonsense",
        whole[:100],
        whole[:-30],
        whole[: len(whole) // 2],
        whole.replace(b"\x00", b"\x01"),
    ):
        path.write_bytes(wrong)
        same(memory(bench, folder, _STORM), right)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_does_no_harm(
    bench: Bench, kept: tuple[Path, dict[str, np.ndarray]], place: int, bit: int
) -> None:
    folder, right = kept
    (path,) = (folder / "models").iterdir()
    whole = bytearray(path.read_bytes())
    before = bytes(whole)
    whole[place % len(whole)] ^= 1 << bit
    path.write_bytes(whole)
    try:
        same(memory(bench, folder, _STORM), right)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": np.array("stormcrawler")},
        {"version": np.array("0.0.0")},
        {"upto": np.array(10**6)},
        {"upto": np.array(3)},
        {"last": np.zeros((3, 1))},
        {"known": np.ones(10**4, bool)},
    ],
)
def test_a_file_of_something_else_is_not_believed(
    bench: Bench, kept: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, wrong: dict[str, np.ndarray]
) -> None:
    folder, right = image(kept[0], tmp_path / "repo"), kept[1]
    (path,) = (folder / "models").iterdir()
    arrays = read_arrays(path)
    assert arrays is not None
    nonsense = {
        name: column + 1 for name, column in arrays.items() if name.startswith("kept ") and column.dtype != bool
    }
    write_arrays(path, {**arrays, **nonsense, **wrong})
    same(memory(bench, folder, _STORM), right)


def test_a_file_that_is_believed_is_used(
    bench: Bench, kept: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    """Else the tests above would say nothing."""
    folder = image(kept[0], tmp_path / "repo")
    (path,) = (folder / "models").iterdir()
    arrays = read_arrays(path)
    assert arrays is not None
    write_arrays(path, {**arrays, "kept stormcrawler.extra": np.array([7])})
    assert memory(bench, folder, _STORM)["stormcrawler.extra"].tolist() == [7]


def test_a_backup_of_the_store_with_a_newer_memory(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    """The same numbers, other visits: the file does not belong to this store."""
    first, second = image(crawled, tmp_path / "first"), image(crawled, tmp_path / "second")
    bench.clock.set(bench.archive.start + 2 * _DAY)
    bench.cycle(first, _STORM, 20)
    bench.clock.set(bench.archive.start + 3 * _DAY)
    bench.cycle(second, "random", 20)
    right = memory(bench, second, _STORM)
    shutil.copytree(first / "models", second / "models")
    same(memory(bench, second, _STORM), right)


def test_machines_are_fitted_live_from_the_words_of_stored_versions(
    bench: Bench, crawled: Path, tmp_path: Path
) -> None:
    """Enough cycles for ten examples a page; what was learned follows from the record alone."""
    folder = image(crawled, tmp_path / "repo")
    for step in range(14):
        bench.clock.set(bench.archive.start + (1.2 + 0.45 * step) * _DAY)
        work = bench.cycle(folder, _MACHINES, 60).work
    assert 0 < work["pages_with_machines"] <= work["pages_tracked"]
    assert 0 < work["machines"] <= 2000
    kept = memory(bench, folder, _MACHINES)
    assert len(kept["predicted.log.word"]) > 100
    forget(folder)
    same(memory(bench, folder, _MACHINES), kept)


def test_the_first_use_on_an_old_repository_reads_the_words_of_the_newest_visits_only(
    bench: Bench, crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = image(crawled, tmp_path / "repo")
    for day in (2, 3, 4):
        bench.clock.set(bench.archive.start + day * _DAY)
        bench.cycle(folder, "random", 40)
    read: list[int] = []

    def counted(repository: Storage, visits: dict[str, Any], rows: np.ndarray) -> Any:
        read.extend(visits["id"][rows].tolist())
        return words_of_visits(repository, visits, rows)

    monkeypatch.setattr(policy_memory, "words_of_visits", counted)
    monkeypatch.setattr(policy_memory, "MAX_WORDY", 50)
    kept = memory(bench, folder, _MACHINES)
    assert len(read) == 50
    assert max(read) - min(read) == 49
    assert len(kept["predicted.log.word"]) > 0


# -- crashes and stops -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", _TESTED)
def test_a_cycle_that_crashed_remembers_what_it_did(bench: Bench, crawled: Path, tmp_path: Path, policy: str) -> None:
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, policy, [2, 3])
    bench.clock.set(bench.archive.start + 4 * _DAY)
    images: dict[int, Path] = {}

    def snapshot(tally: RunCounts) -> None:
        if tally.visits // 10 not in images and tally.visits < 30:
            images[tally.visits // 10] = image(folder, tmp_path / f"image-{len(images)}")

    number = bench.cycle(folder, policy, 30, cycles.Controls(progress=snapshot), **SMALL).cycle.id
    assert len(images) >= 2
    for crashed in images.values():
        bench.clock.advance(60)
        assert bench.cycle(crashed, "round-robin", 3).cycle.id == number
        judge(crashed)
        assert choices(crashed, number) == choices(folder, number)
        assert not list((crashed / "models").glob("links*"))


def test_a_crash_before_the_memory_was_saved(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    folder = image(crawled, tmp_path / "repo")
    later(bench, folder, "wary", [2])
    old = tmp_path / "models"
    shutil.copytree(folder / "models", old)
    later(bench, folder, "wary", [3, 4])
    right = memory(bench, folder, "wary")
    forget(folder)
    shutil.copytree(old, folder / "models")
    same(memory(bench, folder, "wary"), right)


def stop_after(visits: int) -> cycles.Controls:
    made = 0

    def progress(tally: RunCounts) -> None:
        nonlocal made
        made = tally.visits

    return cycles.Controls(stop=lambda: made >= visits, progress=progress)


def test_a_crawl_in_between_is_not_remembered_by_the_cycle(bench: Bench, crawled: Path, tmp_path: Path) -> None:
    whole = image(crawled, tmp_path / "whole")
    later(bench, whole, "wary", [2])
    cut = image(whole, tmp_path / "cut")
    bench.clock.set(bench.archive.start + 5 * _DAY)
    number = bench.cycle(whole, "wary", 30).cycle.id
    assert not bench.cycle(cut, "wary", 30, stop_after(8), **SMALL).finished
    bench.clock.advance(60)
    assert bench.crawl(cut).tally.outcomes[Outcome.NEW] > 0
    assert bench.cycle(cut, "wary", 1).cycle.id == number
    assert choices(cut, number) == choices(whole, number)
    right = memory(bench, cut, "wary")
    forget(cut)
    same(memory(bench, cut, "wary"), right)


class Script:
    """A store that is written without a web: cycles and crawls of which any may be stopped and go on later."""

    def __init__(self, folder: Path, seed: int) -> None:
        create(folder, TEMPLATE)
        self.open = Storage(folder)
        self.rng = np.random.default_rng(seed)
        self.policy = make_policy("wary")
        self.rows: dict[int, CycleRow] = {}
        self.pasts: dict[int, Any] = {}
        self.pages = 0

    def begin(self, kind: str) -> int:
        store = self.open.store
        numbers = [store.next_id(table) for table in ("cycles", "visits", "pages")]
        row = CycleRow(numbers[0], kind, "wary", 0, 0, 1000.0 * numbers[0], None, numbers[1], numbers[2])
        store.cycles.begin(row)
        self.rows[row.id] = row
        return row.id

    def visit(self, cycle: int, visits: int) -> None:
        """Some pages, in a crawl new ones."""
        store, row = self.open.store, self.rows[cycle]
        if row.kind == "cycle":
            done = {page for (page,) in connection(store).execute("SELECT page FROM visits WHERE cycle = ?", (cycle,))}
            left = sorted(set(range(row.known)) - done)
            pages = self.rng.permutation(left)[:visits].tolist()
        else:
            pages = list(range(self.pages, self.pages + visits))
        whats = [Outcome(int(self.rng.integers(5))) for _ in pages]
        why = [str(self.rng.choice(["held-off", "timeout"])) if what == Outcome.FAILED else None for what in whats]
        self.write(cycle, list(zip(pages, whats, why, strict=True)))

    def write(self, cycle: int, visits: list[tuple[int, Outcome, str | None]]) -> None:
        """Visits, each of a page; pages that are not there yet are found."""
        store, row = self.open.store, self.rows[cycle]
        batch = Batch()
        for number, (page, what, failure) in enumerate(visits, store.next_id("visits")):
            if page >= self.pages:
                self.pages = page + 1
                url = f"https://a.example/{page % 3}/{page}"
                batch.pages.append(NewPage(page, key(url), 0, key(directory(url)), 1, -1, 0.0, cycle, 0, 0, url))
            at = row.started + number
            batch.visits.append(VisitRow(number, page, cycle, at, what, 0, 0, 0.0, -1, None, None, failure, None))
        store.commit(batch, [])
        # The columns of pages follow from the visits; here they are put together as the crawler would have.
        said = "(SELECT {} FROM visits WHERE page = pages.id AND outcome IN ({}))"
        connection(store).execute(
            "UPDATE pages SET last_try = (SELECT at FROM visits WHERE page = pages.id ORDER BY id DESC), "
            f"visits = {said.format('count(*)', '0, 1, 2, 3')}, changes = {said.format('count(*)', '1, 2, 3')}, "
            f"last_visit = {said.format('max(at)', '0, 1, 2, 3')}, last_change = {said.format('max(at)', '1, 2, 3')}, "
            """failures = (SELECT count(*) FROM visits v WHERE page = pages.id AND failure = 'timeout' AND id > ifnull(
               (SELECT max(id) FROM visits WHERE page = v.page AND outcome < 4), -1))"""
        )

    def choose(self, cycle: int) -> dict[str, np.ndarray]:
        """The cycle begins, or goes on: what the policy remembers."""
        book, self.pasts[cycle] = ready_book(self.open, self.policy, self.rows[cycle], {}, begin=False)
        return book.memory

    def finish(self, cycle: int) -> None:
        self.open.store.cycles.finish(cycle, 0.0)
        if self.rows[cycle].kind == "cycle":
            for visits in recorded_visits(self.open, self.policy, self.rows[cycle], self.pasts[cycle]):
                note(self.policy, *visits)
            save_memory(self.open, self.policy, self.pasts[cycle])

    def check(self) -> None:
        """Folded from where it was saved, or from the first visit: the same."""
        row = row_now(self.open, 1e6)
        right = ready_book(self.open, self.policy, row, {}, begin=False)[0].memory
        file = file_of(self.open, self.policy)
        aside = file.rename(file.with_suffix(".aside")) if file.exists() else None
        anew = ready_book(self.open, self.policy, row, {}, begin=False)[0].memory
        assert anew.keys() == right.keys()
        for name, column in right.items():
            np.testing.assert_array_equal(anew[name], column, err_msg=name)
        if aside:
            aside.rename(file)


@settings(max_examples=30, deadline=None)
@example(seed=1, steps=list("xcfx"))  # the crawl goes on after a cycle that made no visits
@example(seed=1, steps=list("cvxfx"))  # ... and after one that ended later than the crawl was stopped
@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from("cvvfxn"), max_size=25))
def test_however_crawls_and_cycles_are_cut_the_memory_is_the_same(seed: int, steps: list[str]) -> None:
    """c: the cycle begins or goes on, v: some visits, f: it ends; x: the crawl begins or goes on, n: it ends."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(Path(folder) / "repo", seed)
        script.visit(script.begin("crawl"), 6)
        cycle = crawl = -1
        begun: dict[str, np.ndarray] = {}
        for step in steps:
            if step == "c":
                new = cycle < 0
                cycle = script.begin("cycle") if new else cycle
                memory = script.choose(cycle)
                if not new:
                    same(memory, begun)
                begun = memory
            elif step == "v" and cycle >= 0:
                script.choose(cycle)
                script.visit(cycle, 1 + int(script.rng.integers(3)))
            elif step == "f" and cycle >= 0:
                script.finish(cycle)
                cycle = -1
            elif step == "x":
                crawl = script.begin("crawl") if crawl < 0 else crawl
                script.visit(crawl, 1 + int(script.rng.integers(2)))
            elif step == "n" and crawl >= 0:
                script.finish(crawl)
                crawl = -1
            script.check()
        script.open.close()


def test_held_off_visits_are_not_noted_as_failures(tmp_path: Path) -> None:
    """Nobody asked for the page: that it was to be visited is noted, but no mark is made against it."""
    new, failed = Outcome.NEW, Outcome.FAILED
    script = Script(tmp_path / "repo", 1)
    script.write(script.begin("crawl"), [(0, new, None), (1, new, None), (2, new, None)])
    cycle = script.begin("cycle")
    script.choose(cycle)
    script.write(cycle, [(0, failed, "timeout"), (1, failed, "held-off"), (2, failed, "robots-unreachable")])
    script.finish(cycle)
    then = script.begin("cycle")
    book, past = ready_book(script.open, script.policy, script.rows[then], {}, begin=False)
    assert past is not None
    for known in (book, past.book):  # as the store has it, and as the fold over the visits left it
        assert known.failures.tolist() == [1, 0, 0]
        assert known.visits.tolist() == [1, 1, 1]
        assert known.last_try.tolist() == [1003.0, 1004.0, 1005.0]
        assert known.last_visit.tolist() == [0.0, 1.0, 2.0]
    assert book.known.tolist() == [False, True, True], "only the page that failed is left alone for a while"
    script.check()
    script.open.close()


# -- what policies need ------------------------------------------------------------------------------------------


def test_the_directories_are_those_of_the_addresses(bench: Bench, crawled: Path) -> None:
    with Storage(crawled) as open_one:
        book = load_book(open_one.store, row_now(open_one, bench.clock.now()), {})
        add_folders(book, open_one.store)
        _, _, folder, folders = places(list(open_one.store.pages.urls()))
    np.testing.assert_array_equal(book.folder, folder)
    assert book.folders is not None
    np.testing.assert_array_equal(book.folders.parent, folders.parent)
    np.testing.assert_array_equal(book.folders.level, folders.level)
    assert folders.level.max() > 0


@pytest.mark.parametrize("file", ["none", "of the first pages", "of other pages", "of another version"])
def test_url_templates_are_those_of_the_urls_whatever_file_is_there(
    bench: Bench, crawled: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = image(crawled, tmp_path / "repo")
    read: list[int] = []
    with Storage(folder) as open_one:
        row, policy = row_now(open_one, bench.clock.now()), make_policy("shock")
        urls = list(open_one.store.pages.urls())
        kept = folder / "models" / "url-templates.npz"
        ready_book(open_one, policy, row, {}, begin=True)
        whole = read_arrays(kept)
        assert whole is not None
        some = len(urls) // 2
        wrong = {"form": np.zeros(some, np.int64), "index": np.ones(some, bool)}
        if file == "none":
            kept.unlink()
        elif file == "of the first pages":
            write_arrays(
                kept,
                {
                    "mark": np.array([__version__, urls[some - 1]]),
                    "form": whole["form"][:some],
                    "index": whole["index"][:some],
                },
            )
        elif file == "of other pages":
            write_arrays(kept, {"mark": np.array([__version__, "https://other.example/"]), **wrong})
        else:
            write_arrays(kept, {"mark": np.array(["0.0.0", urls[some - 1]]), **wrong})
        every = SqlPages.urls

        def counted(pages: SqlPages, one_in: int = 1, first: int = 0) -> Iterator[str]:
            read.append(first)
            return every(pages, one_in, first)

        monkeypatch.setattr(SqlPages, "urls", counted)
        book, _ = ready_book(open_one, policy, row, {}, begin=True)
        ready_book(open_one, policy, row, {}, begin=True)
    assert book.form is not None
    assert book.index is not None
    np.testing.assert_array_equal(book.form, url_templates(urls))
    np.testing.assert_array_equal(book.index, index_pages(urls))
    assert read == [some if file == "of the first pages" else 0]  # the second time the file is enough


def test_links_are_those_of_the_newest_versions(bench: Bench, crawled: Path) -> None:
    with Storage(crawled) as open_one:
        row = row_now(open_one, bench.clock.now())
        book, _ = ready_book(open_one, make_policy("wary"), row, {}, begin=False)
    assert book.links is not None
    assert len(book.links) == len(book)
    packed = dict(ask(crawled, "SELECT page, targets FROM links"))
    assert any(packed.values())
    for page in range(len(book)):
        assert book.links.of(page).tolist() == np.frombuffer(packed.get(page, b""), "<i4").tolist()


def test_what_a_repository_does_not_have_is_refused_before_the_cycle_begins(
    bench: Bench, crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = image(crawled, tmp_path / "repo")
    monkeypatch.setattr(Wary, "needs", frozenset({"links", "weather"}))
    with pytest.raises(UsageError, match="needs weather"):
        bench.cycle(folder, "wary", 5)
    assert ask(folder, "SELECT count(*) FROM cycles WHERE finished IS NULL") == [(0,)]


def test_a_book_of_no_pages(tmp_path: Path, bench: Bench) -> None:
    folder = bench.create(tmp_path / "repo")
    with Storage(folder) as open_one:
        row = row_now(open_one, 0.0)
        book, past = ready_book(open_one, make_policy("wary"), row, {}, begin=False)
    assert len(book) == 0
    assert past is not None
    assert book.memory == {}
