"""The store: rows come back as they went in, a commit is all or nothing, columns say what rows say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import RefusedRows
from recrawl.model import Outcome, State
from recrawl.record.rows import Batch, CycleRow, HintRow, NewPage, PageState, SiteRow, VersionRow, VisitRow, unvisited
from recrawl.record.store import SqliteStore
from recrawl.record.store.postgres.adapters import clean
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import parse
from recrawl.record.store.sql import base
from tests.crashes import site_row
from tests.stores import table_names

integers = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**31 - 1)
reals = st.floats(allow_nan=False)
times = st.floats(-1e12, 1e12)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
blobs = st.binary(max_size=20)
maybe_time = st.none() | times


def rows(kind: Any, **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Rows of a kind; columns that are not named are counts."""
    return st.builds(kind, **{name: columns.get(name, counts) for name in kind._fields})


states = rows(
    PageState,
    state=st.sampled_from([int(state) for state in State]),
    version=st.integers(-1, 5),
    version_at=times,
    target=st.integers(-1, 5),
    last_try=maybe_time,
    last_visit=maybe_time,
    last_change=maybe_time,
    missing_since=times,
    payload=st.none() | blobs,
    digest=st.none() | blobs,
    noise=st.none() | blobs,
    etag=texts,
    modified=texts,
    counters=st.none() | blobs,
    archived_url=texts,
    prior=st.none() | reals,
    sketch=st.none() | blobs,
    same_as=st.none() | counts,
    id=st.just(0),
)
versions = rows(
    VersionRow,
    at=times,
    divergence=st.none() | reals,
    significant=st.none() | st.booleans().map(int),
    payload=blobs,
    digest=blobs,
    title=texts,
    mime=texts,
    encoding=texts,
    language=texts,
    description=texts,
    image=texts,
)
visits = rows(
    VisitRow,
    at=times,
    outcome=st.sampled_from([int(outcome) for outcome in Outcome]),
    seconds=times,
    version=st.integers(-1, 5),
    score=st.none() | reals,
    why=st.none() | counts,
    failure=st.none() | texts,
    detail=st.none() | texts,
)
_KINDS: dict[type, st.SearchStrategy[Any]] = {int: counts, float: times, str: texts, bytes: blobs}
sites = rows(SiteRow, **{name: _KINDS[kind] for name, kind in get_type_hints(SiteRow).items()})


AnyStore = SqliteStore | PostgresStore
Fresh = Callable[[], AbstractContextManager[AnyStore]]
TABLES = table_names()


@pytest.fixture(scope="session")
def postgres_store(postgres_url: str) -> Iterator[PostgresStore]:
    """One store for all tests, because it takes a while to make; `fresh` empties it."""
    with closing(PostgresStore(parse(f"{postgres_url}?schema=store_tests"), create=True)) as made:
        yield made


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest) -> Fresh:
    """Gives an empty store, for many small examples."""
    if request.param == "sqlite":
        return lambda: closing(SqliteStore(Path(":memory:"), create=True))
    made: PostgresStore = request.getfixturevalue("postgres_store")

    def emptied() -> AbstractContextManager[AnyStore]:
        with made.transaction():  # on a new connection if another test has restarted the server
            made.db.run("; ".join(f"DELETE FROM {table}" for table in TABLES))
        return nullcontext(made)

    return emptied


@pytest.fixture
def store(fresh: Fresh) -> Iterator[AnyStore]:
    with fresh() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[AnyStore, AnyStore]]:
    """Two connections to one empty store; the second one reads."""
    if request.param == "sqlite":
        path = tmp_path / "recrawl.db"
        with closing(SqliteStore(path, create=True)) as writer, closing(SqliteStore(path)) as reader:
            yield writer, reader
        return
    target = parse(f"{request.getfixturevalue('postgres_url')}?schema=two_connections")
    with closing(PostgresStore(target, create=True)) as first, closing(PostgresStore(target, shared=True)) as second:
        yield first, second
        first.db.run("DROP SCHEMA two_connections CASCADE")


def contents(store: AnyStore) -> dict[str, list[str]]:
    """Every row of every table."""
    return {table: sorted(map(repr, store.db.execute(f"SELECT * FROM {table}"))) for table in TABLES}


SITE = site_row(0, "https://a.example")


