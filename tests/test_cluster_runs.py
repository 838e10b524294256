"""Crawls and cycles of a cluster: workers and a coordinator that share only PostgreSQL and an object store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.model import Outcome
from recrawl.record.store import postgres_target
from recrawl.record.store.postgres.store import PostgresStore
from tests import clusters
from tests.world import Site, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


def urls_of(layout: Layout, shard: int) -> set[str]:
    """The URLs of the pages of a shard that were visited."""
    with closing(PostgresStore(postgres_target(layout.store_of(shard)))) as store:
        return {row[0] for row in store.db.run("SELECT url FROM pages WHERE visits > 0")}


def test_a_crawl_and_a_cycle_over_two_shards(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        paths = [f"/{n}" for n in range(6)]
        site["/a"] = page("root of one", *paths, two("/from-one"))
        site["/b"] = page("root of two", *paths)
        site["/from-one"] = page("a page of two that only one links", one("/back"))
        site.pages |= {path: page(f"walrus {path}") for path in (*paths, "/back")}
        clusters.configure(folder, one("/a"), two("/b"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            crawl = clusters.run(layout, folder, "crawl")
            for path in ("/1", "/2"):
                site[path] = page(f"otter {path}")
            cycle = clusters.run(layout, folder, "cycle", policy="round-robin", budget=100)
    assert crawl.finished
    assert urls_of(layout, 1) == {one(path) for path in ("/a", *paths, "/back")}
    assert urls_of(layout, 0) == {two(path) for path in ("/b", *paths, "/from-one")}
    assert crawl.outcomes == {Outcome.NEW: 16}
    assert cycle.finished
    assert cycle.outcomes == {Outcome.UNCHANGED: 12, Outcome.CHANGED: 4}
