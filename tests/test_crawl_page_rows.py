"""The columns of pages that are kept in a file: always those of the store, whatever has happened since."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.reports import figures
from recrawl.crawl.reports.figures import summary_columns
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.model import Outcome, State
from recrawl.record.rows import Batch, CycleRow, NewPage, VisitRow, unvisited
from recrawl.record.storage import Storage, create
from recrawl.record.store.sql.tables import page_states
from recrawl.record.store.sql.tables.pages import SqlPages
from recrawl.settings import TEMPLATE
from tests.crashes import site_row

PAGES = 200
FILE = Path("models/page-rows.npz")


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """A repository whose file is written from the first page on."""
    monkeypatch.setattr(figures, "_MIN_PAGES", 1)
    monkeypatch.setattr(figures, "_SHARE", 4)
    create(tmp_path / "repository", TEMPLATE)
    with Storage(tmp_path / "repository") as storage:
        add(storage, PAGES)
        summary_columns(storage)
        yield storage


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many rows each reading from the store asked for, None for all."""
    asked: list[int | None] = []
    columns = SqlPages.summary_columns

    def counted(pages: SqlPages, some: list[int] | None = None) -> dict[str, np.ndarray]:
        asked.append(None if some is None else len(some))
        return columns(pages, some)

    monkeypatch.setattr(SqlPages, "summary_columns", counted)
    return asked


def add(storage: Storage, count: int, found: float = 5.0) -> None:
    first = storage.store.next_id("pages")
    rows = [
        NewPage(n, n, n % 2, 0, 1, -1, found + n, 0, int(State.LIVE), 0, f"x:{n}") for n in range(first, first + count)
    ]
    storage.store.commit(Batch(sites=[site_row(n, f"https://{n}.example") for n in (0, 1)], pages=rows), [])


def visit(storage: Storage, *pages: int, state: State = State.LIVE, at: float = 50.0, failed: bool = False) -> None:
    first, batch = storage.store.next_id("visits"), Batch()
    for number, page in enumerate(pages, first):
        outcome = Outcome.FAILED if failed else Outcome.CHANGED
        failure = "timeout" if failed else None
        batch.visits.append(VisitRow(number, page, 1, at, int(outcome), 200, 10, 0.1, -1, None, None, failure, None))
        seen = unvisited(page)._replace(state=int(state), visits=3, changes=2, failures=int(failed), size=77)
        batch.states.append(seen._replace(last_try=at, last_visit=at, last_change=at))
    storage.store.commit(batch, [])


def check(storage: Storage) -> None:
    expected, got = storage.store.pages.summary_columns(), summary_columns(storage)
    assert list(got) == list(expected)
    for name, column in expected.items():
        np.testing.assert_array_equal(got[name], column)
        assert got[name].dtype == column.dtype


CYCLE = CycleRow(1, "cycle", "random", 10, 1, 0.0, None, 0, PAGES)


def forgive(storage: Storage) -> None:
    visit(storage, *range(0, 60, 2), failed=True)
    summary_columns(storage)
    storage.store.cycles.begin(CYCLE._replace(first_visit=storage.store.next_id("visits")))
    visit(storage, 0)
    storage.store.pages.forgive(CYCLE._replace(first_visit=storage.store.next_id("visits") - 1))
    assert storage.store.pages.get(8).state.failures == 0


def revive(storage: Storage) -> None:
    visit(storage, 3, 4, 5, state=State.GONE)
    storage.store.commit(Batch(listed=[(1, 3)]), [])
    visit(storage, 6, state=State.MOVED)
    summary_columns(storage)
    storage.store.pages.revive(moved_before=60.0)
    assert storage.store.pages.get(3).state.state == State.MISSING
    assert storage.store.pages.get(6).state.state == State.FOUND


def recall(storage: Storage) -> None:
    visit(storage, 3, 4, state=State.GONE)
    summary_columns(storage)
    storage.store.pages.recall([3])