def new_page(number: int, *, site: int = 0, cycle: int = 0, state: int = 0, listed: int = 0) -> NewPage:
    url = f"https://a.example/{number}"
    return NewPage(number, number * 7919 - 5, site, number // 10, 1, -1, 100.0 + number, cycle, state, listed, url)


def visit(number: int, page: int, *, cycle: int = 0, outcome: Outcome = Outcome.UNCHANGED, at: float = 0.0) -> VisitRow:
    return VisitRow(number, page, cycle, at or float(number), int(outcome), 200, 10, 0.1, -1, None, None, None, None)


# -- round trips -------------------------------------------------------------------------------------------


@given(states)
def test_a_pages_state_comes_back(fresh: Fresh, state: PageState) -> None:
    with fresh() as store:
        store.commit(Batch(pages=[new_page(0)], states=[state]), [])
        url, site, depth, listed, back = store.pages.get(0)
        assert (url, site, depth, listed) == ("https://a.example/0", 0, 1, 0)
        assert back == state


@given(versions)
def test_a_version_comes_back(fresh: Fresh, version: VersionRow) -> None:
    with fresh() as store:
        store.commit(Batch(versions=[version]), [])
        assert store.versions.get(version.id) == version
        assert store.versions.get(version.id + 1) is None
        assert store.versions.of_page(version.page) == [version]


@given(visits)
def test_a_visit_comes_back(fresh: Fresh, row: VisitRow) -> None:
    with fresh() as store:
        store.commit(Batch(visits=[row]), [])
        assert VisitRow._make(store.db.execute(f"SELECT {', '.join(VisitRow._fields)} FROM visits").fetchone()) == row


@given(st.lists(sites, max_size=5, unique_by=(lambda row: row.id, lambda row: row.origin)))
def test_sites_come_back_by_number_and_can_be_replaced(fresh: Fresh, made: list[SiteRow]) -> None:
    with fresh() as store:
        store.commit(Batch(sites=made), [])
        changed = [row._replace(habits="other", lm_good=3) for row in made]
        assert store.sites.all() == sorted(made)
        store.commit(Batch(sites=changed), [])
        assert store.sites.all() == sorted(changed)


@given(st.lists(st.integers(-3, 12)))
def test_pages_are_looked_up_together_as_alone(fresh: Fresh, wanted: list[int]) -> None:
    with fresh() as store:
        store.commit(Batch(pages=[new_page(n, site=n % 3) for n in range(10)]), [])
        known = {n for n in wanted if 0 <= n < 10}
        assert store.pages.get_many(wanted) == {n: store.pages.get(n) for n in known}
        assert store.pages.sites_of(wanted) == {n: n % 3 for n in known}


def test_a_version_is_found_by_page_and_time(store: AnyStore) -> None:
    made = [
        VersionRow(n, n // 2, 100.0 + n, 1, None, None, 0, 1, 9, 0, 0, 0, b"", b"", "", "text/html", "utf-8")
        for n in range(4)
    ]
    store.commit(Batch(versions=made), [])
    assert [store.versions.at(row.page, row.at) for row in made] == made
    assert store.versions.at(0, 102.0) is None


def test_a_page_that_was_only_found_is_unvisited(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(0)]), [])
    assert store.pages.get(0)[4] == unvisited(0)


def test_cycles_come_newest_first(store: AnyStore) -> None:
    made = [CycleRow(n, "cycle", "random", 10, 2**62 + n, float(n), None, n * 10, 5) for n in range(3)]
    for row in made:
        store.cycles.begin(row)
    store.cycles.finish(1, 9.5)
    assert store.cycles.newest() == [made[2], made[1]._replace(finished=9.5), made[0]]
    assert store.cycles.newest(limit=1) == [made[2]]


@given(st.one_of(st.integers(-(2**53), 2**53), reals, texts))
def test_a_single_value_comes_back(fresh: Fresh, value: float | str) -> None:
    with fresh() as store:
        assert store.meta.get("x", "nothing") == "nothing"
        store.meta.set("x", "before")
        store.meta.set("x", value)
        assert store.meta.get("x", None) == value


def test_a_nul_in_a_text_is_replaced_where_the_store_cannot_hold_it(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(0)], states=[unvisited(0)._replace(etag="a\0b")]), [])
    store.meta.set("x", "a\0b")
    expected = clean("a\0b") if isinstance(store, PostgresStore) else "a\0b"
    assert store.pages.get(0).state.etag == expected
    assert store.meta.get("x", None) == "a\0b"


