"""Rows that are looked up before it is their turn: the same rows, with fewer questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recrawl.crawl.visits.live import Prefetch
from recrawl.fetch.lanes import Lanes
from recrawl.record.rows import Batch, NewPage
from recrawl.record.store import SqliteStore

_PAGES = 250


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with closing(SqliteStore(Path(":memory:"), create=True)) as made:
        pages = [NewPage(n, n, n % 2, 0, 0, -1, 0.0, 0, 0, 0, f"https://a.example/{n}") for n in range(_PAGES)]
        made.commit(Batch(pages=pages), [])
        yield made


@pytest.mark.parametrize("order", ["breadth", "depth"])
def test_rows_come_as_the_store_has_them_and_few_questions_are_asked(store: SqliteStore, order: str) -> None:
    lanes = Lanes(delay=0.0, order=order)  # type: ignore[arg-type]
    for page in range(_PAGES):
        lanes.push(page % 2, page)
    ahead = Prefetch(store, lanes, lambda: 0.0)
    expected = {page: store.pages.get(page) for page in range(_PAGES)}
    asked: list[str] = []
    store.db.set_trace_callback(asked.append)
    taken = {}
    while (turn := lanes.pop(0.0)) is not None:
        server, page = turn
        taken[page] = ahead.take(page, server)
        lanes.done(server, 0.0, status=200)
    store.db.set_trace_callback(None)
    assert taken == {page: (row, 0) for page, row in expected.items()}
    assert len(asked) == 8  # two servers of 125 pages each, rows and hints


def test_what_was_looked_up_can_be_forgotten(store: SqliteStore) -> None:
    lanes = Lanes(delay=0.0)
    lanes.push(0, 2)
    ahead = Prefetch(store, lanes, lambda: 0.0)
    assert ahead.take(0, 0)[0][3] == 0
    store.commit(Batch(listed=[(1, 2)]), [])
    ahead.forget()
    assert ahead.take(2, 0)[0][3] == 1


def test_a_page_that_no_lane_knows_is_looked_up_alone(store: SqliteStore) -> None:
    assert Prefetch(store, Lanes(delay=0.0), lambda: 0.0).take(7, 1) == (store.pages.get(7), 0)
