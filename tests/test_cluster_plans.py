"""The plan of a cycle over shards: what the cycle then visits, without a worker."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.crawl.reports.next_plan import CyclePlan, ReadyPlan
from recrawl.errors import PolicyError
from recrawl.record.store.postgres.store import PostgresStore
from tests import clusters
from tests.world import Repo, Site, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


def visits(layout: Layout) -> Counter[str]:
    """How often each page was visited, as recorded."""
    found: Counter[str] = Counter()
    for shard in range(layout.shards):
        with closing(PostgresStore(layout.target.of_shard(shard))) as store:
            found.update(url for (url,) in store.db.run("SELECT url FROM visits v JOIN pages p ON p.id = v.page"))
    return found


def spread(layout: Layout) -> None:
    """Let the pages have been visited days ago and hours apart, not all in one second."""
    for shard in range(layout.shards):
        with closing(PostgresStore(layout.target.of_shard(shard))) as store:
            ago = f"864000 + {shard} * 3600 + 7200 *"
            columns = ("found", "last_try", "last_visit", "last_change")
            store.db.run(f"UPDATE pages SET {', '.join(f'{name} = {name} - ({ago} id)' for name in columns)}")
            for table in ("visits", "versions"):
                store.db.run(f"UPDATE {table} SET at = at - ({ago} page)")


@pytest.mark.parametrize("shards", [1, 2])
def test_a_dry_run_names_the_pages_that_the_cycle_visits(tmp_path: Path, new_cluster: NewCluster, shards: int) -> None:
    layout, repo = new_cluster(shards), Repo(tmp_path / "cluster")
    policies = ("shock", "round-robin", "random", "change-frequency")
    with Site() as site:
        paths = [f"/{n}" for n in range(12)]
        site.pages |= {"/": page("root", *paths)} | {path: page(f"walrus {path}") for path in paths}
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        clusters.configure(repo.folder, one("/"), two("/"), policy="shock")
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            repo.json("crawl")
            for path in ("/1", "/2", "/3"):
                site[path] = page(f"otter {path}")
            repo.json("cycle", "--policy", "round-robin", "--budget", 100)
            spread(layout)
            for policy in policies:
                before = visits(layout)
                plan = repo.json("cycle", "--dry-run", "--policy", policy, "--budget", 6)
                assert visits(layout) == before, policy
                repo.json("cycle", "--policy", policy, "--budget", 6)
                made = visits(layout) - before
                assert {row["url"] for row in plan["pages"]} == set(made), policy
        assert (plan["budget"], len(plan["pages"]), sum(made.values())) == (6, 6, 6)
        assert [row["place"] for row in plan["pages"]] == list(range(1, 7))
        assert sum(row["visits"] for row in plan["sites"]) == 6
        share = repo.json("cycle", "--dry-run", "--budget", 0.5)
        said = repo.run("cycle", "--dry-run", "--budget", 6).out
    assert (share["policy"], share["budget"], len(share["pages"])) == ("shock", 13, 13)
    assert said.startswith("shock would use 6 visits of its budget of 6\n")


def test_a_dry_run_refuses_what_a_cycle_refuses(tmp_path: Path, new_cluster: NewCluster) -> None:
    new_cluster(2)
    repo = Repo(tmp_path / "cluster")
    assert "divides the budget among all sites" in repo.run("cycle", "--dry-run", "--policy", "greedy", code=2).err
    assert "invalid budget -1" in repo.run("cycle", "--dry-run", "--budget", "-1", code=2).err
    assert repo.json("cycle", "--dry-run", "--budget", 5)["pages"] == []


def test_a_policy_that_fails_in_one_shard_ends_the_plan(
    tmp_path: Path, new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_cluster(2)
    make = ReadyPlan.make

    def failing(ready: ReadyPlan, **options: bool) -> CyclePlan:
        if failed:
            return make(ready, **options)
        failed.append(True)
        raise PolicyError("walrus")

    failed: list[bool] = []
    monkeypatch.setattr(ReadyPlan, "make", failing)
    assert "walrus" in Repo(tmp_path / "cluster").run("cycle", "--dry-run", "--budget", 5, code=None).err
