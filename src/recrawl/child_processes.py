"""Child processes that end with their parent, however it ends.

A child that computes does not see a pipe close. A worker of a pool waits forever on a pipe that its siblings hold open.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 8_000_000


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


def worker_pool(
    workers: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """Return a pool of new processes; each calls `start` first.

    Forking would be quicker to start, but is not safe once libraries have started threads.
    """
    from concurrent.futures import ProcessPoolExecutor  # lazy: readers start without it
    from multiprocessing import get_context  # lazy: as above

    return ProcessPoolExecutor(workers, get_context("spawn"), _begin, (os.getpid(), start, arguments))


def _begin(parent: int, start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent(parent)
    if start is not None:
        start(*arguments)
