"""Archive files and models in an object store: the same results as in the folder, and nothing lost when it fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.errors import RepositoryError, StorageFailure, UsageError
from recrawl.record.blobs.cache import BlobCache
from recrawl.record.blobs.s3 import S3Blobs
from recrawl.record.blobs.target import parse
from recrawl.record.rows import Batch
from recrawl.record.storage import Storage
from tests.object_store import KEYS, ObjectStore
from tests.test_postgres_repository import known
from tests.world import Repo, Site, page

LINKS = [f"/{n}" for n in range(6)]
MARK = "recrawl-repository.toml"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with ObjectStore().running() as made, pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        made.create_bucket()
        yield made


@pytest.fixture
def prefix(server: ObjectStore, request: pytest.FixtureRequest) -> Iterator[str]:
    """A prefix for one test."""
    yield str(request.node.name)
    server.refusing = False


def new_repo(folder: Path, url: str) -> Repo:
    repo = Repo(folder)
    repo.run("init", "--archive", url)
    repo.config(delay=0, timeout=600)
    return repo


def pages() -> dict[str, Any]:
    return {"/": page("root", *LINKS)} | {link: page(f"walrus {link}") for link in LINKS}


def here(repo: Repo) -> set[str]:
    """Archive files in the folder."""
    return {path.name for path in (repo.folder / "archive").glob("*.warc.gz")}


def archived(server: ObjectStore, prefix: str) -> dict[str, int]:
    """Archive files in the object store."""
    found = server.objects(prefix)
    return {name.removeprefix("archive/"): size for name, size in found.items() if name.startswith("archive/")}


# -- the same as in the folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seal", ["end", "commit"])
def test_all_commands_come_to_the_same_as_with_a_folder(
    tmp_path: Path, server: ObjectStore, prefix: str, seal: str
) -> None:
    url = server.url(f"all-{seal}", cache_megabytes=0, seal=seal)
    repos = [Repo.create(tmp_path / "folder"), new_repo(tmp_path / "bucket", url)]
    with Site(pages()) as site:
        for repo in repos:
            repo.crawl(site.url("/"))
        site["/1"] = page("otter")
        for repo in repos:
            repo.later(days=2)
            repo.cycle(20)
        changed = site.url("/1")
    first, second = (known(repo) for repo in repos)
    assert second == first
    assert here(repos[1]) == set()  # all read from the object store, by range
    assert any("/archive/" in it and "bytes=" in it for it in server.requests)
    for words in (["show", changed], ["diff", changed]):
        assert len({re.sub(r"[\d: -]+Z", "", repo.run(*words).out) for repo in repos}) == 1
    assert all(repo.json("check")["problems"] == [] for repo in repos)
    for kind in ("warc.gz", "cdxj"):
        exported = [
            json.loads(repo.run("export", tmp_path / f"{n}.{kind}", "--json").out) for n, repo in enumerate(repos)
        ]
        assert len({str({**it, "file": ""}) for it in exported}) == 1, exported
    with Storage(repos[1].folder) as storage:
        lengths, names = storage.store.warcs.lengths(), storage.store.warcs.names()
        assert archived(server, f"all-{seal}") == {name: lengths[file] for file, name in names.items()}
        assert storage.store.warcs.stored() == set(names)


def test_models_come_back_to_a_folder_without_them(tmp_path: Path, server: ObjectStore, prefix: str) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix))
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        repo.later(days=1)
        repo.cycle(3)
        models = {path.name: path.read_bytes() for path in (repo.folder / "models").glob("*.npz")}
        assert models
        assert len([name for name in server.objects(prefix) if name.startswith("models/")]) == len(models)
        shutil.rmtree(repo.folder / "models")
        with Storage(repo.folder) as storage:
            storage.writing("test", lambda _: False, roll_bytes=1 << 20, info=())
    assert {path.name: path.read_bytes() for path in (repo.folder / "models").glob("*.npz")} == models


def test_files_whose_records_need_a_dictionary_are_refused(tmp_path: Path, server: ObjectStore, prefix: str) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix))
    repo.run("config", "archive_format", "warc.zst")
    repo.run("add", "https://a.example/")
    refused = repo.run("crawl", code=None)
    assert refused.code == 2
    assert "does not work with an object store" in refused.err


def test_a_full_file_is_put_while_the_crawl_goes_on(tmp_path: Path, server: ObjectStore, prefix: str) -> None:
    recrawl.init(tmp_path, archive=server.url(prefix)).close()
    with Storage(tmp_path) as storage:
        storage.writing("test", lambda _: False, roll_bytes=100, info=())
        for _ in range(4):
            storage.commit(Batch(records=[(os.urandom(200), 1.7e9)]), [])
        waiting = storage.archive.waiting()
        storage.finish()
        assert storage.archive.waiting() == {}
        assert storage.store.warcs.stored() == set(range(4))
    assert len(archived(server, prefix)) == 4
    assert set(waiting) < set(range(4))  # some were recorded before the end


def test_a_commit_costs_the_same_however_many_files_there_are(
    tmp_path: Path, server: ObjectStore, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path | None] = []
    trim = BlobCache.trim

    def counted(cache: BlobCache, keep: Path | None = None) -> None:
        looks.append(keep)
        trim(cache, keep)

    monkeypatch.setattr(BlobCache, "trim", counted)
    recrawl.init(tmp_path, archive=server.url(prefix, seal="commit")).close()
    with Storage(tmp_path) as storage:
        storage.writing("test", lambda _: False, roll_bytes=1 << 20, info=())
        for _ in range(9):
            storage.commit(Batch(records=[(os.urandom(200), 1.7e9)]), [])
        assert storage.archive.waiting() == {}
        assert storage.store.warcs.stored() == set(range(9))
    assert looks == [None]


def test_an_archive_moves_into_the_object_store_and_back(
    tmp_path: Path, server: ObjectStore, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        url = site.url("/1")
    files = here(repo)
    before = known(repo)
    server.refusing = True
    assert "cannot be used" in repo.run("move", "--archive", server.url(prefix), code=1).err
    assert not (repo.folder / "archive.toml").exists()
    server.refusing = False
    with monkeypatch.context() as patch:  # it is interrupted after the object store was named
        patch.setattr(Storage, "finish", lambda _: "")
        repo.run("move", "--archive", server.url(prefix, cache_megabytes=0))
    assert archived(server, prefix) == {}
    assert "already" in repo.run("move", "--archive", server.url("other"), code=2).err
    repo.later(days=1)
    repo.cycle(1)  # any command that writes
    assert archived(server, prefix).keys() >= files
    assert here(repo) == set()
    assert "walrus /1" in repo.run("show", url).out
    moved = repo.json("move", "--archive", "folder")
    assert moved["files"] == len(here(repo)) >= len(files)
    assert not (repo.folder / "archive.toml").exists()
    server.refusing = True
    assert "walrus /1" in repo.run("show", url).out
    assert repo.json("check")["problems"] == []
    assert known(repo)["pages"].keys() == before["pages"].keys()
    assert "in its folder already" in repo.run("move", "--archive", "folder", code=2).err
    assert "either --to or --archive" in repo.run("move", code=2).err


def test_older_files_with_a_dictionary_are_read_whole(tmp_path: Path, server: ObjectStore, prefix: str) -> None:
    repo = Repo.create(tmp_path / "repo", archive_format="warc.zst")
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        repo.config(archive_format="warc.gz")
        repo.run("move", "--archive", server.url(prefix, cache_megabytes=0))
        (name,) = archived(server, prefix)
        assert name.endswith(".warc.zst")
        assert not (repo.folder / "archive" / name).exists()
        repo.later(days=1)
        site["/1"] = page("otter")
        repo.cycle(20)
        assert repo.outcomes(site.url("/1")) == ["new", "changed"]
        assert "walrus /2" in repo.run("show", site.url("/2")).out
    assert repo.json("check")["problems"] == []


def test_the_facts_move_to_postgresql_beside_an_object_store(
    tmp_path: Path, server: ObjectStore, prefix: str, postgres_url: str
) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix, cache_megabytes=0))
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        repo.run("move", "--to", f"{postgres_url}?schema=beside_objects")
        other = Repo(tmp_path / "other")  # another machine, with nothing but the settings
        other.folder.mkdir()
        (other.folder / "archive").mkdir()
        for name in ("recrawl.toml", "store.toml", "archive.toml"):
            shutil.copy(repo.folder / name, other.folder)
        other.later(days=1)
        site["/1"] = page("otter")
        other.cycle(20)
        assert other.found("otter") == {site.url("/1")}
        assert "otter" in repo.run("show", site.url("/1")).out
    assert other.json("check")["problems"] == []
    assert here(repo) == set()


# -- faults -------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from recrawl.record.blobs.uploads import ArchiveUploads
from recrawl.record.store.sql.tables.versions import SqlWarcs
from recrawl.record.store.sqlite.store import SqliteStore
from recrawl.cli import main

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

put, commit = ArchiveUploads._put, SqliteStore.commit

def put_and_die(self, name):
    put(self, name)
    die()

point = sys.argv.pop(1)
if point == "before put":
    ArchiveUploads._put = die
elif point == "after put":
    ArchiveUploads._put = put_and_die
elif point == "before record":
    SqlWarcs.set_stored = die
main()
"""


