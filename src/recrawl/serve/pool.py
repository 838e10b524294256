"""A bounded pool of open repositories for reading, each borrowed by one request at a time.

Opening a repository costs more than most queries, and two threads must not share one SQLite connection. A request that
finds the pool empty waits until a repository is returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl.cluster.opening import open_repository
from recrawl.repository.repository import Repository


class Pool:
    """At most `size` open repositories, opened on demand."""

    def __init__(self, folder: Path, clock: Callable[[], float], size: int = 8) -> None:
        self.folder = folder
        self._clock = clock
        self._free: list[Repository] = []
        self._slots = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[Repository]:
        """Borrow a repository for reading, refreshed to the current state."""
        with self._slots:
            with self._lock:
                repository = self._free.pop() if self._free else None
            if repository is None:
                repository = open_repository(self.folder, clock=self._clock, shared=True)
            try:
                repository.refresh()
                yield repository
            finally:
                self._return(repository)

    def _return(self, repository: Repository) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(repository)
                return
        repository.close()

    def close(self) -> None:
        """Close all repositories; borrowed ones close on return."""
        with self._lock:
            free, self._free, self._closed = self._free, [], True
        for repository in free:
            repository.close()
