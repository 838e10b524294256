"""Child processes of the service: their CPU priority, their output, their end, and one-shot commands.

A child may have children of its own that outlive it and hold its pipes. Whoever waits here waits for the child itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from recrawl.errors import UsageError

_LOWEST_PRIORITY = 19
_NICE = 5
_POLL_MILLISECONDS = 200
_PIPE_BYTES = 1 << 20
"""At least the capacity of a pipe: one read after the end of a child gets all that it has written."""


def lower_priority(process: int, by: int) -> None:
    """Lower the CPU priority of a child process relative to this one, where the system allows it.

    A process with its own session has its own autogroup on Linux. Autogroups share the CPU by the niceness of the
    group, whatever the niceness of the process is, so both are lowered.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, min(_LOWEST_PRIORITY, os.getpriority(os.PRIO_PROCESS, 0) + by))
    with contextlib.suppress(OSError, ValueError):
        if os.getsid(process) == process:
            autogroup = Path("/proc/self/autogroup").read_text()  # "/autogroup-7 nice 0"; empty without an autogroup
            nice = int(autogroup.rpartition(" ")[2] or 0)
            Path(f"/proc/{process}/autogroup").write_text(str(min(_LOWEST_PRIORITY, nice + by)))


def lines_until_exit(child: subprocess.Popen[bytes], pipe: IO[bytes]) -> Iterator[str]:
    """Yield the lines that a child writes to a pipe, until the child exits or closes it."""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    os.set_blocking(pipe.fileno(), False)
    rest, ended, piece = b"", False, b" "
    while piece and not ended:
        ended = child.poll() is not None
        if not waiting.poll(0 if ended else _POLL_MILLISECONDS):
            continue
        piece = os.read(pipe.fileno(), _PIPE_BYTES)
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
    if rest:
        yield rest.decode("utf-8", "replace")


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that was started in its own session, and its children."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def run_module(module: str, *arguments: str, stdin: str = "", seconds: float) -> str:
    """Run `python -m module` at low priority and return its standard output.

    Raises TimeoutError after `seconds`, and UsageError with the error message of a process that failed.
    """
    line = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        child = subprocess.Popen(line, stdin=given, stdout=out, stderr=err, start_new_session=True)  # noqa: S603
        lower_priority(child.pid, _NICE)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            kill_group(child)
            child.wait()
        err.seek(0)
        out.seek(0)
        message = err.read().decode("utf-8", "replace").strip().removeprefix("recrawl: ")
        if child.returncode:
            raise UsageError(message[:500] or f"{module} failed with no message")
        return out.read().decode("utf-8", "replace")
