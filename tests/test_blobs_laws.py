"""Laws of an archive with an object store that comes and goes: what was committed can be read, whatever happens."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from recrawl.errors import StorageFailure
from recrawl.record import storage as storage_module
from recrawl.record.archive import Place
from recrawl.record.blobs import remote
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.rows import Batch, VersionRow
from recrawl.record.storage import Storage


class MemoryBlobs(Blobs):
    """Objects in memory, which can be away."""

    name = "s3://memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.away = False

    def _found(self, name: str) -> bytes:
        if self.away:
            raise StorageFailure("away")
        if name not in self.objects:
            raise FileNotFoundError(name)
        return self.objects[name]

    def put(self, name: str, path: Path) -> None:
        data = path.read_bytes()
        try:
            if self._found(name) != data:
                raise StorageFailure("other bytes")
        except FileNotFoundError:
            self.objects[name] = data

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._found(name)[start : start + length]

    def fetch(self, name: str, path: Path) -> None:
        path.write_bytes(self._found(name))

    def size(self, name: str) -> int:
        try:
            return len(self._found(name))
        except FileNotFoundError:
            return -1

    def remove(self, name: str) -> None:
        self.objects.pop(name, None)


class ArchiveMachine(RuleBasedStateMachine):
    """A writer that commits, ends, crashes; an object store that goes away; a cache that is lost."""

    seal = "end"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="recrawl-laws-"))
        self.blobs = MemoryBlobs()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(remote, "open_blobs", lambda _: self.blobs)
        url = f"s3://pages/laws?cache_megabytes=0&seal={self.seal}"
        storage_module.create(self.folder, "", archive=url)
        self.committed: list[bytes] = []
        self.open()

    def open(self) -> None:
        self.storage = Storage(self.folder)
        self.storage.writing("test", lambda _: False, roll_bytes=1200, info=())

    def teardown(self) -> None:
        self.blobs.away = False
        self.storage.close()
        self.open()
        assert self.storage.finish() == ""
        warcs = self.storage.store.warcs
        names, lengths = warcs.names(), warcs.lengths()
        assert warcs.stored() == set(names)
        assert {name: self.blobs.size(f"archive/{name}") for name in names.values()} == {
            name: lengths[file] for file, name in names.items()
        }
        assert not list((self.folder / "archive").glob("*.warc.gz"))  # the cache has room for nothing
        self.everything_committed_can_be_read()
        self.storage.close()
        self.patch.undo()
        shutil.rmtree(self.folder)

    @rule(size=st.integers(1, 400))
    def commit(self, size: int) -> None:
        number = len(self.committed)
        blob = bytes([number % 256]) * size
        row = VersionRow(number, 0, 1.7e9, 0, None, None, 0, 1, size, 0, 0, 0, b"", b"", "", "", "")
        try:
            self.storage.commit(Batch(), [(row, blob)])
        except StorageFailure:
            assert self.blobs.away
            assert self.seal == "commit"
            self.crash()
        else:
            self.committed.append(blob)

    @rule()
    def end(self) -> None:
        assert bool(self.storage.finish()) <= self.blobs.away
        self.storage.close()
        self.open()

    @rule()
    def crash(self) -> None:
        """Nothing is finished; the operating system closes files and releases the lock."""
        self.storage.close()
        self.open()

    @precondition(lambda self: not self.blobs.away)
    @rule()
    def crash_between_put_and_record(self) -> None:
        self.storage.archive.seal()
        for name in self.storage.archive.waiting().values():
            self.blobs.put(f"archive/{name}", self.folder / "archive" / name)
        self.crash()

    @rule(away=st.booleans())
    def change_weather(self, away: bool) -> None:
        self.blobs.away = away

    @precondition(lambda self: self.seal == "commit" and not self.blobs.away)
    @rule()
    def lose_the_disk(self) -> None:
        self.storage.close()
        shutil.rmtree(self.folder / "archive")
        (self.folder / "archive").mkdir()
        self.open()

    @invariant()
    def everything_committed_can_be_read(self) -> None:
        for number, blob in enumerate(self.committed):
            row = self.storage.store.versions.get(number)
            assert row is not None
            try:
                assert self.storage.archive.read(Place(row.warc, row.start, row.length)) == blob
            except StorageFailure:
                assert self.blobs.away
                assert row.warc in self.storage.store.warcs.stored()


@pytest.mark.parametrize("seal", ["end", "commit"])
def test_what_was_committed_is_never_lost(seal: str) -> None:
    machine = type("_Machine", (ArchiveMachine,), {"seal": seal})
    run_state_machine_as_test(machine, settings=settings(max_examples=20, stateful_step_count=15, deadline=None))