def kill(repo: Repo, point: str, *words: str) -> None:
    """Run a command as a process that kills itself at this point."""
    command = [sys.executable, "-c", KILLED, point, "-C", str(repo.folder), *words]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "NO_COLOR": "1"}, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("seal", ["end", "commit"])
def test_a_kill_between_seal_put_and_record_loses_and_doubles_nothing(
    tmp_path: Path, server: ObjectStore, prefix: str, seal: str
) -> None:
    where = f"kill-{seal}"
    repo = new_repo(tmp_path / "repo", server.url(where, cache_megabytes=0, seal=seal))
    with Site(pages()) as site:
        repo.run("add", site.url("/"), "--allow-private")
        for point in ("before put", "after put", "before record") if seal == "end" else ("after put", "before record"):
            kill(repo, point, "crawl")
        repo.run("crawl")
        urls = {site.url(path) for path in site.pages}
        assert set(repo.pages()) == urls
        assert {url: repo.outcomes(url) for url in urls} == {url: ["new"] for url in urls}
    assert here(repo) == set()
    assert repo.json("check")["problems"] == []
    with Storage(repo.folder) as storage:
        names = storage.store.warcs.names()
        assert storage.store.warcs.stored() == set(names)
        objects = archived(server, where)
        assert objects.keys() >= set(names.values())
        lost = objects.keys() - set(names.values())
        assert not lost if seal == "end" else len(lost) <= 2  # objects that no commit knows


