"""Child processes of the service: their CPU priority, and one-shot commands with a time limit."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from recrawl.errors import UsageError

_LOWEST_PRIORITY = 19
_NICE = 5


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


def run_module(module: str, *arguments: str, stdin: str = "", seconds: float) -> str:
    """Run `python -m module` at low priority and return its standard output.

    Raises TimeoutError after `seconds`, and UsageError with the error message of a process that failed.
    """
    line = [sys.executable, "-m", module, *arguments]
    pipe = subprocess.PIPE
    child = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603
    lower_priority(child.pid, _NICE)
    try:
        out, err = child.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise TimeoutError from None
    if child.returncode:
        raise UsageError(err.strip().removeprefix("recrawl: ")[:500] or f"{module} failed with no message")
    return out
