"""A repository becomes a cluster: the same answers before and after, whatever interrupts the move."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import layout_at, layout_of
from recrawl.record import packing
from recrawl.record.packing import dictionary
from tests import clusters
from tests.crashes import judge
from tests.object_store import ObjectStore
from tests.test_cluster_reads import shard_stores
from tests.test_crawl_requisites import PNG, css, png
from tests.world import Repo, Site, moved, page

SHARDS = 3
HOSTS = ("one.localhost", "two.localhost", "eight.localhost", "four.localhost")
_NAMES = itertools.count()
Target = tuple[str, str]


@pytest.fixture
def target(postgres_url: str, object_store: ObjectStore) -> Target:
    """The store and the archive of a new cluster."""
    name = f"moved_{next(_NAMES)}"
    return f"{postgres_url}?schema={name}", object_store.url(name)


def fill_web(site: Site) -> dict[str, Any]:
    """Four hosts on one server, with links, redirects and requisites across them; the URL of a path on each."""
    at = {host: functools.partial(site.url, host=host) for host in HOSTS}
    one, two = at[HOSTS[0]], at[HOSTS[1]]
    needs = f"<link rel=stylesheet href={two('/s.css')}><img src={one('/i.png')}><img src=/m.png>".encode()
    links = [f"/{n}" for n in range(4)]
    site["/"] = page("root", *links, "/old", *(at[host]("/0") for host in HOSTS)) + needs
    for n, link in enumerate(links):
        site[link] = page(f"walrus {n}", links[n - 1]) + needs
    site["/old"] = moved(two("/3"), 301)
    site["/s.css"] = css("body { background: url(bg.png) }", etag='"1"')
    site["/m.png"] = moved(two("/i.png"))
    for name in ("i", "bg"):
        site[f"/{name}.png"] = png(PNG + name.encode())
    return at


def crawled(folder: Path, site: Site, *places: str, **settings: Any) -> Repo:
    """A repository that has crawled and refreshed the four hosts; `places` are options of `init`."""
    at = fill_web(site)
    settings = {"requisites": "all", "sitemaps": False} | settings
    if places:
        repo = Repo(folder)
        repo.run("init", *places)
        repo.config(delay=0, timeout=600, **settings)
    else:
        repo = Repo.create(folder, **settings)
    repo.crawl(*(url("/") for url in at.values()))
    site["/1"] = page("otter", "/2", "/new")
    site["/new"] = page("newt")
    repo.later(days=2)
    repo.cycle(60, "--policy", "round-robin")
    del site["/3"]
    repo.later(days=2)
    repo.cycle(9, "--policy", "shock")
    repo.crawl()
    repo.run("tag", "news", at[HOSTS[1]]("/1"), at[HOSTS[2]]("/"))
    return repo


def without_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the numbers of pages and visits, in a fixed order."""
    numbers = ("id", "page", "visit", "version", "first_visit")
    found = [{name: it for name, it in row.items() if name not in numbers} for row in rows]
    return sorted(found, key=repr)


def answers(repo: Repo, at: float) -> dict[str, Any]:
    """What a repository says about itself at a time."""
    with mock.patch.object(Repo, "now", return_value=at):
        return _answers(repo)


def _answers(repo: Repo) -> dict[str, Any]:
    urls, status = sorted(repo.pages()), repo.json("status")
    said: dict[str, Any] = {
        "pages": without_numbers(repo.json("pages")),
        "tagged": without_numbers(repo.json("changes", "--since", "30d", "--tag", "news")),
        "tags": repo.json("tag"),
        "changes": without_numbers(repo.json("changes", "--since", "30d")),
        "sites": without_numbers(repo.json("sites")),
        "log": {url: without_numbers(repo.json("log", url)) for url in urls},
        "spending": without_numbers(status["spending"].pop("sites")),
        "cycles": without_numbers(status.pop("cycles")),
        "status": {
            name: it for name, it in status.items() if "bytes" not in name and name not in ("folder", "searchable")
        },
    }
    for url in urls:
        for words in (["show", url], ["show", "--raw", url], ["diff", url]):
            shown = repo.run(*words, code=None)
            said[" ".join(words)] = (shown.code, shown.out)
        # Predictions and ranks of a page are those within its shard.
        facts = [line.partition(";")[0] for line in repo.run("why", url).out.splitlines()]
        said[f"why {url}"] = [
            line
            for line in facts
            if line.startswith(("  It is", "  Last visit", "  It had changed")) and "likely to have changed" not in line
        ]
    return said


