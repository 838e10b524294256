"""Damaged files, full disks and read-only file systems: one clear line each, never a traceback, and the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recrawl
from recrawl.errors import DamagedIndex, DamagedRecord, DiskFull, StorageFailure
from recrawl.record.rows import Batch, VersionRow
from recrawl.record.storage import Storage
from recrawl.repository import checking
from tests.crashes import ask
from tests.world import Repo, Result, Site, page

_READING: tuple[tuple[str, ...], ...] = (("status",), ("pages",), ("changes",), ("sites",))
_PARTS = ("store", "idx", "fast", "term", "pos", "fieldnorm")


@pytest.fixture
def web(site: Callable[..., Site]) -> Site:
    pages = {f"/{number}": page(f"apple number {number}", title=f"Page {number}") for number in range(6)}
    return site({"/": page("front apple", *pages), **pages})


@pytest.fixture
def crawled(repo: Repo, web: Site) -> Repo:
    repo.crawl(web.url())
    repo.later(hours=30)
    return repo


def one_line(result: Result, *words: str) -> None:
    """The command failed, and said why in one line."""
    assert result.code == 1
    assert result.out == ""
    (line,) = result.err.strip().splitlines()
    assert line.startswith("recrawl: ")
    for word in words:
        assert word in line


def overwrite(file: Path, start: int, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(start)
        stream.write(data)


# -- the index ---------------------------------------------------------------------------------------------


def segment(folder: Path, part: str) -> Path:
    return next(folder.glob(f"*.{part}"))


def _garbled_meta(index: Path) -> None:
    (index / "meta.json").write_bytes(b"no JSON at all")


def _emptied_meta(index: Path) -> None:
    (index / "meta.json").write_bytes(b"")


def _lost_meta(index: Path) -> None:
    (index / "meta.json").unlink()


def _lost(part: str) -> Callable[[Path], None]:
    return lambda index: segment(index, part).unlink()


def _zeroed(part: str) -> Callable[[Path], None]:
    return lambda index: overwrite(segment(index, part), 0, bytes(segment(index, part).stat().st_size))


def _cut(part: str) -> Callable[[Path], None]:
    return lambda index: os.truncate(segment(index, part), segment(index, part).stat().st_size // 2)


def _flipped(part: str) -> Callable[[Path], None]:
    def flip(index: Path) -> None:
        data = bytearray(segment(index, part).read_bytes())
        data[int(np.random.default_rng(len(part)).integers(len(data) // 2))] ^= 255
        segment(index, part).write_bytes(data)

    return flip


_DAMAGES: dict[str, Callable[[Path], None]] = {
    "garbled meta": _garbled_meta,
    "emptied meta": _emptied_meta,
    "lost meta": _lost_meta,
    **{f"{how.__name__[1:]} {part}": how(part) for how in (_lost, _zeroed, _cut, _flipped) for part in _PARTS},
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_index_counts_as_none_and_is_rebuilt(crawled: Repo, web: Site, damage: str) -> None:
    _DAMAGES[damage](crawled.folder / "index")
    told = crawled.run("status")
    assert "0 pages searchable" in told.out
    assert "is damaged" in told.err
    assert "recrawl check --repair" in told.err
    assert len(crawled.json("status")["problems"]) == 1
    one_line(crawled.run("search", "apple", code=None), "index", "is damaged", "the next crawl or cycle rebuilds it")
    assert "Page 3" in crawled.run("log", web.url("/3")).out
    again = crawled.run("cycle", "--budget", 1)
    assert "is damaged" in again.err
    assert "rebuilding it" in again.err
    assert len(crawled.found("apple")) == 7
    assert crawled.run("status").err == ""


def test_a_crawl_rebuilds_a_damaged_index(crawled: Repo, web: Site) -> None:
    _zeroed("store")(crawled.folder / "index")
    crawled.run("crawl")
    assert len(crawled.found("apple")) == 7


def test_an_index_that_fails_under_way_does_not_stop_the_crawl(
    crawled: Repo, web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recrawl.record.index import Index

    def fails(self: Index, _document: object) -> None:
        monkeypatch.undo()
        raise DamagedIndex("the index is damaged")

    web["/1"] = page("banana")
    monkeypatch.setattr(Index, "put", fails)
    crawled.cycle()
    assert len(crawled.json("log", web.url("/1"))) == 2
    crawled.run("crawl")
    assert len(crawled.found("apple")) == 6
    assert crawled.found("banana") == {web.url("/1")}


# -- the database --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["start", "middle", "everywhere"])
def test_garbage_in_the_database_is_one_line(crawled: Repo, where: str) -> None:
    database = crawled.folder / "recrawl.db"
    size = database.stat().st_size
    garbage = np.random.default_rng(5).bytes(size)
    if where == "start":
        overwrite(database, 0, garbage[:4096])
    elif where == "middle":
        overwrite(database, 4096, garbage[4096 : size - 4096])
    else:
        database.write_bytes(garbage)
    for words in (("status",), ("pages",), ("search", "apple"), ("crawl",), ("cycle",), ("check",)):
        result = crawled.run(*words, code=None)
        assert result.code == 1, words
        assert "Traceback" not in result.err
        assert "damaged" in result.out + result.err


def test_damage_that_shows_while_rows_are_read_is_ours(crawled: Repo) -> None:
    database = crawled.folder / "recrawl.db"
    root = ask(crawled.folder, "SELECT rootpage FROM sqlite_schema WHERE name = 'visits'")[0][0]
    size = ask(crawled.folder, "PRAGMA page_size")[0][0]
    overwrite(database, (root - 1) * size, b"\xff" * size)
    with recrawl.open(crawled.folder) as repo, pytest.raises(StorageFailure, match=r"recrawl\.db is damaged"):
        list(repo.visits())


# -- the archive ---------------------------------------------------------------------------------------------


def damaged_version(repo: Repo, url: str) -> None:
    """Overwrite the middle of the newest record of a page."""
    sql = """SELECT w.name, v.start, v.length FROM versions v JOIN pages p ON p.version = v.id
             JOIN warcs w ON w.id = v.warc WHERE p.url = ?"""
    ((name, start, length),) = ask(repo.folder, sql, url)
    overwrite(repo.folder / "archive" / name, start + length // 3, b"\x55" * 20)


def test_a_damaged_record_affects_its_version_alone(crawled: Repo, web: Site, tmp_path: Path) -> None:
    damaged_version(crawled, web.url("/2"))
    result = crawled.run("show", web.url("/2"), code=None)
    one_line(result, web.url("/2"), "in archive/", "is damaged", "recrawl check --repair")
    assert "number 3" in crawled.run("show", web.url("/3")).out
    told = crawled.run("export", tmp_path / "all.parquet")
    assert "wrote 6 rows" in told.err
    assert f"left out: the record of {web.url('/2')}" in told.err
    again = crawled.json("export", tmp_path / "again.parquet")
    assert (again["rows"], len(again["left_out"])) == (6, 1)
    assert web.url("/2") in again["left_out"][0]
    assert crawled.run("noise").code == 0
    shutil.rmtree(crawled.folder / "index")
    crawled.run("cycle", "--budget", 1)
    assert len(crawled.found("apple")) == 6


def test_a_page_whose_stored_version_is_damaged_can_change(crawled: Repo, web: Site) -> None:
    damaged_version(crawled, web.url("/2"))
    web["/2"] = page("banana")
    crawled.cycle()
    assert crawled.outcomes(web.url("/2")) == ["new", "changed"]
    assert "banana" in crawled.run("show", web.url("/2")).out


def test_a_lost_archive_file_is_one_line(crawled: Repo, web: Site) -> None:
    (file,) = (crawled.folder / "archive").iterdir()
    file.unlink()
    one_line(crawled.run("show", web.url("/2"), code=None), web.url("/2"))
    one_line(crawled.run("cycle", code=None), "is shorter than the database says", "recrawl check --repair")
    crawled.run("status")


# -- disks ---------------------------------------------------------------------------------------------------

_MOUNTS = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
needs_mounts = pytest.mark.skipif(not _MOUNTS, reason="needs unshare(1) and user namespaces")


def in_namespace(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount; $R is the command."""
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", f"R='{sys.executable} -m recrawl'; {script}", "-", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@needs_mounts
@pytest.mark.parametrize("crashed", [False, True])
def test_a_read_only_file_system_can_be_read(crawled: Repo, web: Site, tmp_path: Path, crashed: bool) -> None:
    if crashed:  # then the last commits are in the write-ahead log alone
        with Storage(crawled.folder) as held:
            held.writing("test", lambda _: False, roll_bytes=1 << 30, info=())
            held.store.meta.set("test", 1)
            shutil.copytree(crawled.folder, tmp_path / "copy")
        folder = tmp_path / "copy"
        assert (folder / "recrawl.db-wal").stat().st_size
    else:
        folder = crawled.folder
    mount = "mount --bind $1 $1 && mount -o remount,ro,bind $1"
    for words, wanted in (
        ("status", "7 pages searchable"),
        (f"show {web.url('/3')}", "number 3"),
        ("search apple", web.url("/3")),
        ("check", "no problem"),
    ):
        read = in_namespace(f"{mount}; $R -C $1 {words}", folder)
        assert (read.returncode, read.stderr) == (0, ""), words
        assert wanted in read.stdout
    written = in_namespace(f"{mount}; $R -C $1 crawl", folder)
    assert written.returncode == 1
    assert written.stderr.splitlines() == [f"recrawl: Read-only file system: {folder / 'lock'}"]


