"""The store in PostgreSQL: the same answers as SQLite, and what becomes of it when the server is cut off."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.errors import RefusedRows, RepositoryError, StorageFailure, UsageError
from recrawl.model import Failure, Outcome, State
from recrawl.record.rows import (
    Batch,
    CycleRow,
    FeedRow,
    HintRow,
    HostRow,
    NewPage,
    OutboxRow,
    OutboxState,
    PushRow,
    RequisiteBatch,
    RequisiteRow,
    RequisiteVersion,
    ScreenshotRow,
    SourceRow,
    VersionRow,
    VisitRow,
    unvisited,
)
from recrawl.record.store import SqliteStore
from recrawl.record.store.postgres import connection
from recrawl.record.store.postgres.store import PostgresStore, is_taken
from recrawl.record.store.postgres.target import PostgresTarget, parse
from recrawl.record.store.reports import StreamPlace, UpdateFilter
from tests.crashes import site_row
from tests.receivers import restart_postgres
from tests.stores import table_columns

AnyStore = SqliteStore | PostgresStore
SITES = 3
PAGES = 12
CYCLES = [CycleRow(n, "cycle" if n else "crawl", "shock", 10, n, 100.0 * n, 100.0 * n + 90, 12 * n, 12) for n in (0, 1)]
MODIFIED = (
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "",
    "yesterday",
    "Fri, 31 Feb 2023 00:00:00 GMT",
    "Mon, 01 Foo 2020 00:00:00",
)


def page_row(n: int) -> NewPage:
    return NewPage(
        n, n * 7919 - 5, n % SITES, n // 4, n % 2, -1, 5.0, 0, n % 7, n % 3, f"https://{n % SITES}.example/{n}"
    )


def _visits() -> Iterator[VisitRow]:
    for n in range(2 * PAGES):
        page, cycle = n % PAGES, n // PAGES
        outcome = Outcome.NEW if not cycle else Outcome(n % len(Outcome))
        failure = (Failure.MISSING if n % 2 else Failure.ROBOTS) if outcome == Outcome.FAILED else None
        version = n if outcome in (Outcome.NEW, Outcome.CHANGED) else -1
        yield VisitRow(n, page, cycle, 50.0 + n, int(outcome), 304 if n % 5 == 0 else 200, 100 + n, 0.5, version,
                       n / 7, 1, failure, None, n % 2)  # fmt: skip


def fill(store: AnyStore) -> None:
    """Rows in every table."""
    visits = list(_visits())
    versions = [
        VersionRow(v.id, v.page, v.at, v.id % 2, 0.25, v.id % 2, 3, 1, 50, 0, v.id, 10, bytes([v.id]), b"d",
                   f"t{v.id}", "m", "e")
        for v in visits
        if v.version >= 0
    ]  # fmt: skip
    states = [
        unvisited(n)._replace(state=n % 7, visits=n, changes=n // 2, failures=n % 2, size=n, version=n,
                              target=(n + 1) % PAGES,
                              last_try=None if n % 4 == 0 else 10.0 + n, last_visit=n or None, last_change=40.0 + n,
                              payload=b"p", modified=MODIFIED[n % len(MODIFIED)], prior=0.5 if n % 2 else None)
        for n in range(PAGES)
    ]  # fmt: skip
    requisites = RequisiteBatch(
        rows=[
            RequisiteRow(n, n + 9, n % 2, 1, 0, None if n else 5.0, n % 2, None, n, -1, "", "", f"u{n}") for n in (0, 1)
        ],
        versions=[(RequisiteVersion(n, n, 7.0 + n, n, 5, 0, n, 4, bytes([n]), "m", "", ""), b"") for n in (0, 1)],
        pages=[(0, 1, b"\0\0\0\0")],
        hosts=[HostRow("https://cdn.example", 200, b"", 1.0, 2.0, 3.0)],
    )
    for cycle in CYCLES:
        store.cycles.begin(cycle)
    store.visits.reason("was due")
    store.commit(
        Batch(
            pages=[page_row(n) for n in range(PAGES)],
            sites=[site_row(n, f"https://{n}.example") for n in range(SITES)],
            visits=visits,
            versions=versions,
            states=[*states[:1], *states],
            links=[(n, b"\1\0\0\0") for n in range(PAGES)],
            hints=[HintRow(n, kind, 60.0, 20.0, 1) for n in range(PAGES) for kind in ("lastmod", "websub", "lastmod")],
            sources=[SourceRow(0, "lastmod", 5.0, 1, 0, ""), SourceRow(0, "lastmod", 4.0, 1, 2, "x")],
            feeds=[FeedRow(1, f"https://1.example/{name}", 5.0, "", "") for name in "ba"],
            frames=[(0, b"frame")],
            listed=[(1, 3), (2, 4), (2, 3)],
            requisites=requisites,
            screenshots=[(ScreenshotRow(0, 1, 1, 5.0, 0, 3, 4, 5, 0, 6, 7, b"shot"), b"")],
        ),
        [(0, "a.warc.gz", 100)],
    )  # fmt: skip
    _fill_small(store)


def _fill_small(store: AnyStore) -> None:
    zeros = dict.fromkeys(table_columns()["cycle_summaries"], 0)
    site = dict.fromkeys(table_columns()["site_summaries"], 2)
    for n in (0, 1):
        by_site = [{**dict.fromkeys(table_columns()["site_cycles"], 1), "site": it, "cycle": n} for it in range(SITES)]
        whole = {**zeros, "cycle": n, "visits": 12, "failures": '{"timeout": 2}', "ages": "[]", "freshness": 0.5}
        store.summaries.write(whole, by_site, [{**site, "site": it} for it in range(SITES)])
    store.marks.tag("news", 1, 1)
    store.marks.tag("news", 2, -1)
    store.marks.mark_all_read()
    store.marks.mark_read([13, 14], read=False)
    store.marks.save_filter("mine", "{}")
    store.marks.request([2, 1], 9.0)
    for row in (PushRow(1, "websub", "s", 5.0, "u"), PushRow(0, "websub", "s", 5.0, "u")):
        assert store.pushes.put(row)
        assert not store.pushes.put(row)
    assert store.pushes.taken_in_hour("s", 3) == 0
    store.pushes.add_to_hour("s", 2, 1)
    store.pushes.await_visit(1, "s", 60.0)
    for at in (5.0, 4.0):
        store.pushes.count_claim("s", "websub", at)
    store.pushes.set_score("s", 1.5, 0.5, trusted=True)
    for n, state in enumerate((OutboxState.WAITING, OutboxState.HELD)):
        store.outbox.add(OutboxRow(f"k{n}", "alert", n, state, 1, b"x", 5.0, 4.0, "{}"))
    store.subscriptions.put({"name": "n", "topic": "t", "hub": "h", "secret": "s", "callback": "c", "created": 1.0})
    store.key_proofs.put({"host": "h", "key": "k", "location": "l", "at": 5.0, "good": 1, "again": 9.0, "detail": ""})


ARGUMENTS: dict[str, Any] = {
    "page": 1,
    "pages": [0, 1, 2, 13, 5],
    "key": 7914,
    "same_as": [(1, 7914)],
    "copies": [5, 13],
    "others": [2],
    "every": 2,
    "limit": 5,
    "count": 3,
    "below": 9,
    "moved_before": 15.0,
    "cycle": CYCLES[1],
    "first": 2,
    "end": 20,
    "visit": 13,
    "before_visit": 20,
    "at": 63.0,
    "digest": b"x",
    "before": 60.0,
    "version": 13,
    "payload": b"\1",
    "name": "n",
    "origin": "https://1.example",
    "kinds": ("websub", "lastmod"),
    "kind": "lastmod",
    "hour": 3,
    "source": "s",
    "within": 100.0,
    "entry": 1,
    "now": 9.0,
    "due": 8.0,
    "host": "h",
    "location": "l",
    "since": 3.0,
    "until": 500.0,
    "after": 0,
    "cycles": 2,
    "first_visit": 12,
    "window": 6,
    "state": "live",
    "place": StreamPlace(70.0, 99),
    "wanted": UpdateFilter(path="/", divergence=0.1, tag="news", significant=True),
    "updates": 2,
    "keys": [9, 10],
    "requisites": [0, 1],
    "requisite": 0,
    "checked_before": 9.0,
    "failed_before": 9.0,
    "warc": 0,
    "topic": "t",
    "visits": 20,
    "text": "was due",
    "default": None,
    "receiver": "alert",
    "receivers": ["alert", "x'\"y"],
    "latest": 3.0,
    "parked": True,
    "sites": [0, 1],
    "site": 1,
    "offset": 1,
    "claims": [(1, "s")],
    "screenshots": [0],
    "versions": [13],
    "entries": [1],
    "tries": 2,
    "error": "e",
    "parcel": "p",
    "query": "{}",
    "right": 1.0,
    "wrong": 2.0,
    "trusted": False,
    "taken": 1,
    "refused": 1,
    "expires": 9.0,
    "read": True,
    "limits": "{}",
    "length": 5,
    "rows": [PushRow(1, "websub", "s", 5.0, "u")],
    "value": 2.5,
    "created_before": 99.0,
    "files": [0],
}
SPECIAL: dict[str, dict[str, Any]] = {
    "cycles.finish": {"cycle": 1},
    "cycles.set_limits": {"cycle": 1},
    "cycles.reopen": {"cycle": 0},
    "marks.tag": {"name": "new"},
    "marks.mark_read": {"visits": [15]},
    "outbox.release": {"due": 99.0},
    "outbox.first_of_pages": {"fewest_tries": True},
    "summaries.cycles": {"before": 9},
    "outbox.newest": {"before": 9},
    "reports.spent": {"cycle": 1},
    "reports.spent_by_site": {"cycle": 1, "limit": -1},
    "versions.before": {"version": 14},
    "key_proofs.get": {"key": "k"},
    "screenshots.with_payload": {"payload": b"shot"},
    "requisites.version": {"version": 1},
    "reports.pages_of_site": {"after": (0, 1)},
    "listings.pages_after": {"state": 1},
    "pages.set_states": {"state": 6},
    "outbox.set_failed": {"state": OutboxState.PARKED},
    "outbox.unpark": {"state": OutboxState.DROPPED},
    "versions.other_than": {"digest": b"z"},
    "pages.get": {"page": 3},
    "reports.archived": {"since": [0.0, 4.0]},
    "pages.set_sketches": {"rows": [(b"0123456789abcdef", 7, 1)]},
    "summaries.site": {"site": 2},
    "checks.mark_requisites_lost": {"versions": [1]},
    "screenshots.of_version": {"version": 1},
    "key_proofs.remove_expired": {"before": 99.0, "now": 99.0},
}
GIVEN_ROWS = {"put", "begin", "begin_touched", "add", "write", "write_sites", "integrity", "rebuild_indexes"}
"""Methods that `fill` calls, or that concern the files of one store."""


def questions() -> list[str]:
    """Every method of every table, those that write last."""
    with closing(SqliteStore(Path(":memory:"), create=True)) as store:
        tables = {
            name: it for name, it in vars(store).items() if type(it).__module__.startswith("recrawl.record.store")
        }
        del tables["db"], tables["connection"]
        del tables["erasing"]  # `recrawl erase` refuses other stores than one SQLite file
        return [f"{table}.{name}" for table, it in tables.items() for name, _ in methods(it) if name not in GIVEN_ROWS]


def methods(table: Any) -> list[tuple[str, Any]]:
    return [(name, it) for name, it in inspect.getmembers(table, inspect.ismethod) if not name.startswith("_")]


def plain(value: Any) -> Any:
    """A result as comparable values; rows whose order nobody promises are sorted by the caller."""
    if isinstance(value, np.ndarray):
        return [plain(it) for it in value.tolist()]
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items()}
    if isinstance(value, Iterator | list) and not isinstance(value, str):
        return [plain(it) for it in value]
    if isinstance(value, tuple):
        return tuple(plain(it) for it in value)
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def ask(store: AnyStore, question: str) -> Any:
    table, name = question.split(".")
    method = getattr(getattr(store, table), name)
    given = {}
    for parameter in inspect.signature(method).parameters.values():
        special = SPECIAL.get(question, {})
        if parameter.name in special:
            given[parameter.name] = special[parameter.name]
        elif parameter.name == "site" and "str" in str(parameter.annotation):
            given["site"] = "https://1.example"
        elif parameter.name == "state" and parameter.annotation == "int | None":
            given["state"] = None
        elif parameter.default is inspect.Parameter.empty or parameter.name in ("limit", "pages", "site"):
            given[parameter.name] = ARGUMENTS[parameter.name]
    return plain(method(**given))


def contents(store: AnyStore) -> dict[str, list[str]]:
    """Every row of every table, without the column `shard`; `meta` is compared by its values."""
    found = {}
    for table, names in table_columns().items():
        columns = ", ".join(f'"{name}"' for name in names)
        found[table] = sorted(map(repr, store.db.execute(f"SELECT {columns} FROM {table}")))
    names = sorted(row[0] for row in store.db.execute("SELECT name FROM meta"))
    found["meta"] = [repr((name, store.meta.get(name, None))) for name in names]
    return found


@pytest.fixture(scope="module")
def target(postgres_url: str) -> PostgresTarget:
    return parse(f"{postgres_url}?schema=alone")


@pytest.fixture
def store(target: PostgresTarget) -> Iterator[PostgresStore]:
    with closing(PostgresStore(target, create=True)) as made:
        yield made
        made.db.run(f"DROP SCHEMA {target.schema} CASCADE")


UNORDERED = {
    "pages.keys",
    "pages.sites_of",
    "visits.pages_since",
    "hints.columns",
    "hints.claims",
    "hints.pushed_pages",
    "visits.pages_updated_since",
    "visits.received_of_cycle",
    "visits.latest_by_site",
    "requisites.known",
    "visits.not_modified_by_site",
    "requisites.due",
    "pages.often_changed",
}
"""Answers whose order no protocol promises."""


def test_every_method_of_every_table_does_what_it_does_in_sqlite(store: PostgresStore) -> None:
    with closing(SqliteStore(Path(":memory:"), create=True)) as expected:
        fill(expected)
        fill(store)
        assert contents(store) == contents(expected)
        asked = questions()
        assert len(asked) > 150
        for question in asked:
            want, got = ask(expected, question), ask(store, question)
            if question in UNORDERED:
                want, got = unordered(want), unordered(got)
            assert got == want, question
        assert contents(store) == contents(expected)


def unordered(value: Any) -> Any:
    """Rows, or columns put together as rows, in a fixed order."""
    if isinstance(value, dict) and all(isinstance(it, list) for it in value.values()):
        return sorted(zip(*value.values(), strict=True))
    if isinstance(value, tuple):
        return sorted(zip(*value, strict=True))
    return value if isinstance(value, dict) else sorted(value)


def test_both_stores_have_the_same_columns(store: PostgresStore) -> None:
    sql = """SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s
             AND column_name != 'shard' AND table_name NOT LIKE '%%\\_0' AND table_name NOT IN ('migrations', 'leases')
             ORDER BY table_name, ordinal_position"""
    found: dict[str, list[str]] = {}
    for table, column in store.db.run(sql, (store.db.target.schema,)):
        found.setdefault(table, []).append(column)
    assert found == table_columns()


# -- the server ----------------------------------------------------------------------------------------------


def cut(store: PostgresStore) -> None:
    """End the connection of a store at the server, as a restart does."""
    process = store.db.run("SELECT pg_backend_pid()").fetchone()
    with closing(PostgresStore(store.db.target)) as other:
        other.db.run("SELECT pg_terminate_backend(%s, 5000)", process)


def test_a_cut_connection_comes_back_between_batches(store: PostgresStore) -> None:
    store.commit(Batch(pages=[page_row(0)]), [])
    cut(store)
    store.commit(Batch(pages=[page_row(1)]), [])
    cut(store)
    assert store.next_id("pages") == 2


def test_a_connection_that_is_cut_before_its_first_statement_is_a_failure_of_storage(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.record.store.postgres.connection.adapt", lambda raw: raw.close())
    with pytest.raises(StorageFailure, match="check that the server runs"):
        PostgresStore(store.db.target)


def test_a_restart_of_the_server_between_batches_goes_unnoticed(store: PostgresStore) -> None:
    store.commit(Batch(pages=[page_row(0)]), [])
    restart_postgres(Path(store.db.run("SHOW data_directory").fetchone()[0]))
    store.commit(Batch(pages=[page_row(1)]), [])
    assert store.next_id("pages") == 2


def test_a_batch_that_is_cut_leaves_nothing_and_says_so(store: PostgresStore) -> None:
    def write() -> None:
        with store.transaction():
            store.meta.set("x", 1)
            cut(store)
            store.meta.set("x", 2)

    with pytest.raises(StorageFailure, match="run the command again"):
        write()
    assert store.meta.get("x", "nothing") == "nothing"
    with store.transaction():
        store.meta.set("x", 3)
    assert store.meta.get("x", "nothing") == 3


def test_a_shared_store_writes_nothing(store: PostgresStore) -> None:
    with closing(PostgresStore(store.db.target, shared=True)) as reader:
        with pytest.raises(StorageFailure, match="cannot be written"):
            reader.meta.set("x", 1)
        cut(reader)
        assert reader.meta.get("x", "nothing") == "nothing"
        with pytest.raises(StorageFailure, match="cannot be written"):  # also on a new connection
            reader.meta.set("x", 1)


def test_errors_say_what_to_do_and_never_the_password(target: PostgresTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_taken(target)
    with pytest.raises(RepositoryError, match=r"holds no repository: correct the URL in store\.toml"):
        PostgresStore(target)
    away = target._replace(url="postgresql://crawler@127.0.0.1:1/postgres")
    with pytest.raises(StorageFailure, match="check that the server runs") as missing:
        PostgresStore(away)
    monkeypatch.setenv("RECRAWL_TEST_PASSWORD", "not-the-password")
    with pytest.raises(StorageFailure, match="the password is wrong or missing") as wrong:
        PostgresStore(target)
    for error in (missing.value, wrong.value):
        assert "\n" not in str(error)
        assert "walrus" not in str(error)
        assert "not-the-password" not in str(error)
        assert error.__cause__ is None


@pytest.mark.parametrize("url", ["postgresql://me:secret@h/d", "postgresql://h/d?password=secret"])
def test_a_password_that_is_written_out_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="written out") as refused:
        parse(url)
    assert "secret" not in str(refused.value)


def test_a_row_that_breaks_a_rule_of_the_tables_is_refused(store: PostgresStore) -> None:
    store.commit(Batch(pages=[page_row(0)], states=[unvisited(0)._replace(state=int(State.LIVE))]), [])
    with pytest.raises(RefusedRows):
        store.commit(Batch(pages=[page_row(0)]), [])
    assert store.pages.get(0).state.state == State.LIVE


def test_a_large_result_is_read_in_blocks_while_other_statements_run(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_BLOCK", 2)
    store.commit(Batch(pages=[page_row(n) for n in range(5)]), [])
    cursors = "SELECT count(*) FROM pg_cursors WHERE name != ''"
    found = []
    rows = store.pages.urls()
    for url in rows:
        found.append(url)
        assert store.db.run(cursors).fetchone() == (1,)
        store.commit(Batch(pages=[page_row(4 + len(found))]), [])  # not part of the result
        with store.transaction():
            store.meta.set("x", len(found))
    assert found == [page_row(n).url for n in range(5)]
    assert store.db.run(cursors).fetchone() == (0,)
    assert len(store.pages.keys()[0]) == 10


def test_a_large_result_that_is_cut_says_so(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_BLOCK", 2)
    store.commit(Batch(pages=[page_row(n) for n in range(5)]), [])
    rows = store.pages.urls()
    next(rows)
    cut(store)
    with pytest.raises(StorageFailure, match="run the command again"):
        list(rows)
    assert len(list(store.pages.urls())) == 5