def test_a_reason_is_stored_once(store: AnyStore) -> None:
    assert store.visits.reason("has waited") != store.visits.reason("was due")
    assert store.visits.reason("has waited") == store.visits.reason("has waited")
    assert store.db.execute("SELECT count(*) FROM reasons").fetchone() == (2,)


def test_links_hints_and_archive_files_are_replaced(store: AnyStore) -> None:
    for targets, seen, length in ((b"\1\0\0\0", 1.0, 100), (b"", 2.0, 200)):
        batch = Batch(links=[(0, targets)], hints=[HintRow(0, "lastmod", seen, 5.0, 1)])
        store.commit(batch, [(0, "a.warc.gz", length)])
    assert store.db.execute("SELECT page, targets FROM links").fetchall() == [(0, b"")]
    assert store.db.execute("SELECT page, kind, seen, value, signals FROM hints").fetchall() == [
        (0, "lastmod", 2.0, 5.0, 2)
    ]
    store.warcs.set_stored([0])
    store.commit(Batch(), [(0, "a.warc.gz", 300)])
    assert store.db.execute("SELECT id, name, length, stored FROM warcs").fetchall() == [(0, "a.warc.gz", 300, 1)]


# -- all or nothing ----------------------------------------------------------------------------------------


def test_a_commit_that_fails_leaves_everything_as_it_was(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(0)], visits=[visit(0, 0)]), [(0, "a.warc.gz", 10)])
    before = contents(store)
    batch = Batch(
        pages=[new_page(1)],
        visits=[visit(1, 1)],
        states=[unvisited(0)._replace(visits=9)],
        sites=[site_row(0, "https://a.example")],
        links=[(0, None)],  # type: ignore[list-item]
    )
    assert "null" in store.refusal(batch).lower()
    with pytest.raises(RefusedRows):
        store.commit(batch, [(0, "a.warc.gz", 999)])
    assert contents(store) == before
    store.commit(Batch(pages=[new_page(1)]), [])
    assert store.next_id("pages") == 2


def test_what_is_committed_is_there_for_others_at_once(two: tuple[AnyStore, AnyStore]) -> None:
    writer, reader = two
    assert reader.next_id("pages") == 0
    writer.commit(Batch(pages=[new_page(0)]), [])
    assert reader.next_id("pages") == 1


def test_a_reader_is_not_held_up_by_a_writer(two: tuple[AnyStore, AnyStore]) -> None:
    writer, reader = two
    with writer.transaction():
        writer.meta.set("x", 1)
        assert reader.meta.get("x", "nothing") == "nothing"
    assert reader.meta.get("x", "nothing") == 1


# -- columns -------------------------------------------------------------------------------------------------


def test_the_books_columns_are_in_the_order_of_page_numbers(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(2), new_page(0, cycle=3), new_page(1, state=1)]), [])
    store.commit(Batch(states=[unvisited(1)._replace(state=1, visits=4, changes=2, last_visit=7.5, size=2**40)]), [])
    columns = store.pages.book_columns()
    assert columns["found"].tolist() == [100.0, 101.0, 102.0]
    assert columns["cycle"].tolist() == [3, 0, 0]
    assert columns["state"].tolist() == [0, 1, 0]
    assert columns["visits"].tolist() == [0, 4, 0]
    assert columns["last_visit"].tolist() == [-math.inf, 7.5, -math.inf]
    assert columns["last_try"].tolist() == [-math.inf] * 3
    assert columns["size"].tolist() == [0, 2**40, 0]
    assert len({column.dtype.kind for column in columns.values()} - set("if")) == 0


def test_an_empty_store_has_empty_columns(store: AnyStore) -> None:
    assert {len(column) for column in store.pages.book_columns().values()} == {0}
    keys, pages = store.pages.keys()
    assert len(keys) == len(pages) == 0
    assert store.next_id("visits") == 0


@given(st.lists(integers, max_size=20, unique=True))
def test_keys_lead_to_their_pages(fresh: Fresh, keys: list[int]) -> None:
    with fresh() as store:
        store.commit(Batch(pages=[new_page(n)._replace(key=key) for n, key in enumerate(keys)]), [])
        got, pages = store.pages.keys()
        assert dict(zip(got.tolist(), pages.tolist(), strict=True)) == {key: n for n, key in enumerate(keys)}


