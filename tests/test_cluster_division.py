"""Rows divided among shards: every row of every table is in the shard of its site, and refers to the same things."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.cluster.layout import Layout
from recrawl.errors import StorageFailure
from recrawl.record.rows import OutboxRow, OutboxState
from recrawl.record.store import SqliteStore, open_store
from recrawl.record.store.division.copying import DividedCopy, JoinedCopy, copy_own_rows, copy_values
from recrawl.record.store.division.joined_numbers import JoinedNumbers
from recrawl.record.store.division.joined_rows import JoinedRows
from recrawl.record.store.division.numbering import Numbering, SharedNumbering
from recrawl.record.store.division.own_rows import OwnRows
from recrawl.record.store.division.owners import RowOwners
from recrawl.record.store.division.projection import OWN_TABLES, Projection
from recrawl.record.store.postgres.cluster.moves import write_order
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.reports import StreamPlace
from recrawl.record.store.sql import copying
from tests.stores import table_columns
from tests.test_cluster_reads import shard_stores
from tests.test_record_postgres import fill

NewCluster = Callable[[int], Layout]
SHARDS = 4
NAMED = {
    "sites": "origin",
    "pages": "url",
    "reasons": "text",
    "requisites": "url",
    "visits": "at",
    "versions": "at",
    "requisite_versions": "at",
    "screenshots": "at",
}
"""Tables with numbers, and a column that says which row it is."""
REFERENCES = {"page": "pages", "site": "sites", "version": "versions", "why": "reasons", "visit": "visits"} | {
    "requisite": "requisites",
    "parent": "pages",
    "target": "pages",
}
CURSORS = {"alerts:seen": 7, "sink:a:delivered": 15, "sink:b:delivered": -1, "sink:c:delivered": 23}
TEXTS = {str(site): ["aa", 1.0, "title", [[site + 3, "bb", "cc"]], False] for site in range(3)}
VALUES: dict[str, float | str] = {
    **CURSORS,
    "shared-texts": json.dumps(TEXTS),
    "aliases": '{"a": "b"}',
    "rendering": '{"https://0.example": [1, 2]}',
    "serve:base": 5.5,
    "indexed": 3,
}
ELSEWHERE = {"meta", "warcs", "cycles", "cycle_summaries", "reasons", "requisites", "push_sources"}
"""Tables that are not only divided."""


def rows_of(store: Any) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables."""
    found = {}
    for table, names in table_columns().items():
        columns = ", ".join(f'"{name}"' for name in names)
        rows = store.db.execute(f"SELECT {columns} FROM {table}").fetchall()
        found[table] = [dict(zip(names, row, strict=True)) for row in rows]
    return found


def described(
    rows: dict[str, list[dict[str, Any]]], owns: Callable[[str, str], bool], unpack: Callable[[int, bytes], list[int]]
) -> dict[str, list[str]]:
    """All rows, sorted, with names instead of numbers; what another shard owns is not referred to.

    `owns` says whether the page of a URL may refer to another one, `unpack` gives the pages that a page links to.
    """
    names = {table: {row["id"]: row[column] for row in rows[table]} for table, column in NAMED.items()}
    found: dict[str, list[str]] = {}
    for table in rows.keys() - ELSEWHERE:
        found[table] = []
        for row in rows[table]:
            new = {name: it for name, it in row.items() if name != "warc"}
            for name, kind in REFERENCES.items():
                if row.get(name) is not None and row[name] >= 0:
                    new[name] = names[kind].get(row[name])
            if table in NAMED:
                new["id"] = names[table][row["id"]]
            if table in ("requisite_versions", "screenshots"):
                new["record"] = names[table][row["record"]]
            if table == "pages":
                target = names["pages"].get(row["target"])
                new["target"] = target if target and owns(row["url"], target) else -1
            if table == "links":
                urls = [names["pages"][it] for it in unpack(row["page"], row["targets"])]
                new["targets"] = [url for url in urls if owns(new["page"], url)]
            found[table].append(repr(new))
        found[table].sort()
    return found