def move(repo: Repo, target: Target, shards: int = SHARDS) -> Any:
    """Make a repository a cluster."""
    return repo.json("move", "--shards", shards, "--to", target[0], "--archive", target[1])


@pytest.fixture
def web() -> Iterator[Site]:
    """An empty web."""
    with Site() as site:
        yield site


@pytest.mark.slow
def test_a_repository_becomes_a_cluster_with_the_same_answers(tmp_path: Path, web: Site, target: Target) -> None:
    repo = crawled(tmp_path / "repo", web)
    now = repo.now()
    before = answers(repo, now)
    shutil.copytree(repo.folder, tmp_path / "copy")
    done = move(repo, target)
    assert done["shards"] == SHARDS
    assert Path(done["old"]).exists()
    after = answers(repo, now)
    for name, said in before.items():
        assert after[name] == said, name
    layout = layout_of(repo.folder)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        web["/2"] = page("beaver")
        repo.later(days=1)
        crawl = repo.json("crawl", "--allow-private")
        cycle = repo.json("cycle", "--allow-private", "--policy", "shock", "--budget", 30)
        assert repo.found("beaver") == {url("/2") for url in fill_web(web).values()}
    assert (crawl["warnings"], cycle["warnings"]) == ([], [])
    assert cycle["visits"] > 0
    assert repo.json("check")["problems"] == []
    words = ("--shards", SHARDS, "--to", target[0], "--archive", target[1])
    assert "holds a repository" in Repo(tmp_path / "copy").run("move", *words, code=1).err
    assert "cluster already" in repo.run("move", *words, code=2).err


@pytest.mark.slow
def test_a_repository_in_postgresql_and_an_object_store_becomes_a_cluster(
    tmp_path: Path, web: Site, target: Target, postgres_url: str, object_store: ObjectStore
) -> None:
    places = ("--store", f"{postgres_url}?schema=undivided", "--archive", object_store.url("undivided"))
    repo = crawled(tmp_path / "repo", web, *places)
    now = repo.now()
    before = answers(repo, now)
    taken = repo.run("move", "--shards", 2, "--to", places[1], "--archive", target[1], code=1)
    assert "choose another schema" in taken.err
    assert "undivided" in move(repo, target)["old"]
    assert answers(repo, now) == before
    assert repo.json("check")["problems"] == []