@needs_mounts
@pytest.mark.parametrize("space", ["40k", "200k", "400k"])
def test_a_full_disk_is_one_line_and_nothing_is_lost(crawled: Repo, web: Site, tmp_path: Path, space: str) -> None:
    """The repository, the archive or the index finds no space; afterwards there is some."""
    for number in range(7):
        noise = np.random.default_rng(number).integers(1, 1 << 60, 4000)
        web[f"/{number}" if number < 6 else "/"] = page(" ".join(f"word{n}" for n in noise))
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = """
        used=$(du -sk $1 | cut -f1); mount -t tmpfs -o size=$((used + ${4%k}))k none $2; cp -a $1/. $2/
        $R -C $2 cycle --budget 100; code=$?; cp -a $2 $3; exit $code
    """
    ended = in_namespace(script, crawled.folder, disk, kept, space)
    assert ended.returncode == 1, ended
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("recrawl: ")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert "space" in ended.stderr or "full" in ended.stderr
    repo = Repo(kept, ahead=crawled.ahead)
    repo.cycle(100)
    assert repo.run("check").out.startswith("no problem")
    assert all(repo.outcomes(web.url(path)) == ["new", "changed"] for path in ("/0", "/3", "/5", "/"))
    assert len(ask(kept, "SELECT id FROM versions")) == 14


