"""Put sealed archive files into the object store while the crawl goes on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from recrawl.errors import StorageFailure
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.protocol import Blobs


class ArchiveUploads:
    """One file after the other, in a thread. A file that could not be put is tried again by `finish`."""

    def __init__(self, blobs: Blobs, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder
        self._pool = ThreadPoolExecutor(1, "uploads")
        self._tasks: dict[int, Future[None]] = {}
        self.problem = ""
        """Why the last file could not be put; empty if it could."""

    def start(self, files: Mapping[int, str]) -> list[int]:
        """Begin to put files, by number and name; returns those that are there now."""
        for number, name in files.items():
            self._submit(number, name)
        return self._done()

    def finish(self, files: Mapping[int, str]) -> list[int]:
        """Put files; returns those that are there now. After a failure the others wait for the next command."""
        for number, task in list(self._tasks.items()):
            if task.exception() is not None:
                del self._tasks[number]
        done = self._done()
        self.problem = ""
        for number, name in files.items():
            if number not in done and not self.problem:
                self._submit(number, name).exception()  # waits
                done += self._done()
        return done

    def _submit(self, number: int, name: str) -> Future[None]:
        if number not in self._tasks:
            self._tasks[number] = self._pool.submit(self._put, name)
        return self._tasks[number]

    def put(self, name: str) -> None:
        """Put a file now; `StorageFailure` if that fails."""
        self._put(name)

    def close(self) -> None:
        """Wait for the file that is being put."""
        self._pool.shutdown(cancel_futures=True)

    def _put(self, name: str) -> None:
        self._blobs.put(f"{ARCHIVE}/{name}", self._folder / name)

    def _done(self) -> list[int]:
        found = []
        for number, task in list(self._tasks.items()):
            if task.done():
                error = task.exception()
                if error is None:
                    found.append(number)
                    del self._tasks[number]
                elif isinstance(error, StorageFailure):
                    self.problem = str(error)
                else:
                    raise error
        return found