@pytest.mark.slow
def test_files_that_are_packed_with_a_dictionary_are_divided_as_they_are(
    tmp_path: Path, web: Site, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_ENOUGH", 20_000)
    monkeypatch.setattr(packing, "_DICTIONARY_BYTES", 2048)
    repo = crawled(tmp_path / "repo", web, archive_format="warc.zst")
    assert any(dictionary(path)[0] for path in (repo.folder / "archive").iterdir())
    now = repo.now()
    before = answers(repo, now)
    refused = repo.run("move", "--shards", 2, "--to", target[0], "--archive", target[1], code=2)
    assert "does not work in a cluster" in refused.err
    repo.config(archive_format="warc.gz")
    move(repo, target)
    assert answers(repo, now) == before
    assert repo.json("check")["problems"] == []


def test_an_empty_repository_becomes_a_cluster_and_one_again(tmp_path: Path, target: Target) -> None:
    repo = Repo.create(tmp_path / "repo")
    assert (move(repo, target, 1)["files"], repo.json("pages")) == (0, [])
    done = repo.json("move", "--shards", 0, "--to", "sqlite", "--archive", "folder")
    assert (done["rows"], done["files"], repo.json("pages")) == (0, 0, [])


@pytest.mark.slow
def test_a_crawl_that_was_interrupted_goes_on_in_the_cluster(tmp_path: Path, web: Site, target: Target) -> None:
    at = fill_web(web)
    repo = Repo.create(tmp_path / "repo", sitemaps=False)
    repo.add(*(url("/") for url in at.values()))
    with closing(sqlite3.connect(repo.folder / "recrawl.db")) as db, db:
        web.pages["/3"] = page("walrus 3")
        repo.json("crawl")
        db.execute("UPDATE cycles SET finished = NULL")
        db.execute("DELETE FROM cycle_summaries")
        db.execute("UPDATE pages SET state = 0, visits = 0, last_try = NULL, last_visit = NULL WHERE url LIKE '%/3'")
    move(repo, target)
    layout = layout_of(repo.folder)
    asked = len(web.log)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        crawl = repo.json("crawl", "--allow-private")
    assert (crawl["warnings"], crawl["cycle"], crawl["visits"]) == ([], 1, len(HOSTS))
    assert {it.path for it in web.log[asked:]} <= {"/3", "/robots.txt"}
    assert {row["finished"] is not None for row in repo.json("status")["cycles"]} == {True}


def test_what_cannot_be_moved_is_said(tmp_path: Path, web: Site, target: Target) -> None:
    repo = Repo.create(tmp_path / "repo")
    assert "needs" in repo.run("move", "--shards", 2, "--to", target[0], code=2).err
    assert (
        "invalid number of shards"
        in repo.run("move", "--shards", 5000, "--to", target[0], "--archive", target[1], code=2).err
    )
    web["/"] = page("root", *(f"/{n}" for n in range(4)))
    repo.crawl(web.url("/"))
    with sqlite3.connect(repo.folder / "recrawl.db") as db:
        db.execute("UPDATE cycles SET finished = NULL, kind = 'cycle'")
    db.close()
    said = repo.run("move", "--shards", 2, "--to", target[0], "--archive", target[1], code=1).err
    assert "cycle 0 was interrupted" in said
    assert not (repo.folder / "cluster.toml").exists()


@pytest.mark.slow
def test_a_cluster_moves_to_another_database_and_object_store(
    tmp_path: Path, web: Site, target: Target, postgres_url: str, object_store: ObjectStore
) -> None:
    repo = crawled(tmp_path / "repo", web)
    move(repo, target)
    layout = layout_of(repo.folder)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        repo.json("cycle", "--allow-private", "--policy", "shock", "--budget", 10)
        busy = repo.run("move", "--to", f"{postgres_url}?schema=busy", code=None).err
    assert "stop the workers" in busy
    now = repo.now()
    before = answers(repo, now)
    other = f"{target[0]}_elsewhere", object_store.url(f"{target[0].rpartition('=')[2]}_elsewhere")
    with closing(layout.open()) as cluster:
        run = cluster.runs.request("crawl", policy="", budget=0, seed=0, settings="", options={})
        assert f"crawl {run} is under way" in repo.run("move", "--to", other[0], code=None).err
        cluster.runs.finish(run)
    done = repo.json("move", "--to", other[0])
    assert target[0].rpartition("=")[2] in done["old"]
    assert answers(repo, now) == before
    assert "already" in repo.run("move", "--to", other[0], code=2).err
    assert "was moved to" in repo.run("cluster", "status", "--store", target[0], code=None).err
    files = repo.json("move", "--archive", other[1])["files"]
    assert files > 0
    assert layout_at(other[0]).archive == layout_of(repo.folder).archive == other[1]
    for name in object_store.objects(target[0].rpartition("=")[2]):
        if name.startswith("s0"):
            object_store.remove(target[0].rpartition("=")[2], name)  # all is read from the new one
    assert answers(repo, now) == before
    layout = layout_of(repo.folder)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "other work")):
        web["/2"] = page("beaver")
        repo.later(days=1)
        cycle = repo.json("cycle", "--allow-private", "--policy", "shock", "--budget", 30)
    assert (cycle["warnings"], cycle["visits"] > 0, cycle["cycle"]) == ([], True, run + 1)
    assert repo.json("check")["problems"] == []


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["folder", "elsewhere"])
def test_a_cluster_becomes_one_repository_again(
    tmp_path: Path, web: Site, target: Target, object_store: ObjectStore, elsewhere: bool
) -> None:
    # Shards that need the same file have a record of it each, which the judge below would call doubled.
    repo = crawled(tmp_path / "repo", web, requisites="all" if elsewhere else "none")
    move(repo, target)
    layout = layout_of(repo.folder)
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        web["/2"] = page("beaver", "/0")
        repo.later(days=1)
        repo.json("crawl", "--allow-private")
        repo.json("cycle", "--allow-private", "--policy", "round-robin", "--budget", 20)
        repo.json("crawl", "--allow-private")
        found = {word: repo.found(word) for word in ("beaver", "walrus")}
        assert "are in PostgreSQL" in repo.run("move", "--to", "sqlite", code=2).err
    now = repo.now()
    before = answers(repo, now)
    name = target[0].rpartition("=")[2]
    places = (f"{target[0]}_one", object_store.url(f"{name}_one")) if elsewhere else ("sqlite", "folder")
    done = repo.json("move", "--shards", 0, "--to", places[0], "--archive", places[1])
    assert name in done["old"]
    after = answers(repo, now)
    for what, said in before.items():
        assert after[what] == said, what
    assert "not a cluster" in repo.run("move", "--shards", 0, "--to", "sqlite", "--archive", "folder", code=2).err
    repo.run("check", "--repair")  # makes the index
    assert {word: repo.found(word) for word in found} == found
    if not elsewhere:
        assert {it.name for it in repo.folder.glob("*.toml")} == {"recrawl.toml"}
        judge(repo.folder)
    web["/1"] = page("lynx")
    repo.later(days=1)
    cycle = repo.cycle(60, "--policy", "shock")
    assert cycle["visits"] > 0
    assert repo.json("check")["problems"] == []
    assert repo.found("lynx")


