"""Requisites on hosts of other shards: their owner requests them, and pages are shown with them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.opening import open_repository
from recrawl.errors import NotKnown
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.repository.replay import show
from tests import clusters
from tests.test_crawl_requisites import PNG, css, png
from tests.world import Repo, Site, moved, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


def waiting(layout: Layout) -> int:
    """Requisites that wait for their owner."""
    with closing(layout.open()) as cluster:
        return sum(len(cluster.requisites.waiting(shard, 100)) for shard in range(layout.shards))


def test_requisites_of_other_shards_are_downloaded_by_their_owners(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, repo = new_cluster(2), Repo(tmp_path / "cluster")
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        needs = f"<link rel=stylesheet href={two('/s.css')}><img src={two('/i.png')}><img src=/m.png>"
        site["/"] = page("Home", "/a") + needs.encode()
        site["/a"] = page("A") + needs.encode()
        site["/s.css"] = css("@import 't.css'; body { background: url(bg.png) }", etag='"1"')
        site["/t.css"] = css(f"p {{ background: url({one('/back.png')}) }}")
        site["/m.png"] = moved(two("/moved.png"))
        for name in ("i", "bg", "back", "moved"):
            site[f"/{name}.png"] = png(PNG + name.encode())
        clusters.configure(repo.folder, one("/"), requisites="all", requisite_hours=0, sitemaps=False)
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            crawl = repo.json("crawl", "--allow-private")
            asked = Counter((one.host.partition(":")[0], one.path) for one in site.log if one.path != "/robots.txt")
            status = repo.json("status")
            for hours in (0, 0, 100):  # a cycle leaves to the next what is found after the shard of the owner has ended
                clusters.configure(repo.folder, one("/"), requisite_hours=hours)
                repo.json("cycle", "--allow-private", "--policy", "round-robin", "--budget", 9)
        sheets = [one for one in site.log if one.path == "/s.css"]
    first = {(HOSTS[0], path) for path in ("/", "/a", "/m.png")} | {
        (HOSTS[1], path) for path in ("/s.css", "/t.css", "/i.png", "/bg.png")
    }
    assert first <= asked.keys() <= first | {(HOSTS[0], "/back.png"), (HOSTS[1], "/moved.png")}
    assert set(asked.values()) == {1}
    assert {one.host.partition(":")[0] for one in site.log if one.path == "/s.css"} == {HOSTS[1]}
    assert len(sheets) >= 2
    assert sheets[-1].headers["if-none-match"] == '"1"'
    assert crawl["requisites"] >= 5
    assert status["requisites"] == 7
    assert waiting(layout) == 0
    with open_repository(repo.folder) as whole:
        version = whole.storage.store.next_id("versions") - 1
        for name in ("i", "bg", "back", "moved"):
            where = one if name == "back" else two
            assert show(whole, version, where(f"/{name}.png"), "/x/").body == PNG + name.encode()
        assert show(whole, version, one("/m.png"), "/x/").body == PNG + b"moved"
        assert b"bg.png" in show(whole, version, two("/s.css"), "/x/").body
        with pytest.raises(NotKnown):
            show(whole, version, two("/none.png"), "/x/")
    with closing(PostgresStore(layout.target.of_shard(1))) as store:
        versions = store.db.run("SELECT url FROM requisites WHERE version >= 0").fetchall()
    assert versions == [(one("/back.png"),)]
