"""A cluster whose processes are killed, cut off and frozen: a referee web server, and nothing lost or doubled."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import pytest
from benchmarks.cluster_processes import Processes
from benchmarks.cluster_stand import Stand
from benchmarks.cluster_verdict import check_faults, page_faults, request_faults, turns_of, visit_faults, visits_of
from benchmarks.referee import Sites, running
from benchmarks.referee_verdict import judge

from recrawl.model import Outcome
from tests.object_store import ObjectStore

SHARDS = 2
LEASE = 2.0
SITES = Sites(sites=6, pages=6, seed=2)
pytestmark = pytest.mark.slow


@contextmanager
def cluster_of(work: Path, database: str, objects: ObjectStore, schema: str) -> Iterator[tuple[Stand, Processes]]:
    """A cluster of two nodes, each with a worker for both shards."""
    with running(SITES, work / "requests.jsonl", latency=0.01) as web:
        at = Stand(work, database, objects, web, delay=0.2, schema=schema)
        at.create("--shards", str(SHARDS))
        with Processes(at, SHARDS, nodes=2, lease=LEASE).up() as processes:
            processes.settled(SHARDS)
            yield at, processes


def finish(at: Stand, processes: Processes, run: int) -> None:
    """Wait for the end of a run; what has ended is started again."""
    while not at.finished(run):
        processes.tend()
        time.sleep(0.05)


def requests_reach(at: Stand, number: int) -> None:
    """Wait until the web has answered so many requests."""
    while len(at.web.requests()) < number:
        time.sleep(0.02)


def test_a_worker_and_the_coordinator_are_killed_in_a_cycle(
    tmp_path: Path, postgres_url: str, object_store: ObjectStore
) -> None:
    pages = sum(SITES.sizes)
    with cluster_of(tmp_path, postgres_url, object_store, "killed_in_a_cycle") as (at, processes):
        finish(at, processes, at.request("crawl"))
        crawled, before = visits_of(at, SHARDS), len(at.web.requests())
        at.web.generation(3)
        command = at.recrawl("cycle", "--policy", "round-robin", "--budget", str(pages), "--json", stdout=PIPE)
        requests_reach(at, before + pages // 3)
        at.cut_connections()  # of the command, too, which goes on
        processes.kill_one(processes.owners()[0], pause=60)  # its shard goes to the other node
        processes.kill_one("coordinator", pause=0)
        while command.poll() is None:
            processes.tend()
            time.sleep(0.05)
        report = json.loads(command.communicate()[0])
        processes.end()
        visits, rows = visits_of(at, SHARDS), at.web.requests()
        assert judge(rows, at.delay, turns_of(at, SHARDS)).faults == []
        assert page_faults(at, SHARDS) == []
        assert visit_faults(crawled, visits) == []
        assert request_faults(visits, rows)[0] == []
        assert check_faults(at, SHARDS) == []
    assert (command.returncode, report["finished"], report["visits"]) == (0, True, pages)
    changed = sum(int((count > 0).sum()) for count in SITES.versions(3))
    outcomes = Counter(it.outcome for it in visits)
    assert outcomes == {Outcome.NEW: pages, Outcome.CHANGED: changed, Outcome.UNCHANGED: pages - changed}


def test_a_frozen_worker_neither_asks_nor_writes_after_its_lease(
    tmp_path: Path, postgres_url: str, object_store: ObjectStore
) -> None:
    with cluster_of(tmp_path, postgres_url, object_store, "frozen") as (at, processes):
        run = at.request("crawl")
        requests_reach(at, 3 * SITES.sites)
        frozen = processes.owners()[0]
        pid = processes.running[frozen].pid
        processes.stop(frozen)
        while frozen in processes.owners():  # until its shard is taken over
            time.sleep(0.1)
        processes.go_on(frozen, pid)
        finish(at, processes, run)
        visits, rows = visits_of(at, SHARDS), at.web.requests()
        assert judge(rows, at.delay, turns_of(at, SHARDS)).faults == []
        assert (page_faults(at, SHARDS), visit_faults([], visits)) == ([], [])
    assert len(visits) == sum(SITES.sizes)
