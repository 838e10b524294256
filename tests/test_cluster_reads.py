"""The shards of a cluster read as one repository: the same answers as one store with the same rows."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.choose.budget.allowance import Allowance
from recrawl.cluster.layout import Layout, create_cluster, layout_of
from recrawl.cluster.search_server import SearchServer, address_name
from recrawl.cluster.searching import search_shards
from recrawl.errors import UsageError
from recrawl.model import Outcome
from recrawl.record.rows import Batch, PushRow, Row, VisitRow
from recrawl.record.store import SqliteStore, open_store
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.gathered.views import NUMBERS
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.reports import StreamPlace
from tests.crashes import site_row
from tests.object_store import ObjectStore
from tests.stores import table_columns
from tests.test_record_postgres import UNORDERED, ask, fill, page_row, questions, unordered
from tests.world import Repo, Site, page

NewCluster = Callable[[int], Layout]
Crawled = tuple[Repo, Repo, Site, Site]
SHARDS = 2
OPTIONAL = {"parent", "version", "target", "record"}
OWN = {"meta", "tags", "change_marks", "saved_filters", "outbox", "subscriptions", "proofs", "pushers"}
"""Tables that belong to the whole."""
IN_ORDER = {"visits.after", "listings.changes_after", "listings.deliveries_after", "listings.deliveries",
            "listings.visits_after", "reports.visits_after", "visits.before"}  # fmt: skip
"""Questions about what came after a visit: shards that grow side by side have an order of their own."""


def shard_stores(layout: Layout, stack: ExitStack) -> list[PostgresStore]:
    """The stores of all shards."""
    targets = [layout.target.of_shard(shard) for shard in range(layout.shards)]
    return [stack.enter_context(closing(PostgresStore(target))) for target in targets]


def fill_shard(store: PostgresStore, shard: int) -> None:
    """Rows in every table, of sites that no other shard has."""
    fill(store)
    for table, column in (("pages", "url"), ("sites", "origin"), ("feeds", "url"), ("requisite_hosts", "origin")):
        store.db.run(f"UPDATE {table} SET {column} = replace({column}, '.example', '.s{shard}.example')")
    store.db.run(f"UPDATE reasons SET text = text || '{shard or ''}'")
    for table in ("pages", "requisites", "pushes"):
        store.db.run(f"UPDATE {table} SET key = key + {shard * 1_000_000}")
    store.db.run("UPDATE cycle_summaries SET pages = 5, ages = '[1, 2]'")
    store.db.run(f"UPDATE visits SET at = at + {shard * 0.25}; UPDATE versions SET at = at + {shard * 0.25}")


def mapped(table: str, row: dict[str, Any], shard: int, shards: int) -> dict[str, Any]:
    """A row of a shard as one of the whole."""
    found = dict(row)
    for name in NUMBERS[table]:
        value = found[name]
        if value is not None and not (name in OPTIONAL and value < 0):
            found[name] = value * shards + shard
    if table == "warcs":
        found["name"] = f"s{shard:03d}-{found['name']}"
    if table == "links":
        target = int.from_bytes(found["targets"], "little")
        found["targets"] = (target * shards + shard).to_bytes(4, "little")
    return found


def whole_of(stores: list[PostgresStore], path: Path) -> SqliteStore:
    """One store with the rows of all shards, their numbers made those of the whole."""
    whole = SqliteStore(path, create=True)
    for table, columns in table_columns().items():
        names = ", ".join(f'"{name}"' for name in columns)
        insert = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
        for shard, store in enumerate(stores):
            rows = [dict(zip(columns, row, strict=True)) for row in store.db.run(f"SELECT {names} FROM {table}")]
            if table in NUMBERS:
                whole.db.executemany(insert, [(*mapped(table, row, shard, len(stores)).values(),) for row in rows])
            elif table not in OWN and not shard:
                whole.db.executemany(insert, [(*_summed(table, row, len(stores)).values(),) for row in rows])
    return whole


def _summed(table: str, row: dict[str, Any], shards: int) -> dict[str, Any]:
    """A row that all shards have in the same form, added up."""
    if table == "cycles":
        return {**row, "known": row["known"] * shards, "first_visit": row["first_visit"] * shards}
    if table == "push_sources":
        return {name: it * shards if name in ("heard", "right", "wrong") else it for name, it in row.items()}
    assert table == "cycle_summaries", table
    added = {name: it * shards if isinstance(it, int) and name != "cycle" else it for name, it in row.items()}
    return {**added, "failures": json.dumps({"timeout": 2 * shards}), "ages": json.dumps([shards, 2 * shards])}


@pytest.fixture
def gathered(new_cluster: NewCluster, tmp_path: Path) -> Iterator[tuple[GatheredStore, list[PostgresStore]]]:
    """A cluster of two shards with rows in every table: the whole, and its shards."""
    layout = new_cluster(SHARDS)
    with ExitStack() as stack:
        stores = shard_stores(layout, stack)
        for shard, store in enumerate(stores):
            fill_shard(store, shard)
        whole = stack.enter_context(closing(open_store(tmp_path / "cluster")))
        assert isinstance(whole, GatheredStore)
        yield whole, stores


REFUSED = {
    "marks.fulfil", "pages.recall", "pages.revive", "pages.set_states", "visits.reason", "cycles.finish",
    "cycles.reopen", "cycles.set_limits",
    "warcs.clear_stored", "warcs.set_stored", "pushes.await_visit", "pushes.count_claim",
    "pushes.keep_sources", "pushes.remove", "pushes.remove_awaited", "pushes.remove_awaited_before",
    "pushes.set_score", "checks.mark_lost", "checks.mark_requisites_lost", "checks.mark_screenshots_lost",
    "checks.repair", "checks.set_length", "pages.set_copies", "pages.set_sketches", "visits.tell_once",
}  # fmt: skip
"""What the workers of shards alone write."""
ALSO_UNORDERED = {"checks.indexed_pages", "checks.versions_of"}


def test_all_questions_have_the_answers_of_one_store_with_the_same_rows(
    gathered: tuple[GatheredStore, list[PostgresStore]], tmp_path: Path
) -> None:
    store, shards = gathered
    with closing(whole_of(shards, tmp_path / "one.db")) as one:
        for table in ("pages", "visits", "versions", "requisites", "screenshots", "sites"):
            assert store.count(table) == one.count(table), table
        for made in (store, one):
            made.marks.tag("news", 2, 2)
            made.marks.save_filter("mine", "{}")
            made.marks.mark_all_read()
            made.marks.mark_read([13, 14], read=False)
        for question in questions():
            if question in REFUSED:
                with pytest.raises(UsageError, match="workers of its shards"):
                    ask(store, question)
            elif question not in IN_ORDER:
                want, got = ask(one, question), ask(store, question)
                if question in UNORDERED | ALSO_UNORDERED:
                    want, got = unordered(want), unordered(got)
                assert got == want, question


def grow(store: PostgresStore, visits: int) -> None:
    """Record visits to page 0 of a shard, each of which has found a change."""
    first = store.next_id("visits")
    rows = [
        VisitRow(n, 0, 0, 100.0 + n, int(Outcome.CHANGED), 200, 1, 0.5, -1, None, None, None, None)
        for n in range(first, first + visits)
    ]
    store.commit(Batch(visits=rows), [])


def test_a_reader_that_goes_on_where_it_stopped_reads_every_visit_once(new_cluster: NewCluster, tmp_path: Path) -> None:
    layout = new_cluster(3)
    with ExitStack() as stack:
        shards = shard_stores(layout, stack)
        for number, shard in enumerate(shards):
            site = f"https://s{number}.example"
            shard.commit(Batch(sites=[site_row(0, site)], pages=[page_row(0)._replace(url=f"{site}/", key=number)]), [])
        store = stack.enter_context(closing(open_store(tmp_path / "cluster")))
        assert isinstance(store, GatheredStore)
        assert (store.next_id("visits"), store.visits.after(-1, 5)) == (0, [])
        reads: dict[str, Callable[[int, int], list[Row]]] = {
            "alerts": store.visits.after,
            "sinks": lambda after, limit: store.listings.deliveries_after(after, "", limit),
            "one site": lambda after, limit: store.listings.changes_after(after, "https://s1.example", limit),
        }

        @settings(max_examples=15)
        @given(st.lists(st.one_of(st.tuples(st.integers(0, 2), st.integers(1, 5)), st.integers(1, 7)), max_size=12))
        def check(steps: list[tuple[int, int] | int]) -> None:
            start = store.next_id("visits") - 1
            recorded, at = 0, dict.fromkeys(reads, start)
            read: dict[str, list[int]] = {name: [] for name in reads}
            for step in [*steps, 1000]:
                if isinstance(step, tuple):
                    grow(shards[step[0]], step[1])
                    recorded += step[1]
                    continue
                for name, ask_for in reads.items():
                    rows = [row["id"] for row in ask_for(at[name], step)]
                    read[name] += rows
                    at[name] = rows[-1] if rows else at[name]
            assert len(read["alerts"]) == len(set(read["alerts"])) == recorded
            assert read["sinks"] == read["alerts"]
            assert read["one site"] == [visit for visit in read["alerts"] if visit % 3 == 1]
            assert store.listings.deliveries(start, "") == recorded
            if recorded:
                assert store.next_id("visits") - 1 == read["alerts"][-1]
                assert store.visits.before(read["alerts"][-1], recorded - 1) == read["alerts"][0]

        check()


def test_what_people_mark_reaches_the_shard(gathered: tuple[GatheredStore, list[PostgresStore]]) -> None:
    store, shards = gathered
    for shard in shards:
        shard.marks.fulfil(shard.marks.requested())
    store.marks.request([3, 6], 9.0)
    assert [shard.marks.requested() for shard in shards] == [[3], [1]]
    assert store.marks.requested() == [3, 6]
    waiting = [shard.pushes.waiting() for shard in shards]
    row = PushRow(77, "websub", "s", 5.0, "https://1.s1.example/new")
    assert store.pushes.put(row)
    assert not store.pushes.put(row)
    assert not store.pushes.put(row._replace(url="https://unknown.example/"))
    assert [shard.pushes.waiting() for shard in shards] == [waiting[0], waiting[1] + 1]


def test_what_is_recorded_after_all_was_read_is_unread_in_every_shard(
    gathered: tuple[GatheredStore, list[PostgresStore]],
) -> None:
    store, shards = gathered
    grow(shards[0], 9)
    store.marks.mark_all_read()

    def unread() -> list[int]:
        place = StreamPlace(1e9, 1 << 62)
        return [row["id"] for row in store.listings.changes_before(place, -1e9, "", 100, unread=True)]

    assert unread() == []
    grow(shards[1], 1)  # its number is below those that were read
    assert unread() == [24 * SHARDS + 1]


@pytest.fixture(scope="module")
def crawled(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_url: str,
    object_store: ObjectStore,
    request: pytest.FixtureRequest,
) -> Iterator[Crawled]:
    """Two sites in a cluster of two shards, crawled and refreshed, and the same in one repository; tests only read it.

    The working folders of the shards are beside that of the cluster: `work0`, `work1`.
    """
    base, name = tmp_path_factory.mktemp("crawled"), request.module.__name__.rpartition(".")[2]
    store, archive = f"{postgres_url}?schema={name}", object_store.url(name)
    layout = create_cluster(base / "cluster", store=store, archive=archive, shards=2)
    one = Repo.create(base / "one")
    links = [f"/{n}" for n in range(5)]
    pages = {"/": page("root", *links)} | {link: page(f"walrus {link}") for link in links}
    with Site(pages) as left, Site({**pages, "/0": page("seal")}) as right:
        sites = (left, right)
        toml = (one.folder / "recrawl.toml").read_text()
        works = []
        for shard, site in enumerate(sites):
            layout.prepare_folder(base / f"work{shard}", shard, toml)
            works.append(Repo(base / f"work{shard}"))
            works[shard].crawl(site.url("/"))
        one.crawl(*(site.url("/") for site in sites))
        left["/1"], right["/2"] = page("otter one"), page("otter two")
        del left["/3"]
        for repo in (one, *works):
            repo.later(days=2)
            repo.cycle(40, "--policy", "round-robin")
        whole = Repo(base / "cluster")
        whole.ahead = one.ahead
        (whole.folder / "recrawl.toml").write_text((one.folder / "recrawl.toml").read_text())
        yield whole, one, left, right


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without numbers and times, in a fixed order."""
    left_out = {"id", "found", "last_visit", "last_change", "at", "time", "size", "robots_read", "sitemap_read"}
    found = [{name: it for name, it in row.items() if name not in left_out} for row in rows]
    return sorted(found, key=repr)


