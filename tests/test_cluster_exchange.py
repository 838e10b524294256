"""Chunks and imports of a cluster: as on one machine, whatever the shard of a page."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from recrawl.cluster.commands import imports
from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.lab.formats.archive import write
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.store.postgres.store import PostgresStore
from tests import clusters
from tests.object_store import ObjectStore
from tests.world import Repo, Site, page

NewCluster = Callable[[int], Layout]
HOSTS = ("one.localhost", "two.localhost")
"""Hosts of shard 1 and of shard 0."""


def lines(repo: Repo, *words: object) -> list[dict[str, Any]]:
    """What `recrawl chunks` prints."""
    return [json.loads(line) for line in repo.run("chunks", *words).out.splitlines()]


def test_chunks_of_all_shards_go_on_where_they_stopped(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, repo, state = new_cluster(2), Repo(tmp_path / "cluster"), tmp_path / "state.json"
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        site.pages |= {"/": page("root", "/1", "/2"), "/1": page("walrus"), "/2": page("otter")}
        clusters.configure(repo.folder, one("/"), two("/"))
        with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
            repo.json("crawl")
            first, again = lines(repo, "--state", state), lines(repo, "--state", state)
            site["/1"] = page("seal")
            del site["/2"]
            clusters.configure(repo.folder, one("/"), two("/"), gone_hours=0)
            repo.json("cycle", "--policy", "round-robin", "--budget", 100)
            changed = lines(repo, "--state", state)
    assert [change["op"] for change in first] == ["put"] * 6
    assert {change["url"] for change in first} == {where(path) for where in (one, two) for path in ("/", "/1", "/2")}
    assert again == []
    corpus = {change["id"] for change in first}
    for change in changed:
        (corpus.add if change["op"] == "put" else corpus.discard)(change["id"])
    whole = repo.json("chunks")
    assert corpus == {change["id"] for change in whole}
    assert {change["url"] for change in changed if change["op"] == "put"} == {two("/1"), one("/1")}
    assert lines(repo, "--since", "1d") == whole
    alone = Repo.create(tmp_path / "alone")
    assert "has 1: start with a new state file" in alone.run("chunks", "--state", state, code=2).err


def history(file: Path) -> Path:
    """A history of pages on both hosts, with a change, a removal, and a link across shards."""
    one, two = (f"http://{host}" for host in HOSTS)
    rows = [
        (f"{one}/", 100, page("root of one", "/a", f"{two}/linked")),
        (f"{one}/a", 100, page("walrus")),
        (f"{one}/a", 200, page("otter")),
        (f"{two}/", 150, page("root of two")),
        (f"{two}/", 250, None),
    ]
    write(file, *zip(*rows, strict=True))
    return file


def facts(repo: Repo) -> list[dict[str, Any]]:
    """Pages as listed, without numbers and times of this test."""
    names = ("url", "state", "visits", "changes", "title")
    return sorted(({name: row.get(name) for name in names} for row in repo.json("pages")), key=repr)


def handed_over(layout: Layout, store: ObjectStore) -> list[str]:
    """Objects of imports."""
    objects = store.objects(urlsplit(layout.archive).path.strip("/"))
    return sorted(name for name in objects if "/imports/" in name)


def test_an_import_goes_to_the_shards_of_its_pages(
    tmp_path: Path, new_cluster: NewCluster, object_store: ObjectStore
) -> None:
    layout, repo, alone = new_cluster(2), Repo(tmp_path / "cluster"), Repo.create(tmp_path / "alone")
    file, urls = history(tmp_path / "history.parquet"), tmp_path / "urls.txt"
    urls.write_text("http://one.localhost/new\nhttp://two.localhost/new\nno url\n")
    for made in (repo, alone):
        clusters.configure(made.folder, *(f"http://{host}/" for host in HOSTS))
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        made, again = (repo.json("import", urls, file) for _ in range(2))
        found = repo.json("search", "otter")
        only_urls = repo.run("import", urls).out
    assert made == alone.json("import", urls, file) == {"pages": 5, "versions": 4, "refused": ["no url"]}
    assert again == {"pages": 0, "versions": 0, "refused": ["no url"]}
    assert "imported 0 new pages" in only_urls
    assert [row["url"] for row in found] == ["http://one.localhost/a"]
    linked = {"url": "http://two.localhost/linked", "state": "found", "visits": 0, "changes": 0, "title": None}
    assert [row for row in facts(alone) if row not in facts(repo)] == [linked]  # a link waits for the next crawl
    with closing(layout.open()) as cluster:
        assert cluster.links.count(0) == 1
    assert [row["visits"] for row in repo.json("sites")] == [3, 2]
    assert {row["kind"] for row in repo.json("status")["cycles"]} == {"import"}
    for shard in range(2):
        with closing(PostgresStore(layout.target.of_shard(shard))) as store:
            assert store.db.run("SELECT count(*) FROM cycles WHERE finished IS NULL").fetchone()[0] == 0
    assert handed_over(layout, object_store) == []


def test_an_import_goes_on_with_another_worker_and_a_failed_one_leaves_nothing(
    tmp_path: Path, new_cluster: NewCluster, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, repo, file = new_cluster(2), Repo(tmp_path / "cluster"), history(tmp_path / "history.parquet")
    workers, successors = (clusters.workers(layout, tmp_path / name) for name in ("work", "others"))
    fetched, lost = imports.handed_over, [0]

    def disturbed(blobs: Blobs, shard: int, given: dict[str, Any]) -> AbstractContextManager[Any]:
        if shard in lost:
            blobs.remove(f"imports/{given['name']}.parquet")
        elif shard == 1:
            workers[1].end()
        return fetched(blobs, shard, given)

    monkeypatch.setattr(imports, "handed_over", disturbed)
    with clusters.working(ClusterCoordinator(layout), *workers, successors[1]):
        failed = repo.run("import", file, code=None)
        left = handed_over(layout, object_store)
        lost.clear()
        again = repo.json("import", file)
    assert failed.code != 0
    assert "not all pages were imported (shard 0 failed: what is to be imported is no longer in" in failed.err
    assert left == []
    assert again == {"pages": 1, "versions": 1, "refused": []}
    counts = {row["url"]: (row["visits"], row["state"]) for row in repo.json("pages")}
    one, two = (f"http://{host}/" for host in HOSTS)
    assert counts == {one: (1, "live"), f"{one}a": (2, "live"), two: (2, "gone")}


def test_warc_files_of_another_repository_are_imported(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, repo, alone = new_cluster(2), Repo(tmp_path / "cluster"), Repo.create(tmp_path / "alone")
    file = tmp_path / "pages.warc.gz"
    with Site({"/": page("root", "/1"), "/1": page("walrus")}) as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        alone.crawl(one("/"), two("/"))
    alone.run("export", file)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        made = repo.json("import", "warc", file)
        assert repo.found("walrus") == {one("/1"), two("/1")}
        assert "walrus" in repo.run("show", two("/1")).out
    assert (made["pages"], made["versions"], made["refused"]) == (4, 4, [])
    assert facts(repo) == facts(alone)