def test_a_store_that_refuses_loses_nothing_and_gets_everything_later(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix, cache_megabytes=0))
    with Site(pages()) as site:
        server.refusing = True
        repo.run("add", site.url("/"), "--allow-private")
        refused = repo.run("crawl")
        assert refused.err.count(f"s3://pages/{prefix} cannot be used") == 1
        assert "1 archive file waits in the folder for the next command that writes" in refused.err
        assert "walrus" not in refused.err
        assert len(here(repo)) == 1
        assert "walrus /1" in repo.run("show", site.url("/1")).out
        server.refusing = False
        repo.later(days=1)
        site["/2"] = page("otter")
        repo.cycle(20)
        assert here(repo) == set()
        assert len(archived(server, prefix)) == 2
        server.refusing = True
        shown = repo.run("show", site.url("/3"), code=1)
    assert shown.err.count("\n") == 1
    assert "check that the object store runs" in shown.err


def test_with_seal_commit_nothing_is_recorded_that_is_not_in_the_object_store(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix, seal="commit"))
    with Site(pages()) as site:
        repo.run("add", site.url("/"), "--allow-private")
        server.refusing = True
        assert "cannot be used" in repo.run("crawl", code=1).err
        server.refusing = False
        with Storage(repo.folder) as storage:
            assert storage.store.warcs.names() == {}
        repo.run("crawl")
        shutil.rmtree(repo.folder / "archive")  # the disk of the machine is lost
        (repo.folder / "archive").mkdir()
        repo.later(days=1)
        site["/1"] = page("otter")
        repo.cycle(20)
        assert repo.found("otter") == {site.url("/1")}
    assert repo.json("check")["problems"] == []