@pytest.fixture
def divided(new_cluster: NewCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store with rows in every table, and its copy in a cluster."""
    monkeypatch.setattr(copying, "_BLOCK", 2)
    layout = new_cluster(SHARDS)
    with ExitStack() as stack:
        source = stack.enter_context(closing(SqliteStore(tmp_path / "one.db", create=True)))
        fill(source)
        source.db.execute("UPDATE cycle_summaries SET pages = 5, ages = '[1, 2]'")
        for name, value in VALUES.items():
            source.meta.set(name, value)
        source.outbox.add(
            OutboxRow("rule:7", "rule", 7, OutboxState.WAITING, 0, None, 5.0, 4.0, '{"page": 7, "visit": 7}')
        )
        owners = RowOwners(source, SHARDS, layout.shard_of_url)
        assert len(set(owners.pages.owner.tolist())) > 1
        own = OwnRows(source, owners, layout.shard_of_url)
        target = stack.enter_context(closing(PostgresStore(layout.target.of_shard(0))))
        projection = Projection(owners, layout.shard_of_url, {}, 99.0)
        copy = DividedCopy(source, target, projection, SHARDS, lambda it: layout.target.of_shard(it).schema)
        copy.copy(lambda *_: None)
        for shard, there in enumerate(shard_stores(layout, stack)):
            copy_values(there, own.shard_values(shard))
        whole = stack.enter_context(closing(open_store(tmp_path / "cluster")))
        assert isinstance(whole, GatheredStore)
        copy_own_rows(whole, own)
        write_order(whole, own.visit_blocks(), own.read_up_to())
        yield layout, source, whole, copy


def test_every_row_is_in_the_shard_of_its_site_and_refers_to_the_same(divided: Any) -> None:
    layout, source, whole, copy = divided
    before, after = rows_of(source), rows_of(whole)

    def same(url: str, other: str) -> bool:
        return bool(layout.shard_of_url(url) == layout.shard_of_url(other))

    for row in after["pages"]:
        assert row["id"] % SHARDS == layout.shard_of_url(row["url"])
    wanted = described(before, same, lambda _, packed: np.frombuffer(packed, "<i4").tolist())
    got = described(
        after, same, lambda page, packed: [it * SHARDS + page % SHARDS for it in np.frombuffer(packed, "<i4").tolist()]
    )
    del wanted["outbox"], got["outbox"]  # see below
    for table in wanted:
        assert got[table] == wanted[table], table
    assert {row["text"] for row in after["reasons"]} == {row["text"] for row in before["reasons"]}
    for table, column in (("cycles", "id"), ("cycle_summaries", "cycle"), ("push_sources", "source")):
        mine, others = (sorted(it[table], key=lambda row: str(row[column])) for it in (after, before))
        for row in (*mine, *others):
            row.pop("first_visit", None)
        assert mine == others
    owned = [row for row in after["requisites"] if row["id"] % SHARDS == layout.shard_of_url(row["url"])]
    assert sorted(row["key"] for row in owned) == sorted(row["key"] for row in before["requisites"])
    assert all(row["version"] == -1 and row["checked"] is not None for row in after["requisites"] if row not in owned)
    assert (
        copy.verify(lambda *_: None) > sum(len(rows) for table, rows in before.items() if table not in OWN_TABLES) / 2
    )


def test_who_reads_on_finds_what_he_has_not_read(divided: Any) -> None:
    _, source, whole, _ = divided
    for name, last in CURSORS.items():
        left = [row["at"] for row in whole.visits.after(whole.meta.get(name, None), 100)]
        assert sorted(left) == [row["at"] for row in source.visits.after(last, 100)], name
    with closing(source.db.execute("SELECT visit FROM change_marks")) as marks:
        assert len(marks.fetchall()) == len(whole.db.run("SELECT visit FROM change_marks").fetchall()) == 2
    assert whole.order.count() == source.next_id("visits")
    assert whole.db.run("SELECT sum(visits)::bigint FROM visit_blocks").fetchone()[0] == source.next_id("visits")


def test_single_values_go_to_the_shards_or_to_the_whole(divided: Any) -> None:
    layout, source, whole, _ = divided
    origins = {row[0]: row[1] for row in whole.db.run("SELECT id, origin FROM sites").fetchall()}
    urls = {row[0]: row[1] for row in whole.db.run("SELECT id, url FROM pages").fetchall()}
    found = {
        origins[int(site)]: urls[recent[0] * SHARDS + int(site) % SHARDS]
        for site, (_, _, _, [recent], _) in json.loads(whole.meta.get("shared-texts", "{}")).items()
    }
    assert found == {f"https://{site}.example": source.pages.get(site + 3).url for site in range(3)}
    with ExitStack() as stack:
        stores = shard_stores(layout, stack)
        assert [it.meta.get("aliases", None) for it in stores] == [VALUES["aliases"]] * SHARDS
        learned = [shard for shard, it in enumerate(stores) if it.meta.get("rendering", None)]
        assert learned == [layout.shard_of_url("https://0.example/")]
        assert [it.meta.get("indexed", None) for it in stores] == [None] * SHARDS
    assert (whole.meta.get("serve:base", None), whole.meta.get("aliases", None)) == (5.5, None)
    ((key, page, body),) = whole.db.run("SELECT key, page, body FROM outbox WHERE alert = 'rule'").fetchall()
    visit = json.loads(body)["visit"]
    assert (key, page, urls[page]) == (f"rule:{visit}", json.loads(body)["page"], source.pages.get(7).url)
    assert whole.db.run("SELECT at FROM visits WHERE id = %s", (visit,)).fetchone() == (57.0,)


def test_a_copy_that_was_changed_is_noticed_and_copied_again(divided: Any) -> None:
    layout, source, _, copy = divided
    first = source.pages.get(0).url
    schema = layout.target.of_shard(layout.shard_of_url(first)).schema
    copy._target.db.run(f"UPDATE {schema}.pages SET visits = 77 WHERE id = 0")
    with pytest.raises(StorageFailure, match="pages differs"):
        copy.verify(lambda *_: None)
    copy.copy(lambda *_: None)
    copy._target.db.run(f"DELETE FROM {schema}.visits WHERE id = 0")
    with pytest.raises(StorageFailure, match="visits differs"):
        copy.verify(lambda *_: None)
    copy.copy(lambda *_: None)
    copy._target.db.run(f"INSERT INTO {schema}.hints VALUES (9999, 'more', 1, 1)")
    with pytest.raises(StorageFailure, match="hints differs"):
        copy.verify(lambda *_: None)
    copy.copy(lambda *_: None)
    copy.verify(lambda *_: None)


def test_shards_that_are_joined_hold_what_the_store_held_before(divided: Any, tmp_path: Path) -> None:
    layout, source, whole, _ = divided

    def same(url: str, other: str) -> bool:
        return bool(layout.shard_of_url(url) == layout.shard_of_url(other))

    with closing(SqliteStore(tmp_path / "joined.db", create=True)) as one:
        for shard in range(SHARDS):
            schema = layout.target.of_shard(shard).schema
            name = f"recrawl-20260101000000-abc-0000{shard}.warc.gz"
            whole.db.run(f"INSERT INTO {schema}.warcs VALUES (0, '{name}', 9, 1)")
        rows = JoinedRows(whole, JoinedNumbers(whole), in_folder=True)
        copy = JoinedCopy(one, rows.blocks)
        for _ in range(2):  # the second time there is nothing to do
            copy.copy(lambda *_: None)
            copy_values(one, rows.values())
        assert copy.verify(lambda *_: None) > 0
        before, after = rows_of(source), rows_of(one)
        for table in ("sites", "pages", "visits", "requisites", "requisite_versions", "screenshots"):
            assert sorted(row["id"] for row in after[table]) == list(range(len(before[table]))), table
        wanted, got = (
            described(it, same, lambda _, packed: np.frombuffer(packed, "<i4").tolist()) for it in (before, after)
        )
        for table in wanted.keys() - {"outbox", "change_marks"}:
            assert got[table] == wanted[table], table
        for name in ("key", "url", "style", "level", "version"):
            assert sorted(row[name] for row in after["requisites"]) == sorted(row[name] for row in before["requisites"])
        assert [row["text"] for row in after["reasons"]] == [row["text"] for row in before["reasons"]]
        for table in ("cycles", "cycle_summaries", "push_sources"):
            assert after[table] == before[table], table
        assert {row["stored"] for row in after["warcs"]} == {0}
        for name, last in CURSORS.items():
            left = [row["at"] for row in one.visits.after(one.meta.get(name, None), 100)]
            assert sorted(left) == [row["at"] for row in source.visits.after(last, 100)], name
        assert json.loads(one.meta.get("aliases", "")) == {"a": "b"}
        assert one.meta.get("rendering", None) == VALUES["rendering"]
        assert len(json.loads(one.meta.get("shared-texts", "{}"))) == 3
        place = StreamPlace(1e9, 1 << 62)
        unread = [
            sorted(row["at"] for row in it.listings.changes_before(place, -1e9, "", 100, unread=True))
            for it in (source, whole, one)
        ]
        assert unread[0] == unread[1] == unread[2] != []


# -- laws of the numbers ---------------------------------------------------------------------------------------


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(-1, n - 1), max_size=60))))
def test_new_numbers_are_dense_ordered_and_can_be_undone(case: tuple[int, list[int]]) -> None:
    shards, owner = case
    rows = Numbering(np.array(owner, np.int16), shards)
    known = [number for number, it in enumerate(owner) if it >= 0]
    whole = rows.whole(known)
    assert len(set(whole)) == len(known)
    for shard in range(shards):
        mine = [number for number in known if owner[number] == shard]
        new = rows.at(np.full(len(mine), shard), np.array(mine, np.int64)).tolist()
        assert new == list(range(len(mine)))
        assert [it // shards for it in whole if it % shards == shard] == new
        others = np.array([number for number in range(len(owner)) if owner[number] != shard] + [-1, 999], np.int64)
        assert set(rows.at(np.full(len(others), shard), others).tolist()) == {-1}
    cuts = [0, len(owner), len(owner) // 2, len(owner) + 5]
    expected = [[sum(it == shard for it in owner[:cut]) for shard in range(shards)] for cut in cuts]
    assert rows.before(cuts).tolist() == expected


@given(st.lists(st.sets(st.integers(0, 40)), min_size=1, max_size=5), st.lists(st.integers(-1, 45), max_size=20))
def test_a_shared_row_has_a_number_in_each_shard_that_knows_it(members: list[set[int]], asked: list[int]) -> None:
    rows = SharedNumbering([np.array(sorted(it), np.int64) for it in members])
    for shard, known in enumerate(members):
        found = rows.at(np.full(len(asked), shard), np.array(asked, np.int64)).tolist()
        assert found == [sorted(known).index(it) if it in known else -1 for it in asked]
