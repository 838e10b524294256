"""`recrawl check --repair` in a cluster: each worker repairs its shard, and the index on its machine."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.worker import ShardWorker
from recrawl.record import check
from recrawl.record.store.postgres.store import PostgresStore
from tests import clusters
from tests.object_store import ObjectStore
from tests.world import Repo, Site, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


@contextmanager
def crawled(layout: Layout, folder: Path) -> Iterator[tuple[Repo, Callable[..., str], Callable[..., str]]]:
    """A cluster whose workers have crawled two hosts and go on: its folder, and the URLs of each host."""
    repo = Repo(folder / "cluster")
    with Site({"/": page("root", "/1"), "/1": page("walrus")}) as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        clusters.configure(repo.folder, one("/"), two("/"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, folder / "work")):
            repo.json("crawl")
            yield repo, one, two


def problems(report: dict[str, Any]) -> dict[str, str]:
    """What was wrong, and what was done about it."""
    return {problem["what"]: problem["repaired"] for problem in report["problems"]}


def test_workers_repair_their_shards(tmp_path: Path, new_cluster: NewCluster, object_store: ObjectStore) -> None:
    layout = new_cluster(2)
    prefix = urlsplit(layout.archive).path.strip("/")
    with crawled(layout, tmp_path) as (repo, one, two):
        assert repo.json("check", "--repair")["problems"] == []
        with closing(PostgresStore(layout.target.of_shard(1))) as store:
            store.db.run("UPDATE pages SET visits = visits + 1 WHERE id = 0")
        (name,) = (name for name in object_store.objects(prefix) if name.startswith("s000/archive/"))
        object_store.remove(prefix, name)
        for part in (tmp_path / "work" / "s001" / "index").glob("*.store"):
            part.write_bytes(b"walrus")
        broken = json.loads(repo.run("check", "--json", code=1).out)
        repaired = repo.json("check", "--repair")
        again = repo.json("check", "--repair")
        found = repo.found("walrus")
    assert repaired["clean"]
    done = problems(repaired)
    assert done.keys() & problems(broken).keys() == {what for what in done if "index" not in what}
    missing = next(what for what in done if " is missing in s3://" in what)
    assert missing.startswith("shard 0: ")
    assert done[missing] == "put again from the copy in the folder"
    assert name in object_store.objects(prefix)
    indexes = [what for what in done if "index" in what]
    assert [what.partition(":")[0] for what in indexes] == ["shard 1"]
    assert done[indexes[0]] == "rebuilt from database and archive"
    assert "computed again from the other tables" in done.values()
    assert (again["clean"], again["problems"]) == (True, [])
    assert again["checked"] == repaired["checked"]
    assert again["checked"]["pages"] == 4
    assert found == {one("/1"), two("/1")}


def test_a_version_whose_object_is_lost_is_marked_and_downloaded_again(
    tmp_path: Path, new_cluster: NewCluster, object_store: ObjectStore
) -> None:
    layout = new_cluster(2)
    prefix = urlsplit(layout.archive).path.strip("/")
    with crawled(layout, tmp_path) as (repo, one, two):
        for name in [name for name in object_store.objects(prefix) if name.startswith("s000/archive/")]:
            object_store.remove(prefix, name)
            (tmp_path / "work" / name).unlink()
        repaired = repo.json("check", "--repair")
        assert "is lost" in repo.run("show", two("/1"), code=1).err
        repo.json("cycle", "--policy", "round-robin", "--budget", 100)
        assert "walrus" in repo.run("show", two("/1")).out
        assert "walrus" in repo.run("show", one("/1")).out
    lost = [what for what in problems(repaired) if "cannot be read" in what]
    assert len(lost) == 2
    assert all(what.startswith("shard 0: the version of ") for what in lost)


def test_a_repair_goes_on_with_another_worker(
    tmp_path: Path, new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, ended, check_file = new_cluster(2), threading.Event(), check._check_file
    first, second = (
        ShardWorker(layout, 0, tmp_path / name, seconds=clusters.LEASE, notify=lambda _: None) for name in ("a", "b")
    )

    def disturbed(*given: Any) -> None:
        check_file(*given)
        ended.set()
        first.end()

    with crawled(layout, tmp_path) as (repo, _, _):
        pass
    monkeypatch.setattr(check, "_check_file", disturbed)
    other = clusters.workers(layout, tmp_path / "work")[1]
    with clusters.working(ClusterCoordinator(layout), first, other, second):
        report = repo.json("check", "--repair")
    assert ended.is_set()
    assert (report["clean"], report["checked"]["pages"]) == (True, 4)
