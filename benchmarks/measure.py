"""Run one command and measure its cost: CPU time of its whole process tree, wall time, peak memory.

CPU time is that of all waited-for children, as the kernel counts it, read after they have ended. To include processes
that outlive their parent, this process inherits orphans (as a "subreaper") and waits for them too. Memory is the
sampled sum of the proportional set sizes (PSS) over the tree: a page that n processes share counts 1/n in each, so that
the code of libraries counts once. `foreign` is
the CPU time of all other processes except the web server: the noise of a shared machine.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
SAMPLE_SECONDS = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
CLOCK = Path(__file__).parent / "clock"
"""In PYTHONPATH, with RECRAWL_BENCH_CLOCK, it sets the clock of commands (see `clock/sitecustomize.py`)."""


@dataclass(frozen=True)
class Cost:
    """The cost of a command."""

    cpu: float  # seconds, user and system, of the whole tree
    system: float  # seconds of these spent in the kernel, much of it for files and sockets
    wall: float  # seconds
    memory: int  # bytes, peak of the tree's sum
    foreign: float  # CPU seconds of everything else
    started: float  # clock time
    code: int


class CommandError(Exception):
    """A required command failed; carries the end of its output."""


def adopt_orphans() -> None:
    """Make orphaned grandchildren ours, so that their CPU time is counted (Linux only; elsewhere a no-op)."""
    if Path("/proc/self/stat").exists():
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(command: list[str], *, log: Path, server: int, env: dict[str, str] | None = None, limit: float = 900.0) -> Cost:
    """Run to the end (at most `limit` seconds) with output to `log`; `server` is the web server's process."""
    adopt_orphans()
    before, busy, serving = _children(), _machine_cpu(), _process_cpu(server)
    started, clock = time.time(), time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True
        )
        sampler = Sampler(process.pid)
        sampler.start()
        code = _wait(process, clock + limit)
    wall = time.monotonic() - clock
    sampler.stop()
    _wait_for_orphans(clock + limit, keep={server})
    user, system = (now - then for now, then in zip(_children(), before, strict=True))
    cpu = user + system
    foreign = (_machine_cpu() - busy) - cpu - (_process_cpu(server) - serving)
    return Cost(cpu, system, wall, sampler.peak, max(0.0, foreign), started, code)


def must(cost: Cost, what: str, log: Path, codes: tuple[int, ...] = (0,)) -> Cost:
    """Return the cost; raise an error with the last lines of the log if the command failed."""
    if cost.code not in codes:
        tail = log.read_text(errors="replace").splitlines()[-15:]
        raise CommandError(f"{what} ended with code {cost.code}:\n  " + "\n  ".join(tail))
    return cost


def _wait(process: subprocess.Popen[bytes], deadline: float) -> int:
    try:
        return process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return -signal.SIGKILL


def _wait_for_orphans(deadline: float, keep: set[int]) -> None:
    """Reap what the command left behind. The web server is a child of ours too, and stays."""
    while orphans := set(_offspring(os.getpid())) - keep:
        for pid in orphans:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue  # not yet ours: its parent still lives
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


class Sampler(threading.Thread):
    """Samples the memory of a process tree."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.peak = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, sum(_proportional(pid) for pid in [self.root, *_offspring(self.root)]))

    def stop(self) -> None:
        self._over.set()
        self.join()


def _children() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def _offspring(pid: int) -> list[int]:
    """Every process below `pid`."""
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        return found  # it has just ended
    return found + [below for child in list(found) for below in _offspring(child)]


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has just ended
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def _process_cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _machine_cpu() -> float:
    """CPU seconds of the whole machine that were not idle (includes what a hypervisor took away)."""
    try:
        ticks = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return 0.0
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS
