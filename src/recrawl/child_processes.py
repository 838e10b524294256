"""Child processes that end with their parent, however it ends: started anew, forked, or in a pool.

A child that computes does not see a pipe close. A worker of a pool waits forever on a pipe that its siblings hold open.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 8_000_000
_FORKED_BYTES = 200_000_000
"""A larger process is not forked: what it writes afterwards would be copied."""
_PROC = Path("/proc/self")


def end_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent ends; a parent that has ended already ends it now."""
    with contextlib.suppress(OSError, AttributeError):  # other systems have no such call
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


def keep_freed_memory() -> None:
    """Have glibc keep some freed megabytes for the next message, instead of returning them and asking for new pages."""
    with contextlib.suppress(OSError, AttributeError):  # other libraries have no such call
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, 2 * _KEPT_BYTES)


def limit_memory(more: int) -> None:
    """Let this process take so many bytes of private memory more than it has; 0 sets no limit.

    Linux counts what can be written and is not shared: heap, stacks, buffers, but no code and no mapped files.
    """
    with contextlib.suppress(OSError, ValueError):  # other systems, or a lower limit that is set already
        has = int((_PROC / "statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
        if more:
            resource.setrlimit(resource.RLIMIT_DATA, (has + more, has + more))


def return_freed_memory() -> None:
    """Have glibc return what was freed to the system."""
    with contextlib.suppress(OSError, AttributeError):  # other libraries have no such call
        ctypes.CDLL(None).malloc_trim(0)


def start_module(
    module: str, *, own_group: bool = True, errors: int | None = subprocess.DEVNULL
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a module as a process; return it and our end of a connection to it.

    Its arguments are the number of its end and our process id. In a group of its own, Ctrl-C does not reach it. It has
    no standard output: whoever waits for the end of ours must not wait for it. Errors None: they go to ours.
    """
    from multiprocessing import Pipe  # lazy: most cycles start no process

    ours, theirs = Pipe()
    fd = theirs.fileno()
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", module, str(fd), str(os.getpid())],
        pass_fds=[fd],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        process_group=0 if own_group else None,
        env={"OPENBLAS_NUM_THREADS": "1", **os.environ},  # starting numpy's threads would cost more than its import
    )
    theirs.close()
    return child, ours


class ChildProcess(Protocol):
    """What is used of a child process: that of `subprocess.Popen`."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        ...

    def kill(self) -> None:
        """End it."""
        ...

    def wait(self) -> int | None:
        """Wait for its end."""
        ...


class ForkedChild:
    """A forked process, with what `subprocess.Popen` has of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._waited(0)

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _waited(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, how)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def can_fork() -> bool:
    """Whether a fork of this process is safe and cheap.

    It is safe while the process has one thread: no other can hold a lock that the child would wait for. Libraries start
    threads (name resolution, the search index, BLAS), so this is asked before every fork, and the answer differs.
    """
    try:
        threads = sum(1 for _ in (_PROC / "task").iterdir())
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return False  # not Linux
    return threads == 1 and pages * os.sysconf("SC_PAGE_SIZE") < _FORKED_BYTES


def fork(run: Callable[[Connection], None]) -> tuple[ForkedChild, Connection]:
    """Run a function in a fork of this process, in a group of its own; return it and our end of a connection to it.

    What is imported need not be imported again. Ask `can_fork` first.
    """
    from multiprocessing import Pipe  # lazy: most cycles start no process

    parent = os.getpid()
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        _be_forked(run, theirs, parent)
    theirs.close()
    return ForkedChild(pid), ours


def _be_forked(run: Callable[[Connection], None], connection: Connection, parent: int) -> NoReturn:
    """Keep nothing of the parent but its memory: no file, lock or socket, no signal handler, no group.

    Objects that own a closed file must not be freed, since its number may be that of another file by then: the frames
    below this one hold them, and the collector leaves what is frozen alone.
    """
    code = 1
    try:
        gc.freeze()
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for fd in {int(entry.name) for entry in (_PROC / "fd").iterdir()} - {0, 1, 2, connection.fileno()}:
            with contextlib.suppress(OSError):  # that of the listing is closed already
                os.close(fd)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        end_with_parent(parent)
        run(connection)
        code = 0
    finally:
        if isinstance(sys.exc_info()[1], Exception):
            os.write(2, traceback.format_exc().encode())
        os._exit(code)  # never back to the frames of the parent


@contextlib.contextmanager
def worker_pool(
    workers: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool of new processes; each calls `start` first. With an exception, Ctrl-C among them, they end at once.

    Forking would be quicker to start, but is not safe once libraries have started threads.
    """
    from concurrent.futures import ProcessPoolExecutor  # lazy: readers start without it
    from multiprocessing import get_context  # lazy: as above

    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (os.getpid(), start, arguments))
    try:
        yield pool
    except BaseException:
        processes = list((pool._processes or {}).values())  # what they compute is not waited for
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        raise
    finally:
        pool.shutdown()


def _begin(parent: int, start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    end_with_parent(parent)
    if start is not None:
        start(*arguments)
