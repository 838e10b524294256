"""Files that are replaced whole: the old or the new one after a fault at any call, and nothing lost between writers."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.durable_files import locked, make_folder, replace_file, replacing
from recrawl.lab.formats.archive import write as write_history
from recrawl.repository.sinks.markdown_files import MarkdownFiles, file_name
from recrawl.repository.sinks.protocol import Event
from recrawl.secrets import write_private
from recrawl.serve.access.sessions import access_token
from recrawl.settings import TEMPLATE, Seed, load, write_seeds, write_value
from tests.world import Repo, command

_CALLS = ("open", "fsync", "replace", "ftruncate", "fchmod", "unlink")
FORKED = multiprocessing.get_context("fork")
Fault = Callable[[], None]


@contextmanager
def watched(before: Callable[[str, Any], None]) -> Iterator[None]:
    """Call `before` with the name and the first argument of each call that changes or syncs a file."""

    def wrapped(name: str, call: Any) -> Any:
        def inner(*given: Any, **named: Any) -> Any:
            before(name, given[0])
            return call(*given, **named)

        return inner

    def opened(path: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
        file = open_path(path, mode, *given, **named)
        if "w" not in mode and "a" not in mode:
            return file
        return _HalfWrites(file, lambda: before("write", path))

    open_path = Path.open
    with (
        mock.patch.multiple(os, **{name: wrapped(name, getattr(os, name)) for name in _CALLS}),
        mock.patch.object(fcntl, "flock", wrapped("flock", fcntl.flock)),
        mock.patch.object(Path, "open", opened),
    ):
        yield


class _HalfWrites:
    """A file whose every write is two."""

    def __init__(self, file: Any, between: Callable[[], None]) -> None:
        self._file, self._between = file, between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _HalfWrites:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._between()
        self._file.write(data[half:])
        return len(data)


class Faults:
    """Does something at the n-th call."""

    def __init__(self, at: int, fault: Fault) -> None:
        self.left, self.fault, self.happened = at, fault, False

    def __call__(self, _name: str, _path: object) -> None:
        self.left -= 1
        if self.left == 0:
            self.happened = True
            self.fault()


def kill_points(work: Callable[[], None], verify: Callable[[], None]) -> int:
    """Do the work in a child that dies at its first call, at its second and so on, and verify after each death."""
    for at in range(1, 1000):

        def child(at: int = at) -> None:
            with watched(Faults(at, lambda: os._exit(9))):
                work()

        process = FORKED.Process(target=child)
        process.start()
        process.join()
        verify()
        if process.exitcode == 0:
            return at - 1
        assert process.exitcode == 9
    raise AssertionError("it never ended")


def raise_points(work: Callable[[], None], fault: Fault, verify: Callable[[bool], None]) -> int:
    """Do the work with an exception at its first call, at its second and so on."""
    for at in range(1, 1000):
        faults = Faults(at, fault)
        failed = False
        try:
            with watched(faults):
                work()
        except (OSError, KeyboardInterrupt, recrawl.RecrawlError):
            failed = True
        verify(failed)
        if not faults.happened:
            return at - 1
    raise AssertionError("it never ended")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt() -> None:
    raise KeyboardInterrupt


OLD, NEW = b"old " * 5000, b"new " * 7000


# -- one file ------------------------------------------------------------------------------------------------


def test_killed_at_any_call_the_old_or_the_new_file_is_there(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seen = set()

    def verify() -> None:
        seen.add(file.read_bytes())
        file.write_bytes(OLD)

    file.write_bytes(OLD)
    assert kill_points(lambda: replace_file(file, NEW), verify) >= 8
    assert seen == {OLD, NEW}
    replace_file(file, NEW)
    assert names(tmp_path) == ["file"], "the drafts of those that died are gone"


@pytest.mark.parametrize("fault", [disk_full, interrupt])
def test_a_fault_at_any_call_keeps_the_old_file_or_has_the_new_one_and_leaves_no_draft(
    tmp_path: Path, fault: Fault
) -> None:
    file = tmp_path / "file"
    file.write_bytes(OLD)

    def verify(failed: bool) -> None:
        assert file.read_bytes() in ({OLD, NEW} if failed else {NEW})
        assert names(tmp_path) == ["file"]
        file.write_bytes(OLD)

    assert raise_points(lambda: replace_file(file, NEW), fault, verify) >= 8


def test_file_is_on_the_disk_before_its_name_and_the_name_before_the_return(tmp_path: Path) -> None:
    file, calls = tmp_path / "file", []

    def note(name: str, what: Any) -> None:
        kind = "folder" if name == "fsync" and Path(f"/proc/self/fd/{what}").is_dir() else ""
        calls.append(f"{name} {kind}".strip())

    with watched(note):
        replace_file(file, NEW)
    order = [call for call in calls if call in ("write", "fsync", "replace", "fsync folder")]
    assert order == ["write", "fsync", "replace", "fsync folder"]


def test_errors_name_the_file_and_not_its_draft(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for at in ("open", "write", "fsync", "replace"):

        def fail(name: str, _: object, at: str = at) -> None:
            if name == at:
                disk_full()

        with watched(fail), pytest.raises(OSError, match="No space") as caught:
            replace_file(file, NEW)
        assert caught.value.filename == str(file)
    with pytest.raises(FileNotFoundError) as caught:
        replace_file(tmp_path / "none" / "file", NEW)
    assert caught.value.filename == str(tmp_path / "none" / "file")
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, NEW)


def test_mode_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(OLD)
    file.chmod(0o640)
    link.symlink_to("file")
    replace_file(link, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o777 == 0o640
    write_private(file, "secret")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_device_is_written_and_stays_a_device() -> None:
    replace_file(Path(os.devnull), "gone")
    assert Path(os.devnull).is_char_device()


def test_the_longest_name_and_a_planted_draft(tmp_path: Path) -> None:
    longest = tmp_path / ("ä" * 127)
    replace_file(longest, "text")
    assert longest.read_text() == "text"
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".file.part").symlink_to("victim")
    (tmp_path / ".file.part1").mkdir()
    os.link(tmp_path / "victim", tmp_path / ".file.part2")
    replace_file(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"
    assert (tmp_path / "victim").read_text() == "mine"


def test_writers_at_once_each_write_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def write(letter: bytes) -> None:
        for _ in range(60):
            replace_file(file, letter * 100_000)

    writers = [FORKED.Process(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = file.read_bytes() if file.exists() else b"a" * 100_000
        assert len(content) == 100_000
        assert len(set(content)) == 1
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert names(tmp_path) == ["file"]


def test_new_folders_are_on_the_disk(tmp_path: Path) -> None:
    synced = []
    with watched(
        lambda name, what: synced.append(str(Path(f"/proc/self/fd/{what}").readlink())) if name == "fsync" else None
    ):
        make_folder(tmp_path / "a" / "b")
    assert sorted(synced) == [str(tmp_path), str(tmp_path / "a")]


# -- recrawl.toml --------------------------------------------------------------------------------------------


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "recrawl.toml"
    path.write_text(TEMPLATE)
    return path


def test_processes_that_change_settings_lose_nothing(tmp_path: Path) -> None:
    recrawl.init(tmp_path / "repo").close()
    file = tmp_path / "repo" / "recrawl.toml"

    def change(name: str) -> None:
        for value in range(1, 201):
            write_value(file, name, float(value))
            assert load(file)[name] == value, "another writer wrote an older value back"

    def add() -> None:
        with recrawl.open(file.parent) as repo:
            for number in range(30):
                repo.add(f"https://{number}.example/")

    writers = [FORKED.Process(target=change, args=(name,)) for name in ("delay", "timeout")]
    writers.append(FORKED.Process(target=add))
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        load(file)  # a reader never sees half a file
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    values = load(file)
    assert (values["delay"], values["timeout"], len(values.seeds)) == (200, 200, 30)
    assert file.read_text().startswith(TEMPLATE[:40])


def test_threads_that_add_sinks_and_access_rules_lose_nothing(tmp_path: Path) -> None:
    recrawl.init(tmp_path / "repo").close()

    def change(thread: int) -> None:
        with recrawl.open(tmp_path / "repo") as repo:
            for number in range(6):
                repo.set_access(f"https://{thread}-{number}.example/", user_agent="me")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with recrawl.open(tmp_path / "repo") as repo:
        assert len(repo.settings.access) == 24


def test_settings_survive_a_kill_at_any_call(settings_file: Path) -> None:
    before = settings_file.read_text()

    def verify() -> None:
        assert load(settings_file)["delay"] in (1.0, 7.0)
        settings_file.write_text(before)

    assert kill_points(lambda: write_value(settings_file, "delay", 7.0), verify) >= 9
    write_seeds(settings_file, (Seed("https://a.example/"),))
    assert names(settings_file.parent) == ["recrawl.toml"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_read_only_disk_is_told_and_changes_nothing(tmp_path: Path, error: int) -> None:
    repo = Repo.create(tmp_path / "repo")
    before = (repo.folder / "recrawl.toml").read_bytes()

    def fail(name: str, what: object) -> None:
        if name == ("fsync" if error == errno.ENOSPC else "open") and "recrawl.toml" in f"{_named(what)}":
            raise OSError(error, os.strerror(error))

    with watched(fail):
        told = repo.run("config", "delay", "9", code=1)
    assert os.strerror(error) in told.err
    assert str(repo.folder / "recrawl.toml") in told.err
    assert (repo.folder / "recrawl.toml").read_bytes() == before
    assert ".recrawl.toml.part" not in names(repo.folder)


def _named(what: object) -> str:
    return str(Path(f"/proc/self/fd/{what}").readlink()) if isinstance(what, int) else str(what)


# -- exports -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with ten versions."""
    where = tmp_path_factory.mktemp("stored")
    rows = [(f"https://a.example/{n}", 1_700_000_000 + n, f"<title>{n}</title><p>Text {n}".encode()) for n in range(10)]
    urls, times, bodies = zip(*rows, strict=True)
    pq.write_table(pa.table({"url": urls, "time": times, "html": bodies}), where / "history.parquet")
    with recrawl.init(where / "repo") as repo:
        repo.import_history(where / "history.parquet")
    return where / "repo"


