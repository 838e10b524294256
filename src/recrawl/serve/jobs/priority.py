"""Work in the background lets people go first."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_LOWEST = 19


def lower_priority(process: int, by: int) -> None:
    """Give a process a lower priority than ours; where that cannot be done, it keeps its own.

    A process with a session of its own is in a group of its own on Linux (autogroup): groups share the processors by
    the priority of the group, whatever that of the process is. So both are lowered.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, min(_LOWEST, os.getpriority(os.PRIO_PROCESS, 0) + by))
    with contextlib.suppress(OSError, ValueError):
        if os.getsid(process) == process:
            said = Path("/proc/self/autogroup").read_text()  # "/autogroup-7 nice 0", nothing where we are in no group
            ours = int(said.rpartition(" ")[2] or 0)
            Path(f"/proc/{process}/autogroup").write_text(str(min(_LOWEST, ours + by)))