def test_a_missing_object_is_found_and_put_again(tmp_path: Path, server: ObjectStore, prefix: str) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix))
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        url = site.url("/1")
    (name,) = here(repo)
    server.remove(prefix, f"archive/{name}")
    (problem,) = json.loads(repo.run("check", "--json", code=1).out)["problems"]
    assert problem["what"] == f"{name} is missing in s3://pages/{prefix}"
    repo.run("check", "--repair")
    assert name in archived(server, prefix)
    server.remove(prefix, f"archive/{name}")
    (repo.folder / "archive" / name).unlink()
    repo.run("check", "--repair")
    assert "is lost" in repo.run("show", url, code=1).err


def test_a_check_without_the_object_store_says_so_and_repairs_nothing(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    repo = new_repo(tmp_path / "repo", server.url(prefix, cache_megabytes=0))
    with Site(pages()) as site:
        repo.crawl(site.url("/"))
        url = site.url("/1")
    server.refusing = True
    repo.run("check", "--repair", code=1)
    server.refusing = False
    assert repo.json("check")["problems"] == []
    assert "walrus /1" in repo.run("show", url).out


# -- objects ------------------------------------------------------------------------------------------------------


def test_a_put_of_what_is_there_is_no_error_and_of_other_bytes_is_one(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    blobs = S3Blobs(parse(server.url(prefix)))
    path = tmp_path / "file"
    path.write_bytes(b"walrus")
    blobs.put("x", path)
    blobs.put("x", path)
    for other in (b"otters", b"otter"):
        path.write_bytes(other)
        with pytest.raises(StorageFailure, match="exists and holds other bytes"):
            blobs.put("x", path)
    assert server.read(prefix, "x") == b"walrus"
    assert (blobs.size("x"), blobs.size("y")) == (6, -1)
    assert blobs.get_range("x", 2, 3) == b"lru"
    with pytest.raises(FileNotFoundError):
        blobs.fetch("y", tmp_path / "y")
    assert {it.name for it in tmp_path.iterdir()} == {"file"}


def test_the_cache_keeps_its_limit_and_never_removes_what_waits(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    for n in range(6):
        server.write(prefix, f"archive/recrawl-{n}.warc.gz", bytes([n]) * 1000)
    waits = tmp_path / "recrawl-waits.warc.gz"
    waits.write_bytes(bytes(900))
    stored = {f"recrawl-{n}.warc.gz" for n in range(6)}
    cache = BlobCache(S3Blobs(parse(server.url(prefix))), tmp_path, 2500, lambda: stored)

    def total() -> int:
        return sum(path.stat().st_size for path in tmp_path.rglob("recrawl-*"))

    for n in range(6):
        assert cache.file(f"recrawl-{n}.warc.gz").read_bytes() == bytes([n]) * 1000
        assert total() <= 2500
    server.requests.clear()
    for start in range(0, 1000, 250):
        assert cache.read("recrawl-0.warc.gz", start, 250) == bytes(250)
        path, place = cache.record("recrawl-0.warc.gz", start, 250)
        assert (path.read_bytes(), place) == (bytes(250), 0)
        assert total() <= 2500
    assert len(server.requests) == 4  # the second look found the copy
    assert waits.exists()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://bucket/x", "invalid URL of an archive"),
        ("s3://", "invalid URL of an archive"),
        ("s3://key:secret@bucket/x", "keys in the URL"),
        ("s3://bucket/x?secret=walrus", "unknown option 'secret'"),
        ("s3://bucket/x?cache_megabytes=many", "cache_megabytes=NUMBER"),
        ("s3://bucket/x?endpoint=ftp://host", "invalid endpoint"),
    ],
)
def test_a_bad_url_says_what_to_write(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        parse(url)
    assert "walrus" not in str(refused.value)


def test_a_prefix_holds_one_repository_and_a_bucket_must_be_there(
    tmp_path: Path, server: ObjectStore, prefix: str
) -> None:
    recrawl.init(tmp_path / "one", archive=server.url(prefix)).close()
    with pytest.raises(RepositoryError, match="choose another prefix"):
        recrawl.init(tmp_path / "two", archive=server.url(prefix))
    with pytest.raises(StorageFailure, match="create the bucket"):
        recrawl.init(tmp_path / "two", archive=server.url(prefix).replace("//pages/", "//nobucket/"))
    assert not (tmp_path / "two" / "recrawl.toml").exists()
    assert "secret" not in (tmp_path / "one" / "archive.toml").read_text()