def test_the_limits_of_a_cycle_are_those_of_all_shards(
    gathered: tuple[GatheredStore, list[PostgresStore]],
) -> None:
    whole, shards = gathered
    first, second = (store.cycles.newest(1)[0].id for store in shards)
    assert first == second
    limits = [
        Allowance(bytes=5e6, site_most=7, most={0: 3, 2: 4}, held={1: (5, 6)}),
        Allowance(bytes=3e6, site_most=7, held={0: (1, 2), 4: (3, 4)}),
    ]
    for store, own in zip(shards, limits, strict=True):
        store.cycles.set_limits(first, own.text())
    together = Allowance(
        bytes=8e6, site_most=7, most={0: 3, 2 * SHARDS: 4}, held={SHARDS: (5, 6), 1: (1, 2), 4 * SHARDS + 1: (3, 4)}
    )
    assert Allowance.of(whole.cycles.newest(1)[0].limits or "") == together
    shards[1].cycles.set_limits(first, "")
    alone = Allowance.of(whole.cycles.newest(1)[0].limits or "")
    assert alone == Allowance(bytes=5e6, site_most=7, most={0: 3, 2 * SHARDS: 4}, held={SHARDS: (5, 6)})
    shards[0].cycles.set_limits(first, "")
    assert whole.cycles.newest(1)[0].limits == ""