def check_now(storage: Storage) -> None:
    visit(storage, 3, 4, state=State.GONE, failed=True)
    summary_columns(storage)
    storage.store.pages.check_now([3])


CHANGES: dict[str, Callable[[Storage], None]] = {
    "nothing": lambda _: None,
    "pages were found": lambda storage: add(storage, 7),
    "pages were visited": lambda storage: visit(storage, 3, 8, PAGES - 1),
    "pages were dropped": lambda storage: storage.store.pages.set_states(State.DROPPED, [1, 2, 9]),
    "pages came back": revive,
    "pages were recalled": recall,
    "pages are checked now": check_now,
    "a back-off was ended": forgive,
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_those_of_the_store(storage: Storage, read: list[int | None], change: str) -> None:
    CHANGES[change](storage)
    read.clear()
    check(storage)
    assert None not in read[1:]  # the first is that of the check
    check(storage)


def test_many_changes_make_a_new_file(storage: Storage, read: list[int | None]) -> None:
    visit(storage, *range(PAGES // 4 + 1))
    check(storage)
    assert read == [None, 1, None]
    read.clear()
    check(storage)
    assert read == [None, 1, 0]


def test_more_changes_than_a_list_holds(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_states, "_MAX_TOUCHED", 5)
    for page in range(0, 30, 2):
        storage.store.pages.set_states(State.DROPPED, [page])
        if page % 4:
            check(storage)
    check(storage)


def test_a_repair_makes_the_file_useless(storage: Storage) -> None:
    visit(storage, 3)  # which says that there were three visits
    check(storage)
    storage.store.checks.repair()
    assert storage.store.pages.get(3).state.visits == 1
    check(storage)


@pytest.mark.parametrize("file", ["damaged", "of another version", "of another list", "with columns missing"])
def test_a_file_that_does_not_fit_is_not_used(storage: Storage, file: str) -> None:
    path = storage.folder / FILE
    kept = read_arrays(path)
    assert kept is not None
    wrong = {**kept, "visits": kept["visits"] + 1}
    if file == "damaged":
        path.write_bytes(path.read_bytes()[:-100])
    elif file == "of another version":
        write_arrays(path, {**wrong, "version": np.array("0.0.0")})
    elif file == "of another list":
        write_arrays(path, {**wrong, "touched": np.array(77)})
    else:
        write_arrays(path, {name: wrong[name] for name in ("version", "touched", "upto", "last")})
    check(storage)


@pytest.mark.parametrize("later", ["fewer visits", "other visits", "other pages"])
def test_the_file_is_newer_than_a_restored_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str) -> None:
    monkeypatch.setattr(figures, "_MIN_PAGES", 1)
    monkeypatch.setattr(figures, "_SHARE", 1)
    folder = tmp_path / "repository"
    create(folder, TEMPLATE)
    with Storage(folder) as storage:
        add(storage, PAGES)
        summary_columns(storage)
    shutil.copy(folder / "recrawl.db", tmp_path / "backup")
    with Storage(folder) as storage:
        add(storage, 5)
        visit(storage, 3, 4)
        (storage.folder / FILE).unlink()
        summary_columns(storage)
    shutil.copy(tmp_path / "backup", folder / "recrawl.db")
    with Storage(folder) as storage:
        storage.store.pages.begin_touched(2)  # the number of the file's list, by chance
        if later != "fewer visits":
            add(storage, 9, found=5.0 if later == "other visits" else 9.0)
            visit(storage, 7, 8, 9, at=60.0 if later == "other visits" else 50.0)
        check(storage)


def test_small_repositories_have_no_file(tmp_path: Path) -> None:
    create(tmp_path / "repository", TEMPLATE)
    with Storage(tmp_path / "repository") as storage:
        add(storage, PAGES)
        check(storage)
        storage.store.pages.set_states(State.DROPPED, [1])
        assert storage.store.pages.touched() == (0, [])
    assert not (tmp_path / "repository" / FILE).exists()