def _is_whole(file: Path) -> bool:
    content = file.read_bytes()
    if file.suffix == ".parquet":
        rows: int = pq.read_table(file).num_rows
        return rows == 10
    if file.suffix == ".wacz":
        return zipfile.ZipFile(file).testzip() is None
    return len(content) > 100 and content != OLD and (content.endswith(b"\n") or file.name.endswith(".gz"))


EXPORTS = ["out.parquet", "out.wacz", "out.warc.gz", "out.cdxj", "out.txt"]


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("fault", [disk_full, interrupt])
def test_an_export_that_fails_at_any_call_keeps_the_old_file(
    stored: Path, tmp_path: Path, name: str, fault: Fault
) -> None:
    file = tmp_path / name
    file.write_bytes(OLD)

    with recrawl.open(stored) as repo:

        def verify(failed: bool) -> None:
            assert (failed and file.read_bytes() == OLD) or _is_whole(file)
            assert names(tmp_path) == [name]
            file.write_bytes(OLD)

        assert raise_points(lambda: void(repo.export(file)), fault, verify) >= 5


@pytest.mark.parametrize("name", EXPORTS)
def test_a_killed_export_leaves_the_old_file_and_the_next_one_cleans_up(
    stored: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(OLD)

    def child() -> None:
        with watched(lambda call, _: os._exit(9) if call == "replace" else None), recrawl.open(stored) as repo:
            repo.export(file)

    process = FORKED.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 9
    assert file.read_bytes() == OLD
    assert len(names(tmp_path)) == 2
    assert command("export", file, cwd=stored).code == 0
    assert _is_whole(file)
    assert names(tmp_path) == [name]


# -- the other files that matter -----------------------------------------------------------------------------


def void(_: object) -> None:
    """For work whose result does not matter."""


def _page(path: Path) -> None:
    at = datetime(2026, 11, 19, tzinfo=UTC)
    change = Event(1, "urn:x", "https://a.example/news", "https://a.example", at, "changed", text="text " * 900 + "end")
    MarkdownFiles(path.parents[1], lambda event: event.text).deliver([change])


WRITERS: dict[str, tuple[str, Callable[[Path], object], Callable[[Path], bool]]] = {
    "arrays": (
        "models/url-keys.npz",
        lambda path: write_arrays(path, {"keys": np.arange(5000)}),
        lambda path: read_arrays(path) is not None,
    ),
    "page": (file_name("https://a.example/news"), _page, lambda path: path.read_text().endswith("end")),
    "token": ("serve.token", lambda path: access_token(path.parent), lambda path: len(path.read_text()) > 20),
    "secret": (
        "own/store.toml",
        lambda path: write_private(path, "x" * 3000),
        lambda path: path.stat().st_size == 3000,
    ),
    "history": (
        "history.parquet",
        lambda path: write_history(
            path, [f"https://a.example/{n}" for n in range(3)], [1, 2, 3], pa.array([b"x"] * 3, pa.large_binary())
        ),
        lambda path: pq.read_table(path).num_rows == 3,
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_killed_writer_leaves_no_part_of_a_new_file(tmp_path: Path, name: str) -> None:
    where, write, is_whole = WRITERS[name]
    path = tmp_path / where

    def verify() -> None:
        assert not path.exists() or is_whole(path)
        path.unlink(missing_ok=True)

    assert kill_points(lambda: void(write(path)), verify) >= 5
    write(path)
    assert is_whole(path)
    assert names(path.parent) == [path.name]


def test_an_empty_token_that_a_crash_has_left_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "serve.token").touch()
    token, created = access_token(tmp_path)
    assert created
    assert len(token) > 20
    assert access_token(tmp_path) == (token, False)


def test_a_lock_is_taken_again_within_and_for_its_neighbour(tmp_path: Path) -> None:
    with locked(tmp_path / "a"), locked(tmp_path / "a"), locked(tmp_path / "b"), replacing(tmp_path / "a") as draft:
        draft.write_text("x")
    assert (tmp_path / "a").read_text() == "x"
