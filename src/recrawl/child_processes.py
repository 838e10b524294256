"""Child processes that end with their parent, however it ends.

A child that computes does not see a pipe close. A worker of a pool waits forever on a pipe that its siblings hold open.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent ends; a parent that has ended already ends it now."""
    with contextlib.suppress(OSError, AttributeError):  # other systems have no such call
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


def worker_pool(
    workers: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """Return a pool of new processes; each calls `start` first.

    Forking would be quicker to start, but is not safe once libraries have started threads.
    """
    return ProcessPoolExecutor(workers, get_context("spawn"), _begin, (os.getpid(), start, arguments))


def _begin(parent: int, start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent(parent)
    if start is not None:
        start(*arguments)