def test_a_cluster_is_read_as_one_repository(crawled: Crawled) -> None:
    whole, one, left, right = crawled
    for words in (["pages"], ["changes", "--since", "30d"], ["pages", "--state", "gone"]):
        assert without_times(whole.json(*words)) == without_times(one.json(*words)), words
    statuses = whole.json("status"), one.json("status")
    for name in ("pages", "stored", "visits", "versions", "sites", "states"):
        assert statuses[0][name] == statuses[1][name], name
    columns = ("url", "pages", "visits", "changes", "live")
    counts = [[[row.get(name) for name in columns] for row in repo.json("sites")] for repo in (whole, one)]
    assert counts[0] == counts[1]
    for url in (left.url("/1"), right.url("/2")):
        assert whole.run("show", url).out.splitlines()[1:] == one.run("show", url).out.splitlines()[1:]
        changed = [
            [line for line in repo.run("diff", url).out.splitlines() if "otter" in line] for repo in (whole, one)
        ]
        assert changed[0] == changed[1] != []
        assert whole.run("log", url).out.count("\n") == one.run("log", url).out.count("\n")
        explained = whole.json("why", url)
        assert explained["state"] == "live"
        assert "otter" not in json.dumps(explained)
        assert whole.json("predict", url)["url"] == url
    cycles = [[(row["kind"], row["visits"]) for row in status["cycles"]] for status in statuses]
    assert cycles[0] == cycles[1]
    assert whole.json("rates", "--limit", 3)
    assert whole.run("export", whole.folder / "x.warc.gz").code == 0
    assert whole.run("export", whole.folder / "x.parquet").code == 0