def test_after_a_failed_write_nothing_more_is_written(crawled: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second attempt could put records where the database does not expect them."""
    version = VersionRow(99, 0, 1.0, 1, None, None, 0, 1, 3, 0, 0, 0, b"p" * 20, b"d", "", "text/html", "")

    def full(_fd: int, _data: Any) -> int:
        raise OSError(28, "No space left on device")

    with Storage(crawled.folder) as held:
        held.writing("test", lambda _: False, roll_bytes=1 << 30, info=())
        lengths = held.store.warcs.lengths()
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StorageFailure, match="No space left on device"):
            held.commit(Batch(), [(version, b"record")])
        monkeypatch.undo()
        with pytest.raises(StorageFailure, match="an earlier write failed"):
            held.commit(Batch(), [(version, b"record")])
        assert held.store.warcs.lengths() == lengths
        assert held.store.versions.get(99) is None


def test_a_full_disk_is_not_reported_as_damage(crawled: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`check --repair` has to write: where it cannot, the repository is not at fault."""
    kept = Repo(shutil.copytree(crawled.folder, tmp_path / "kept"), ahead=crawled.ahead)
    shutil.rmtree(kept.folder / "index")

    def full(*_: object, **__: object) -> None:
        raise DiskFull("no space left on the disk for the index")

    monkeypatch.setattr(checking, "prepare", full)
    ended = kept.run("check", "--repair", code=1)
    assert ended.err.splitlines() == ["recrawl: no space left on the disk for the index"]
    assert "problem" not in ended.out
    monkeypatch.undo()
    assert kept.run("check", "--repair").code == 0


def test_the_api_raises_its_own_errors(crawled: Repo, web: Site) -> None:
    damaged_version(crawled, web.url("/2"))
    _garbled_meta(crawled.folder / "index")
    with recrawl.open(crawled.folder) as repo:
        with pytest.raises(DamagedRecord):
            assert repo.page(web.url("/2")).html
        with pytest.raises(DamagedIndex):
            repo.search("apple")
        assert repo.status().searchable == 0
