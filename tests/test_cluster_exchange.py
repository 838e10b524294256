"""Chunks and imports of a cluster: as on one machine, whatever the shard of a page."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from tests import clusters
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
    assert [change["url"] for change in changed if change["op"] == "put"] == [two("/1"), one("/1")]
    assert lines(repo, "--since", "1d") == whole
    alone = Repo.create(tmp_path / "alone")
    assert "has 1: start with a new state file" in alone.run("chunks", "--state", state, code=2).err