def test_a_search_asks_every_shard_and_says_which_did_not_answer(crawled: Crawled) -> None:
    whole, one, left, right = crawled
    base = whole.folder.parent
    layout = layout_of(whole.folder)
    with closing(layout.open()) as cluster:
        nobody = whole.run("search", "walrus")
        assert nobody.err == "not all pages were searched: shards 0, 1 did not answer\nnothing found\n"
        with SearchServer(cluster, 0, base / "work0"):
            some = whole.run("search", "otter", "--json")
            assert [row["url"] for row in json.loads(some.out)] == [left.url("/1")]
            assert some.err == "not all pages were searched: shard 1 did not answer\n"
            with socket.create_server(("127.0.0.1", 0)) as silent:
                cluster.set_fact(address_name(1), f"http://127.0.0.1:{silent.getsockname()[1]}/search")
                late = search_shards(layout, {"query": "otter"}, range(2), limit=9, seconds=20.0)
                assert ([hit.url for hit in late], late.unanswered) == ([left.url("/1")], (1,))
            with SearchServer(cluster, 1, base / "work1") as server:
                for word in ("walrus", "otter", "root", "seal", "nothing"):
                    assert whole.found(word) == one.found(word), word
                hits = whole.json("search", "otter")
                assert {row["url"] for row in hits} == {left.url("/1"), right.url("/2")}
                assert hits == sorted(hits, key=lambda row: -row["score"])
                assert all("otter" in row["snippet"] for row in hits)
                assert [row["page"] % 2 for row in hits if row["url"] == right.url("/2")] == [1]
                first, second = (whole.json("search", "walrus", "--limit", limit) for limit in (3, 8))
                assert second[:3] == first
                only = whole.json("search", "walrus", "--site", right.url("/"), "--limit", 50)
                assert {urlsplit(row["url"]).port for row in only} == {right.port}
                assert "cannot be read" in whole.run("search", "title:(", code=2).err
                refused = urllib.request.Request(server.url, data=b"{}", headers={"Authorization": "Bearer x"})
                with pytest.raises(urllib.error.HTTPError, match="401"):
                    urllib.request.urlopen(refused)


