"""Repositories open for reading: a few, lent to one request at a time.

To open one costs more than most questions; a connection to SQLite must not be used by two threads at once. So they are
kept, and a request that finds none waits until another gives one back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl.record.storage import Storage


class Pool:
    """At most `size` open repositories, opened when they are first needed."""

    def __init__(self, folder: Path, size: int = 8) -> None:
        self.folder = folder
        self._free: list[Storage] = []
        self._places = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Storage]:
        """A repository to read from, as it is now."""
        with self._places:
            with self._lock:
                repository = self._free.pop() if self._free else None
            if repository is None:
                repository = Storage(self.folder, shared=True)
            try:
                repository.refresh()
                yield repository
            finally:
                self._give_back(repository)

    def _give_back(self, repository: Storage) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(repository)
                return
        repository.close()

    def close(self) -> None:
        """Close them all; those that are lent are closed when they come back."""
        with self._lock:
            free, self._free, self._closed = self._free, [], True
        for repository in free:
            repository.close()