# -- interruptions -------------------------------------------------------------------------------------------

KILLED = """
import importlib, os, signal, sys
from recrawl.cli import invoke
from recrawl.record.store.sql import copying

(module, _, name), left, words = sys.argv[1].partition(":"), int(sys.argv[2]), sys.argv[3:]
owner, (*parents, name) = importlib.import_module(module), name.split(".")
for parent in parents:
    owner = getattr(owner, parent)
wrapped = getattr(owner, name)

def counted(*given, **named):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    done = wrapped(*given, **named)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(owner, name, counted)
copying._BLOCK = 2
sys.exit(invoke(words))
"""
DIVISION, PARTS = "recrawl.cluster.commands.division", "recrawl.record.shards.archive_parts"
POINTS = [
    (f"{DIVISION}:claim", 1),
    (f"{DIVISION}:Layout.make_shards", 1),
    (f"{DIVISION}:RowOwners", 1),
    (f"{PARTS}:ArchiveDivision._put", 2),
    (f"{DIVISION}:DividedFiles.record", 1),
    (f"{DIVISION}:DividedFiles.record", 0),
    (f"{DIVISION}:DividedCopy.copy", 1),
    ("recrawl.record.store.division.copying:copy_stretches", 12),
    ("recrawl.record.store.division.copying:copy_stretches", 25),
    (f"{DIVISION}:copy_own_rows", 1),
    (f"{DIVISION}:write_order", 0),
    (f"{DIVISION}:finish_move", 0),
    (f"{DIVISION}:switch", 1),
]
"""Where a move dies: before a function is called for the n-th time, or after the first one with 0. All but the last
leave the repository as it was."""


def killed(repo: Repo, where: str, times: int, *words: object) -> None:
    """Move a repository in a process that kills itself."""
    command = [sys.executable, "-c", KILLED, where, times, "-C", repo.folder, "move", *words]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, check=False, cwd=Path(__file__).parent.parent, env={**os.environ}
    )
    assert done.returncode == -signal.SIGKILL, (where, done.stderr.decode())


