"""Where a cluster and its shards are, and the journal of their rounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import cast

import pytest

import recrawl
from recrawl.cluster.layout import Layout, create_cluster, is_cluster, layout_at, layout_of
from recrawl.cluster.run_requests import follow_run, request_run
from recrawl.errors import NewerRepository, RepositoryBusy, RepositoryError, StorageFailure, UsageError
from recrawl.record.store import open_store
from recrawl.record.store.postgres.cluster.rounds import RoundRow
from recrawl.record.store.postgres.cluster.runs import DONE, IDLE, RUNNING
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.store import PostgresStore
from tests.object_store import ObjectStore
from tests.world import command

NewCluster = Callable[[int], Layout]


def test_init_makes_a_cluster_whose_shards_are_ordinary_stores(
    tmp_path: Path, postgres_url: str, object_store: ObjectStore
) -> None:
    folder, store, archive = tmp_path / "news", f"{postgres_url}?schema=init_news", object_store.url("init-news")
    made = command("init", folder, "--store", store, "--archive", archive, "--shards", 3, "--json")
    assert made.code == 0, made.err
    assert is_cluster(folder)
    layout = layout_of(folder)
    assert layout == Layout(store, archive, 3) == layout_at(store)
    for shard in range(3):
        work = tmp_path / f"work{shard}"
        layout.prepare_folder(work, shard, "delay = 2\n")
        with closing(open_store(work)) as opened:
            assert isinstance(opened, PostgresStore)
            assert opened.db.target.schema == f"init_news_s00{shard}"
            assert opened.next_id("pages") == 0
        assert f"init-news/s00{shard}" in (work / "archive.toml").read_text()
    with pytest.raises(UsageError, match="shards 0 to 2"):
        layout.store_of(3)
    with pytest.raises(NewerRepository, match="cluster-0003"):  # what an earlier version says of it
        PostgresStore(layout.target)
    with closing(open_store(folder)) as whole:
        assert whole.count("pages") == 0


def test_a_cluster_needs_a_database_and_an_object_store(tmp_path: Path, postgres_url: str) -> None:
    refused = command("init", tmp_path / "x", "--shards", 2, "--store", postgres_url)
    assert refused.code == 2
    assert "--archive s3://..." in refused.err
    assert command("init", tmp_path / "x", "--shards", 2).code == 2
    assert command("init", tmp_path / "x", "--shards", 2000, "--store", postgres_url, "--archive", "s3://x/y").code == 2
    assert not (tmp_path / "x").exists()


def test_a_schema_holds_one_cluster(tmp_path: Path, new_cluster: NewCluster, object_store: ObjectStore) -> None:
    layout = new_cluster(1)
    with pytest.raises(RepositoryError, match="choose another schema"):
        create_cluster(tmp_path / "two", store=layout.store, archive=object_store.url("another"), shards=1)
    with pytest.raises(RepositoryError, match="choose another prefix"):
        create_cluster(tmp_path / "two", store=layout.store, archive=layout.archive, shards=1)


def test_all_hosts_of_a_domain_belong_to_one_shard() -> None:
    layout = Layout("postgresql:///x", "s3://pages/x", 64)
    urls = ("http://a.example.co.uk/", "https://example.co.uk:8443/x?y", "https://www.example.co.uk/")
    assert len({layout.shard_of_url(url) for url in urls}) == 1


def test_a_run_is_quiet_when_all_shards_are_and_no_link_waits(new_cluster: NewCluster) -> None:
    with closing(new_cluster(2).open()) as cluster:
        run = cluster.runs.request("crawl", policy="", budget=0, seed=0, settings="", options={"delay": 0})
        found = cluster.runs.current()
        assert found is not None
        assert (found.id, found.kind, found.started, found.visits) == (run, "crawl", None, None)
        cluster.runs.join(run, 0, 10)
        cluster.runs.report(run, 0, IDLE, {"visits": 3})
        assert not cluster.runs.quiet(run, 2)
        cluster.runs.report(run, 1, DONE)
        assert cluster.runs.quiet(run, 2)
        sql = "INSERT INTO outbox_links (shard, key, url, depth, alias) VALUES (0, 1, 'http://a.example/', 1, '')"
        cluster.db.run(sql)
        assert not cluster.runs.quiet(run, 2)
        cluster.runs.report(run, 0, RUNNING)
        (link,) = cluster.links.waiting(0, 10)
        cluster.links.remove([link])
        assert not cluster.runs.quiet(run, 2)
        cluster.runs.report(run, 0, IDLE)
        assert cluster.runs.quiet(run, 2)
        shard = cluster.runs.shards(run)[0]
        assert (shard.pages, shard.tally) == (10, {"visits": 3})
        cluster.runs.finish(run)
        assert cluster.runs.current() is None


def test_a_cycle_that_was_stopped_is_resumed_unless_it_is_abandoned(tmp_path: Path, new_cluster: NewCluster) -> None:
    with closing(new_cluster(1).open()) as cluster, recrawl.open(tmp_path / "cluster") as repo:
        assert repo.abandon_cycle() is None
        values, text = repo.settings, ""
        for abandoned in (False, True):
            run, resumed = request_run(cluster, "cycle", values, text, shards=1)
            assert not resumed
            with pytest.raises(RepositoryBusy, match=f"cycle {run.id} is under way"):
                request_run(cluster, "crawl", values, text, shards=1)
            cluster.runs.start(run.id, 5)
            cluster.runs.ask_to_stop(run.id)
            cluster.runs.finish(run.id)
            if abandoned:
                assert repo.abandon_cycle() == run.id
                assert request_run(cluster, "cycle", values, text, shards=1)[0].id != run.id
                return
            again, resumed = request_run(cluster, "cycle", values, text, shards=1)
            assert resumed
            assert again.id == run.id
            cluster.runs.finish(run.id)


def test_who_comes_while_a_round_is_asked_takes_part_in_the_next(new_cluster: NewCluster) -> None:
    with closing(new_cluster(2).open()) as cluster:
        run = cluster.runs.request("cycle", policy="shock", budget=5, seed=0, settings="", options={})
        journal = cluster.rounds
        assert journal.arrive(run, 0, 1, totals=b"a", returned=0)
        first = RoundRow(0, "new", 5, 5, 0, b"sum", [1], settled=False)
        assert not journal.ask(run, first._replace(present=[0, 1]))
        assert journal.ask(run, first)
        assert journal.get(run, 0) == first
        assert not journal.arrive(run, 0, 0, totals=b"b", returned=0)
        assert journal.arrive(run, 1, 0, totals=b"b", returned=0)
        journal.offer(run, 0, 1, b"offer")
        assert not journal.settle(run, 0, [], {})
        assert journal.settle(run, 0, [1], {1: (7, 3)})
        assert journal.cut(run, 0, 1) == (7, 3)
        assert journal.cut(run, 0, 0) is None
        assert [it.settled for it in journal.rounds(run)] == [True]
        assert [it.round for it in journal.of_shard(run, 0)] == [1]


def test_nodes_and_workers_come_drain_and_go(new_cluster: NewCluster) -> None:
    with closing(new_cluster(2).open()) as cluster:
        nodes = cluster.nodes
        nodes.node_seen("a", "host")
        assert not nodes.worker_seen("w", "a", "host", 7)
        assert nodes.drain_worker("w")
        assert nodes.worker_seen("w", "a", "host", 7)
        assert nodes.drain_node("a")
        assert not nodes.drain_node("b")
        assert [(it.name, it.draining) for it in nodes.nodes()] == [("a", True)]
        nodes.place(1, "a")
        nodes.place(1, "b")
        assert nodes.placements() == {1: "b"}
        nodes.worker_gone("w")
        nodes.node_gone("a")
        assert nodes.workers() == []
        assert nodes.nodes() == []


def test_a_command_says_that_the_database_is_away_and_back(new_cluster: NewCluster) -> None:
    layout, times = new_cluster(1), itertools.count(0.0, 2.0)
    said: list[str] = []
    with closing(layout.open()) as cluster:
        number = cluster.runs.request("crawl", policy="", budget=0, seed=0, settings="", options={})
        cluster.runs.finish(number)
        run = cluster.runs.get(number)

    class Away:
        shards, tries = 1, 0

        def open(self) -> ClusterStore:
            self.tries += 1
            if self.tries < 5:
                raise StorageFailure("the server does not answer")
            return layout.open()

    report = follow_run(cast(Layout, Away()), run, notify=said.append, timer=lambda: next(times))
    assert report.finished
    assert said == ["waiting for the database: the server does not answer", "the database is back"]


def test_what_a_shard_writes_wakes_the_coordinator_and_no_other_shard(new_cluster: NewCluster) -> None:
    layout = new_cluster(2)
    with ExitStack() as open_:
        writer, shard, coordinator = (open_.enter_context(closing(layout.open())) for _ in range(3))
        run = writer.runs.request("cycle", policy="", budget=1, seed=0, settings="", options={})
        waits = {"shard": shard.wait, "coordinator": coordinator.wait_for_shards}

        def woken(write: Callable[[], object]) -> set[str]:
            while any(wait(0) for wait in waits.values()):  # begins to listen, or takes what came before
                pass
            write()
            return {name for name, wait in waits.items() if wait(0.5)}

        row = RoundRow(0, "batch", 1, 1, 0, b"", [0], settled=False)
        assert woken(lambda: writer.runs.join(run, 0, 5)) == {"coordinator"}
        assert woken(lambda: writer.runs.start(run, 1)) == {"shard"}
        assert woken(lambda: writer.rounds.arrive(run, 0, 0, totals=b"", returned=0)) == {"coordinator"}
        assert woken(lambda: writer.rounds.ask(run, row)) == {"shard"}
        assert woken(lambda: writer.rounds.offer(run, 0, 0, b"")) == {"coordinator"}
        assert woken(lambda: writer.rounds.settle(run, 0, [0], {0: (0, 1)})) == {"shard"}
        assert woken(lambda: writer.runs.report(run, 0, RUNNING)) == set()
        assert woken(lambda: writer.runs.report(run, 0, DONE)) == {"coordinator"}
