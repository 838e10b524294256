"""One writer at a time: a file lock that the operating system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from recrawl.errors import RepositoryBusy


class Lock:
    """An advisory lock on a file that also names its holder.

    `wait` is called between attempts with the name of the holder; it returns False to give up.
    """

    def __init__(self, path: Path, what: str, wait: Callable[[str], bool]) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        while not self._try():
            holder = self._holder()
            if not wait(holder):
                os.close(self._fd)
                raise RepositoryBusy(f"{holder} is working on this repository: wait for it to end, or stop it")
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"recrawl {what} (process {os.getpid()})".encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> str:
        return os.pread(self._fd, 200, 0).decode("utf-8", "replace").strip() or "another process"

    def release(self) -> None:
        """Release the lock."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
