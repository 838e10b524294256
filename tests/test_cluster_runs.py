"""Crawls and cycles of a cluster: workers and a coordinator that share only PostgreSQL and an object store."""

from __future__ import annotations

import contextlib
import functools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl import settings
from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.crawl import cycles
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from recrawl.record.store import postgres_target
from recrawl.record.store.postgres.cluster.runs import DONE, ShardRun
from recrawl.record.store.postgres.store import PostgresStore
from tests import clusters
from tests.world import Reply, Repo, Site, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


def visited(layout: Layout, shard: int) -> dict[str, int]:
    """How often each page of a shard was visited, as recorded."""
    with closing(PostgresStore(postgres_target(layout.store_of(shard)))) as store:
        return dict(store.db.run("SELECT url, count(*) FROM visits v JOIN pages p ON p.id = v.page GROUP BY url"))


def test_a_crawl_and_a_cycle_over_two_shards(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, repo = new_cluster(2), Repo(tmp_path / "cluster")
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        paths = [f"/{n}" for n in range(6)]
        site["/a"] = page("root of one", *paths, two("/from-one"))
        site["/b"] = page("root of two", *paths)
        site["/from-one"] = page("a page of two that only one links", one("/back"))
        site.pages |= {path: page(f"walrus {path}") for path in (*paths, "/back")}
        clusters.configure(repo.folder, one("/a"), two("/b"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            crawl = repo.json("crawl")
            for path in ("/1", "/2"):
                site[path] = page(f"otter {path}")
            cycle = repo.json("cycle", "--policy", "round-robin", "--budget", 100)
            refused = repo.run("cycle", "--policy", "greedy", code=2).err
    assert "because it divides the budget among all sites at once" in refused
    assert visited(layout, 1) == {one(path): 2 for path in ("/a", *paths, "/back")}
    assert visited(layout, 0) == {two(path): 2 for path in ("/b", *paths, "/from-one")}
    assert crawl["finished"]
    assert (crawl["new"], crawl["visits"]) == (16, 16)
    assert cycle["finished"]
    assert (cycle["unchanged"], cycle["changed"], cycle["visits"]) == (12, 4, 16)


def archives(layout: Layout) -> int:
    """How many archive files all shards have put into the object store."""
    counts = []
    for shard in range(layout.shards):
        with closing(PostgresStore(postgres_target(layout.store_of(shard)))) as store:
            counts.append(len(store.warcs.names()))
    return sum(counts)


def test_visits_are_committed_by_size_and_time_however_many_rounds_a_cycle_has(
    tmp_path: Path, new_cluster: NewCluster
) -> None:
    """Each commit puts an archive file: nine visits in nine rounds need one for each shard."""
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        paths = [f"/{n}" for n in range(6)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        clusters.configure(folder, one("/"), two("/"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            clusters.run(layout, folder, "crawl")
            before = archives(layout)
            for path in paths:
                site[path] = page(f"otter {path}")
            report = clusters.run(layout, folder, "cycle", policy="shock(batches=9)", budget=9)
    assert report.visits == 9
    assert archives(layout) - before <= 4  # one for each shard, and more only where it took longer than 5 s


def test_a_cycle_that_is_stopped_goes_on_with_its_own_policy_and_budget(
    tmp_path: Path, new_cluster: NewCluster
) -> None:
    layout, folder, stopped = new_cluster(2), tmp_path / "cluster", threading.Event()
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        paths = [f"/{n}" for n in range(12)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        clusters.configure(folder, one("/"), two("/"), timeout=60.0, stall=60.0)
        with (
            clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")),
            recrawl.open(folder) as repo,
        ):
            repo.crawl()
            site.forget()
            site.every = lambda _: None if stopped.is_set() or len(site.asked()) <= 4 else Reply(until=stopped)
            first = repo.cycle(policy="shock(batches=6)", budget=14, stop=lambda: len(site.asked()) > 4)
            assert not first.finished
            stopped.set()
            second = repo.cycle(policy="round-robin", budget=1)
            checked = repo.recheck(one("/3"))
            counts = visited(layout, 0) | visited(layout, 1)
            (turn,) = repo.run(every="1d", count=1, budget=5, policy="round-robin")
    assert checked is not None
    assert checked.visits == 1
    assert (turn.policy, turn.visits) == ("round-robin", 5)
    assert second.resumed
    assert second.finished
    assert (second.policy, second.visits) == (first.policy, 14)
    assert sum(counts.values()) == 26 + 14 + 1
    assert max(counts.values()) <= 3


WORKER = """
import sys
from pathlib import Path
from recrawl.cluster.layout import layout_at
from recrawl.cluster.worker import ShardWorker
ShardWorker(layout_at(sys.argv[1]), 0, Path(sys.argv[2]), seconds=2.0).run()
"""


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hanging"])
def test_a_worker_that_is_lost_in_a_cycle_is_succeeded_on_another_machine(
    tmp_path: Path, new_cluster: NewCluster, fault: signal.Signals
) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site() as site, contextlib.ExitStack() as stack:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        paths = [f"/{n}" for n in range(20)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        text = clusters.configure(folder, one("/"), two("/"))
        stack.enter_context(
            clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")[1:])
        )
        lost = subprocess.Popen([sys.executable, "-c", WORKER, layout.store, str(tmp_path / "first")])
        stack.callback(lost.wait)
        stack.callback(lost.kill)
        clusters.run(layout, folder, "crawl")
        for path in paths[::3]:
            site[path] = page(f"otter {path}")
        site.forget()

        def fail_in_the_middle(_asked: object) -> None:
            if sum(asked.headers["host"].startswith("two") for asked in site.log) == 9:
                lost.send_signal(fault)
                stack.enter_context(clusters.working(clusters.workers(layout, tmp_path / "second")[0]))

        site.every = fail_in_the_middle
        report = clusters.run(layout, folder, "cycle", policy="shock(batches=6)", budget=30)
        assert lost.poll() == (-fault if fault == signal.SIGKILL else None)
        lost.send_signal(signal.SIGCONT)  # it has lost its lease: it records nothing any more
        clusters.run(layout, folder, "crawl")
    assert report.visits == 30
    counts = visited(layout, 0) | visited(layout, 1)
    assert sorted(counts.values()) == [1] * 12 + [2] * 30
    assert not (tmp_path / "second" / "s000" / "recrawl.db").exists()
    assert text == (tmp_path / "second" / "s000" / "recrawl.toml").read_text()


def test_a_seed_that_moves_to_another_shard_is_followed_there(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site() as site:
        old, new = site.url("/", "one.localhost"), functools.partial(site.url, host="two.localhost")
        site["/new"] = page("moved here", "/more")
        site["/more"] = page("walrus")
        site.every = lambda asked: (
            Reply(status=301, headers={"Location": new("/new")}) if asked.headers["host"].startswith("one") else None
        )
        clusters.configure(folder, old)
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            clusters.run(layout, folder, "crawl", options={"allow_private": True})
    assert visited(layout, 1) == {old: 1}
    assert visited(layout, 0) == {new("/new"): 1, new("/more"): 1}


def test_a_crawl_of_a_shard_goes_on_with_links_of_others_until_none_has_any_left(
    tmp_path: Path, new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, folder, begun = new_cluster(2), tmp_path / "cluster", []

    def counted(storage: Storage, *given: Any, **named: Any) -> cycles.Summary:
        begun.append(storage.folder.name)
        return crawl(storage, *given, **named)

    crawl = cycles.crawl
    monkeypatch.setattr(cycles, "crawl", counted)
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        site["/a"], site["/b"] = page("root of one", two("/1")), page("root of two")
        for n in range(1, 6):  # each page is found only by the shard that does not own it
            site[f"/{n}"] = page(f"walrus {n}", (one if n % 2 else two)(f"/{n + 1}"))
        site["/6"] = page("the last one")
        clusters.configure(folder, one("/a"), two("/b"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            report = clusters.run(layout, folder, "crawl")
            states = [part.state for part in _parts(layout)]
    assert (report.finished, report.visits) == (True, 8)
    assert visited(layout, 1) == {one(path): 1 for path in ("/a", "/2", "/4", "/6")}
    assert visited(layout, 0) == {two(path): 1 for path in ("/b", "/1", "/3", "/5")}
    assert sorted(begun) == ["s000", "s001"]
    assert states == [DONE, DONE]


def _parts(layout: Layout) -> list[ShardRun]:
    """How far the shards are in the newest run."""
    with closing(layout.open()) as cluster:
        return list(cluster.runs.shards(cluster.runs.newest()[0].id).values())


def test_a_server_that_is_away_is_a_failure_in_the_report(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site({"/": page("there")}) as site, socket.socket() as refused:
        refused.bind(("127.0.0.1", 0))  # nobody listens
        away = f"http://{HOSTS[1]}:{refused.getsockname()[1]}/"
        clusters.configure(folder, site.url("/", host=HOSTS[0]), away)
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            crawl = clusters.run(layout, folder, "crawl")
    assert crawl.finished
    assert crawl.outcomes == {Outcome.NEW: 1, Outcome.FAILED: 1}


def test_a_link_that_a_cycle_finds_is_known_to_its_shard_in_the_next_one_and_visited_after_it(
    tmp_path: Path, new_cluster: NewCluster
) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        site["/a"], site["/b"] = page("root of one"), page("root of two")
        clusters.configure(folder, one("/a"), two("/b"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            clusters.run(layout, folder, "crawl")
            site["/a"] = page("root of one, with a link", two("/new"))
            site["/new"] = page("a page of two that only one links")
            for _ in range(3):
                clusters.run(layout, folder, "cycle", policy="round-robin", budget=10)
    assert set(visited(layout, 0)) == {two("/b"), two("/new")}


def test_a_machine_that_gets_a_shard_back_searches_it_only_when_its_index_is_complete(
    tmp_path: Path, new_cluster: NewCluster
) -> None:
    layout, folder = new_cluster(1), tmp_path / "cluster"
    with Site() as site, recrawl.open(folder) as repo:
        paths = [f"/{n}" for n in range(4)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        clusters.configure(folder, site.url("/"))
        machines = [functools.partial(clusters.workers, layout, tmp_path / name) for name in ("first", "second")]
        with clusters.working(ClusterCoordinator(layout)):
            with clusters.working(*machines[0]()):
                repo.crawl()
                assert len(repo.search("walrus")) == 4
            site["/1"] = page("otter")
            with clusters.working(*machines[1]()):
                _owned(layout)
                assert repo.search("walrus").unanswered == (0,)
                repo.cycle(policy="round-robin", budget=9)
                assert (len(repo.search("walrus")), len(repo.search("otter"))) == (3, 1)
            with clusters.working(*machines[0]()):
                _owned(layout)
                assert repo.search("walrus").unanswered == (0,)  # its index is older than the move
                repo.recheck(site.url("/2"))
                assert (len(repo.search("walrus")), len(repo.search("otter"))) == (3, 1)


def _owned(layout: Layout) -> None:
    """Wait until the shard has a worker."""
    with closing(layout.open()) as cluster:
        while not cluster.leases.holders():
            threading.Event().wait(0.05)


def test_a_site_is_removed_from_the_shard_that_has_it(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, repo = new_cluster(2), Repo(tmp_path / "cluster")
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        site.pages |= {"/": page("root", "/1", "/2"), "/1": page("walrus"), "/2": page("otter")}
        clusters.configure(repo.folder, one("/"), two("/"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            repo.json("crawl")
            assert len(repo.json("search", "walrus")) == 2
            assert repo.json("rm", one("/")) == {"removed": [one("/")], "pages": 3}
            assert [row["url"] for row in repo.json("search", "walrus")] == [two("/1")]
            cycle = repo.json("cycle", "--policy", "round-robin", "--budget", 100)
            unknown = repo.run("rm", one("/"), code=None)
    assert cycle["visits"] == 3
    assert [seed.url for seed in settings.load(repo.folder / "recrawl.toml").seeds] == [two("/")]
    assert unknown.code != 0
    assert "was never added" in unknown.err
    assert visited(layout, 1) == {one("/"): 2, one("/1"): 2, one("/2"): 2}  # the second time, they were removed


def test_a_clock_that_is_set_does_not_pace_requests(
    tmp_path: Path, new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, folder, real = new_cluster(1), tmp_path / "cluster", time.time
    with Site() as site:
        paths = [f"/{n}" for n in range(4)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        clusters.configure(folder, site.url("/"), delay=0.4)

        def set_clock(_asked: object) -> None:  # in the pause after the answer
            hour = 3600 * len(site.log)
            threading.Timer(0.1, monkeypatch.setattr, (time, "time", lambda: real() + hour)).start()

        site.every = set_clock
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            clusters.run(layout, folder, "crawl")
        times = [asked.at for asked in site.log]
    assert len(times) >= 5
    assert min(after - before for before, after in pairwise(times)) >= 0.35


def test_a_site_that_its_shard_holds_to_its_share_is_named(tmp_path: Path, new_cluster: NewCluster) -> None:
    """One host was rewritten before each of many visits, the other one before some; both are of the same size."""
    layout, repo = new_cluster(2), Repo(tmp_path / "cluster")
    paths = ["/", *(f"/{n}" for n in range(1, 20))]
    with Site({path: page(f"walrus {path}", *paths) for path in paths}) as site:
        wild, calm = (site.url(host=host) for host in HOSTS)
        clusters.configure(repo.folder, wild, calm)
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            repo.crawl()
            for shard, changes in ((1, "12"), (0, "3 + id % 7")):
                with closing(PostgresStore(postgres_target(layout.store_of(shard)))) as store:
                    store.db.run(
                        f"""UPDATE pages SET visits = 12, changes = {changes}, found = found - 100 * 86400,
                        last_visit = last_visit - (5 + id % 5) * 86400, last_try = last_try - (5 + id % 5) * 86400,
                        last_change = last_change - {5 if shard else 30} * 86400"""
                    )
            repo.json("cycle", "--policy", "round-robin", "--budget", 10)
    held = repo.json("status")["spending"]["held"]
    assert [row["site"] for row in held] == [wild.rstrip("/")]
    assert held[0]["right"] == 5
    assert "is held to its share" in repo.run("status").out
    last = [repo.json("why", site.url(path, host=HOSTS[0]))["why"] for path in paths]
    assert any("its site is held to its share" in sentence for sentences in last for sentence in sentences)
