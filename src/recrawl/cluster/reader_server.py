"""A process that has imported the reader of pages, and is forked for each reader of a worker.

A worker has threads, so that it cannot be forked (see `recrawl.child_processes`), and a reader that is started anew
takes 0.1 s of CPU to import what it needs: in every run. This process has one thread. A reader ends with it, and it
ends with the worker.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from types import TracebackType
from typing import NoReturn, Self

from recrawl.child_processes import ChildProcess, end_with_parent, start_module


class ServedReader:
    """A reader, which is no child of this process."""

    def __init__(self, pid: int) -> None:
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it runs."""
        return 0 if self._ended(0.0) else None

    def kill(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self) -> int | None:
        """Wait for its end, and forget it."""
        self._ended(None)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        return 0

    def _ended(self, seconds: float | None) -> bool:
        return self._handle < 0 or bool(select.select([self._handle], [], [], seconds)[0])


class ReaderServer:
    """Starts readers until the end of the `with` block; if its process was killed, with another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process, self._connection = start_module(__name__, errors=None)

    def start(self) -> tuple[ChildProcess, Connection]:
        """Start a reader, and return it with our end of its pipe; it ends when that closes."""
        with self._lock:
            with contextlib.suppress(OSError, EOFError):
                return self._fork()
            self._end()
            self._process, self._connection = start_module(__name__, errors=None)
            return self._fork()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _fork(self) -> tuple[ChildProcess, Connection]:
        ours, theirs = Pipe()
        with theirs:
            send_handle(self._connection, theirs.fileno(), self._process.pid)
            return ServedReader(self._connection.recv()), ours  # it is not reaped before the next one is started

    def _end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()


def main() -> None:
    """The process: its arguments are the number of its end of the connection, and the worker."""
    from recrawl.crawl.visits.reader_process import read_tasks  # lazy: the worker itself does not need it

    end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the worker decides when to stop
    gc.freeze()
    parent = os.getpid()
    with Connection(int(sys.argv[1])) as requests, contextlib.suppress(EOFError, OSError):
        while True:
            handle = recv_handle(requests)
            _reap()
            pid = os.fork()
            if pid == 0:
                requests.close()
                _read(handle, parent, read_tasks)
            os.close(handle)
            requests.send(pid)


def _reap() -> None:
    """Collect readers that have ended, so that their CPU counts as that of this process."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _read(handle: int, parent: int, read_tasks: Callable[[Connection], None]) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        end_with_parent(parent)
        read_tasks(Connection(handle))
        code = 0
    finally:
        if isinstance(sys.exc_info()[1], Exception):
            os.write(2, traceback.format_exc().encode())
        os._exit(code)  # never back to the loop of the server


if __name__ == "__main__":
    main()
