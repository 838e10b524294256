"""The processes of a cluster, started one by one without Ray, so that each can be killed, frozen and skewed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.cluster_stand import Stand
from benchmarks.kills import alive, kill, offspring
from benchmarks.measure import CLOCK


class Processes:
    """A coordinator, and on each node a worker for each shard; what has ended is started again.

    With two nodes there are two workers for a shard: one owns it, the other one waits for the end of its lease.
    """

    def __init__(
        self, stand: Stand, shards: int, *, nodes: int = 1, lease: float = 30.0, own_clocks: bool = True
    ) -> None:
        """`own_clocks`: each process has a clock that can be set, which costs it some CPU."""
        self.stand, self.lease, self.own_clocks = stand, lease, own_clocks
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        """By place: `coordinator`, `node0/1` for shard 1 on the first node ..."""
        self.due: dict[str, float] = {}
        """When the process of a place is started again."""
        self.places = ["coordinator", *(f"node{node}/{shard}" for node in range(nodes) for shard in range(shards))]
        self.clocks = dict.fromkeys(self.places, 0.0)
        """Seconds by which the clock of a place is wrong."""
        self.days = 0.0
        self.stopped: set[str] = set()

    def node_of(self, place: str) -> str:
        """The node of a place."""
        return place.partition("/")[0] if place != "coordinator" else "node0"

    def set_clocks(self, days: float | None = None) -> None:
        """Write the clock of every place: the days that have passed for all, and its own error."""
        self.days = self.days if days is None else days
        for place in self.places:
            file = self.clock_file(place)
            file.with_suffix(".new").write_text(str(86400 * self.days + self.clocks[place]))
            file.with_suffix(".new").replace(file)

    def clock_file(self, place: str) -> Path:
        return self.stand.work / f"{place.replace('/', '-')}.clock"

    def environment(self, place: str) -> dict[str, str]:
        """The environment of a process, with a clock of its own."""
        known = os.environ.get("PYTHONPATH", "")
        paths = [
            *([str(CLOCK)] if self.own_clocks else []),
            str(Path(__file__).parents[1]),
            *([known] if known else []),
        ]
        given = {"PYTHONPATH": ":".join(paths), "RECRAWL_BENCH_CLOCK": str(self.clock_file(place))}
        return {**os.environ, **given}

    def start(self, place: str) -> None:
        """Start the process of a place."""
        store, lease = f"{self.stand.database}?schema={self.stand.schema}", str(self.lease)
        command = [sys.executable, "-m", "benchmarks.cluster_process", store]
        if place == "coordinator":
            command += ["coordinator", lease]
        else:
            node, _, shard = place.partition("/")
            command += ["shard", shard, str(self.stand.work / node), node, lease]
        with (self.stand.work / f"{place.replace('/', '-')}.log").open("ab") as log:
            self.running[place] = subprocess.Popen(
                command, env=self.environment(place), stdout=log, stderr=log, start_new_session=True
            )

    def owners(self) -> list[str]:
        """The places whose workers own a shard at the moment."""
        held = self.stand.query(f"SELECT worker FROM {self.stand.schema}.leases WHERE shard >= 0 AND worker != ''")
        return [place for place in self.places for (name,) in held if name.startswith(f"{place}/{self._pid(place)}-")]

    def _pid(self, place: str) -> int:
        process = self.running.get(place)
        return process.pid if process is not None and process.poll() is None else -1

    def settled(self, shards: int) -> None:
        """Wait until all shards have an owner."""
        while len(self.owners()) < shards:
            time.sleep(0.1)

    def tend(self) -> None:
        """Start what has ended, after its pause."""
        for place in self.places:
            process = self.running.get(place)
            if process is not None and process.poll() is None:
                continue
            if time.monotonic() >= self.due.get(place, 0.0):
                self.start(place)

    def kill(self, places: list[str], pause: float) -> None:
        """Kill processes with all that they have started; they are started again after a pause."""
        for place in places:
            process = self.running[place]
            kill([*offspring(process.pid), process.pid])
            process.wait()
            self.stopped.discard(place)
            self.due[place] = time.monotonic() + pause

    def kill_one(self, place: str, pause: float) -> None:
        """Kill a process alone."""
        kill([self.running[place].pid])
        self.running[place].wait()
        self.stopped.discard(place)
        self.due[place] = time.monotonic() + pause

    def readers(self, place: str) -> list[int]:
        """The processes that a worker has started."""
        return [pid for pid in offspring(self.running[place].pid) if alive(pid)]

    def stop(self, place: str) -> None:
        """Freeze a worker with all that it has started."""
        process = self.running[place]
        kill([process.pid, *offspring(process.pid)], signal.SIGSTOP)
        self.stopped.add(place)

    def go_on(self, place: str, pid: int) -> None:
        """Let a frozen worker go on, if it was not killed meanwhile."""
        if self.running[place].pid == pid:
            kill([*offspring(pid), pid], signal.SIGCONT)
            self.stopped.discard(place)

    @contextmanager
    def up(self) -> Iterator[Processes]:
        """All processes, for as long as the block runs."""
        self.set_clocks()
        try:
            self.tend()
            yield self
        finally:
            self.end()

    def end(self) -> None:
        """Ask all processes to end; kill those that do not."""
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            kill([*offspring(process.pid), process.pid])
            process.wait()
        self.running.clear()