def test_only_pages_that_were_found_and_nothing_more_are_waiting(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(n, state=n % 7, site=n) for n in range(9)]), [])
    assert store.pages.never_downloaded()["id"].tolist() == [0, 7]
    assert store.pages.never_downloaded()["site"].tolist() == [0, 7]


def test_visits_of_a_cycle_come_in_the_order_in_which_they_were_recorded(store: AnyStore) -> None:
    made = [visit(0, 5), visit(1, 3, cycle=1), visit(2, 4, cycle=2), visit(3, 1, cycle=1, outcome=Outcome.FAILED)]
    store.commit(Batch(visits=made), [])
    cycle = CycleRow(1, "cycle", "random", 10, 1, 0.0, None, 1, 5)
    assert store.visits.of_cycle(cycle)["page"].tolist() == [3, 1]
    assert store.visits.of_cycle(cycle)["outcome"].tolist() == [Outcome.UNCHANGED, Outcome.FAILED]
    assert sorted(store.visits.pages_since(1).tolist()) == [1, 3, 4]


@given(st.lists(st.integers(0, 4), max_size=20), st.sets(st.integers(0, 5)), st.integers(0, 25))
def test_a_history_holds_the_visits_of_its_pages_up_to_a_point(
    fresh: Fresh, pages: list[int], wanted: set[int], end: int
) -> None:
    with fresh() as store:
        store.commit(Batch(visits=[visit(n, page, at=float(n)) for n, page in enumerate(pages)]), [])
        for _ in range(2):  # it keeps nothing from one call to the next
            past = store.visits.history(np.array(sorted(wanted), np.int64), end)
            expected = [(page, float(n)) for n, page in enumerate(pages) if page in wanted and n < end]
            assert list(zip(past["page"].tolist(), past["at"].tolist(), strict=True)) == expected


# -- states without a visit ----------------------------------------------------------------------------------


def test_pages_that_are_gone_get_another_look_when_the_sitemap_names_them(store: AnyStore) -> None:
    gone, live = int(State.GONE), int(State.LIVE)
    store.commit(Batch(sites=[SITE], pages=[new_page(n, state=s) for n, s in enumerate([gone, gone, live])]), [])
    store.commit(Batch(states=[unvisited(n)._replace(state=gone, misses=2, missing_since=5.0) for n in (0, 1)]), [])
    store.commit(Batch(listed=[(1, 0), (2, 1), (1, 2)]), [])
    store.pages.revive(0.0)
    back = [store.pages.get(n)[4] for n in range(3)]
    assert [state.state for state in back] == [State.MISSING, State.GONE, State.LIVE]
    assert (back[0].misses, back[0].missing_since) == (0, 0)
    assert (back[1].misses, back[1].missing_since) == (2, 5.0)
    assert store.pages.listed(0) == {0, 2}


def test_pages_that_moved_long_ago_get_another_look(store: AnyStore) -> None:
    moved = int(State.MOVED)
    store.commit(Batch(sites=[SITE], pages=[new_page(n, state=moved) for n in range(3)]), [])
    times = [(0, 5.0, 3), (1, 5.0, -1), (2, 50.0, 3)]
    store.commit(
        Batch(states=[unvisited(n)._replace(state=moved, last_try=at, version=had) for n, at, had in times]), []
    )
    store.pages.revive(moved_before=10.0)
    assert store.pages.book_columns()["state"].tolist() == [State.MISSING, State.FOUND, State.MOVED]


def test_pages_in_rare_states_are_found_on_all_sites(store: AnyStore) -> None:
    sites = [SITE._replace(id=n, origin=f"https://{n}.example") for n in range(3)]
    states = [State.LIVE, State.GONE, State.BARRED, State.MOVED]
    store.commit(Batch(sites=sites, pages=[new_page(n, site=n % 3, state=int(states[n % 4])) for n in range(12)]), [])
    assert store.pages.absent()["id"].tolist() == [1, 3, 5, 7, 9, 11]
    assert {site: [page for page, *_ in rows] for site, rows in store.pages.barred().items()} == {
        2: [2],
        0: [6],
        1: [10],
    }
    assert [row.id for row in store.pages.scope_rows([1])] == [1, 4, 7, 10]
    assert len(list(store.pages.scope_rows())) == 12