def test_a_shard_without_pages_answers_a_search(new_cluster: NewCluster, tmp_path: Path) -> None:
    layout = new_cluster(SHARDS)
    for shard in range(SHARDS):
        layout.prepare_folder(tmp_path / f"work{shard}", shard, "[settings]\n")
    with closing(PostgresStore(layout.target.of_shard(1))) as store:
        fill(store)
    with closing(layout.open()) as cluster, ExitStack() as stack:
        for shard in range(SHARDS):
            stack.enter_context(SearchServer(cluster, shard, tmp_path / f"work{shard}"))
        found = search_shards(layout, {"query": "otter"}, range(SHARDS), limit=9)
    assert (list(found), found.unanswered) == ([], (1,))  # shard 1 has pages, but no index on this machine


def test_a_check_is_about_all_shards(crawled: Crawled) -> None:
    whole, one, left, _ = crawled
    found, expected = whole.json("check"), one.json("check")
    assert (found["clean"], found["problems"]) == (True, [])
    for name in ("pages", "visits", "versions"):
        assert found["checked"][name] == expected["checked"][name] > 0
    layout = layout_of(whole.folder)
    with closing(PostgresStore(layout.target.of_shard(layout.shard_of_url(left.url("/"))))) as store:
        store.db.run("UPDATE pages SET visits = visits + 1 WHERE id = 0")
        broken = whole.run("check", "--json", code=None)
        store.db.run("UPDATE pages SET visits = visits - 1 WHERE id = 0")
    (problem,) = json.loads(broken.out)["problems"]
    assert broken.code != 0
    assert problem["what"].startswith(f"shard {layout.shard_of_url(left.url('/'))}: ")
    with closing(layout.open()) as cluster:
        run = cluster.runs.request("crawl", policy="", budget=0, seed=0, settings="", options={})
        busy = whole.run("check", code=None)
        cluster.runs.finish(run)
    assert busy.code != 0
    assert f"crawl {run} is under way" in busy.err


@pytest.mark.parametrize(("limit", "depth"), [((), 1), (("--per-minute", 0.02), 0)], ids=["free", "limited"])
def test_anchors_are_those_of_the_sites_of_all_shards(crawled: Crawled, limit: tuple[object, ...], depth: int) -> None:
    whole, one, left, right = crawled
    found, expected = (repo.json("anchor", *limit) for repo in (whole, one))
    assert [row["site"] for row in found] == sorted(site.url("").rstrip("/") for site in (left, right))
    for mine, other in zip(found, sorted(expected, key=lambda row: str(row["site"])), strict=True):
        assert (mine["site"], mine["pages"], mine["recommended"]) == (
            other["site"],
            other["pages"],
            other["recommended"],
        )
        assert (mine["anchor"]["url"], mine["recommended"]["n"]) == (other["anchor"]["url"], depth)
        assert whole.json("anchor", mine["site"], *limit)["recommended"] == mine["recommended"]


def test_what_a_cluster_cannot_do_it_says(crawled: Crawled) -> None:
    said = crawled[0].run("move", "--to", "sqlite", code=None)
    assert said.code != 0
    assert "are in PostgreSQL" in said.err