@pytest.mark.slow
def test_a_move_that_is_killed_at_any_point_loses_and_doubles_nothing(
    tmp_path: Path, web: Site, target: Target, object_store: ObjectStore
) -> None:
    repo = crawled(tmp_path / "repo", web)
    now = repo.now()
    before = answers(repo, now)
    words = ("--shards", SHARDS, "--to", target[0], "--archive", target[1])
    for where, times in POINTS:
        killed(repo, where, times, *words)
        assert not (repo.folder / "cluster.toml").exists(), where
    web["/1"] = page("seal")
    repo.later(days=1)
    repo.cycle(40, "--policy", "round-robin")  # the repository is in use until the move is complete
    now = repo.now()
    changed = answers(repo, now)
    assert changed != before
    killed(repo, f"{DIVISION}:switch", 0, *words)
    assert answers(repo, now) == changed
    assert not (repo.folder / "recrawl.db").exists()
    assert repo.json("check")["problems"] == []
    with ExitStack() as stack:
        prefix = target[1].partition("?")[0].rpartition("/")[2]
        for shard, store in enumerate(shard_stores(layout_of(repo.folder), stack)):
            objects = object_store.objects(f"{prefix}/s{shard:03d}/archive")
            assert objects == {name: store.warcs.lengths()[file] for file, name in store.warcs.names().items()}


RELOCATION = "recrawl.cluster.commands.relocation"
COPYING = "recrawl.record.store.sql.copying"


@pytest.mark.slow
def test_the_move_of_a_cluster_that_is_killed_at_any_point_goes_on(
    tmp_path: Path, web: Site, target: Target, object_store: ObjectStore
) -> None:
    repo = crawled(tmp_path / "repo", web)
    move(repo, target)
    now = repo.now()
    before = answers(repo, now)
    other = f"{target[0]}_elsewhere", object_store.url(f"{target[0].rpartition('=')[2]}_elsewhere")
    for where, times in (
        (f"{RELOCATION}:claim_cluster", 0),
        (f"{COPYING}:copy_stretches", 30),
        (f"{COPYING}:_copy_values", 2),
        (f"{RELOCATION}:copy_facts", 0),
        (f"{RELOCATION}:switch", 1),
    ):
        killed(repo, where, times, "--to", other[0])
        assert layout_of(repo.folder).store == target[0], where
    killed(repo, f"{RELOCATION}:switch", 0, "--to", other[0])
    assert answers(repo, now) == before
    for where, times in (
        (f"{RELOCATION}:_copy_object", 2),
        (f"{RELOCATION}:_copy_object", 0),
        (f"{RELOCATION}:switch", 1),
    ):
        killed(repo, where, times, "--archive", other[1])
        assert layout_of(repo.folder).archive == target[1], where
    repo.run("move", "--archive", other[1])
    assert layout_of(repo.folder).archive == layout_at(other[0]).archive == other[1]
    assert answers(repo, now) == before
    assert repo.json("check")["problems"] == []


JOINING = "recrawl.cluster.commands.joining"


@pytest.mark.slow
def test_the_joining_of_shards_that_is_killed_at_any_point_goes_on(tmp_path: Path, web: Site, target: Target) -> None:
    repo = crawled(tmp_path / "repo", web, requisites="none")
    move(repo, target)
    now = repo.now()
    before = answers(repo, now)
    words = ("--shards", 0, "--to", "sqlite", "--archive", "folder")
    for where, times in (
        (f"{JOINING}:JoinedNumbers", 1),
        (f"{JOINING}:_Joining._copy_file", 2),
        (f"{JOINING}:_Joining._copy_file", 0),
        ("recrawl.record.store.division.copying:copy_stretches", 20),
        (f"{JOINING}:copy_values", 0),
        (f"{JOINING}:JoinedCopy.verify", 0),
        (f"{JOINING}:_Joining.make", 0),
    ):
        killed(repo, where, times, *words)
        assert layout_of(repo.folder).shards == SHARDS, where
    assert answers(repo, now) == before
    killed(repo, f"{JOINING}:switch", 0, *words)
    assert answers(repo, now) == before
    assert {it.name for it in repo.folder.glob("*.toml")} == {"recrawl.toml"}
    repo.run("check", "--repair")
    judge(repo.folder)