def test_states_are_set_for_the_pages_named(store: AnyStore) -> None:
    store.commit(Batch(pages=[new_page(n) for n in range(3)]), [])
    store.pages.set_states(int(State.DROPPED), [0, 2])
    assert store.pages.book_columns()["state"].tolist() == [State.DROPPED, State.FOUND, State.DROPPED]


def test_a_scan_of_all_pages_uses_little_cache_and_reads_and_writes_as_ever(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "recrawl.db", create=True)

    def cache() -> int:
        return int(store.db.execute("PRAGMA cache_size").fetchone()[0])  # kibibytes, as a negative number

    before = cache()
    with store.scan():
        assert before < cache() < 0
        store.meta.set("a", "1")
        assert store.meta.get("a", "") == "1"
    assert cache() == before
    store.close()


def test_columns_of_more_rows_than_a_block_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_BLOCK_ROWS", 3)
    store = SqliteStore(tmp_path / "recrawl.db", create=True)
    for rows in (0, 2, 3, 7):
        sql = f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x / 2.0 FROM n LIMIT {rows}"
        found = base.SqlTable(store.db)._columns(sql, {"x": "i4", "half": "f8"})
        assert found["x"].tolist() == list(range(1, rows + 1))
        assert found["half"].dtype == np.float64
        assert found["half"].flags.c_contiguous
    store.close()


# -- copies --------------------------------------------------------------------------------------------------


def test_copies_are_set_and_found_in_both_directions(store: AnyStore) -> None:
    shown: dict[str, Any] = {"state": int(State.LIVE), "version": 0, "digest": b"d" * 16, "sketch": b"s" * 16}
    pages = [new_page(number) for number in range(3)]
    states = [unvisited(page.id)._replace(**shown, claim=pages[0].key) for page in pages]
    store.commit(Batch(pages=pages, states=states, visits=[visit(n, n, outcome=Outcome.NEW) for n in range(3)]), [])
    assert not store.pages.has_copies()
    store.pages.set_copies([(1, pages[0].key), (2, 0)])
    assert store.pages.has_copies()
    assert [column.tolist() for column in store.pages.representatives()] == [[1], [pages[0].key]]
    assert store.pages.representative_of([0, 1, 2]) == {1: 0}
    assert store.pages.copies_of([0, 1, 2]) == {0: [pages[1].url]}
    assert store.pages.groups("", 9) == [{"id": 0, "url": pages[0].url, "copies": 1}]
    assert store.pages.groups_of(page.key for page in pages) == {
        pages[0].key: pages[0].key,
        pages[1].key: pages[0].key,
        pages[2].key: pages[2].key,
    }
    columns = store.pages.copy_columns()
    assert columns["same_as"].tolist() == [0, pages[0].key, 0]
    assert (columns["digest"].tolist(), columns["sketch"].tolist()) == ([b"d" * 16] * 3, [b"s" * 16] * 3)
    assert columns["stored"].all()
    assert columns["length"].tolist() == [len(page.url) for page in pages]


def test_what_a_copy_shows_is_not_told(store: AnyStore) -> None:
    store.commit(
        Batch(
            pages=[new_page(number) for number in range(3)],
            sites=[SITE],
            visits=[visit(number, number, outcome=Outcome.NEW) for number in range(3)],
        ),
        [],
    )
    store.visits.tell_once(0, [1, 2], [])
    store.visits.tell_once(0, [], [2])
    assert [row["id"] for row in store.listings.changes_after(-1, "", 9)] == [0, 2]
    assert [row["copy"] for row in store.visits.after(-1, 9)] == [0, 1, 0]
    assert store.listings.deliveries(-1, "") == 2


def test_pages_of_earlier_versions_are_listed_until_they_are_read(store: AnyStore) -> None:
    live = [unvisited(number)._replace(state=int(State.LIVE), version=7) for number in range(2)]
    store.commit(Batch(pages=[new_page(0), new_page(1)], sites=[SITE], states=live), [])
    assert store.pages.unsketched(9) == [(0, 7), (1, 7)]
    store.pages.set_sketches([(b"", 5, 0)])
    assert store.pages.unsketched(9) == [(1, 7)]
    assert store.pages.get(0).state.claim == 5
    assert list(store.pages.with_query()) == []
