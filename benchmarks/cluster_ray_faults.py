"""Faults of a cluster that Ray runs: `python -m benchmarks.cluster_ray_faults --count 12 --results FILE`.

Nodes of Ray on this machine, as in `benchmarks.cluster_demo`: a crawl, then cycles until there were as many faults as
asked for. Meanwhile, one after the other, one of these is killed with kill -9:

    worker        the process of a shard, which is an actor of Ray
    reader        a process that reads pages for a worker
    coordinator   the process of the coordinator, an actor as well
    raylet        Ray's own process on a node that is not the first; its workers end with it
    node          all processes of such a node, the command included
    head          all processes of the first node, Ray's control service included

A command that has ended is started again after up to three seconds, as a service manager does. The next fault comes
some seconds after all shards and the coordinator have a living owner again; how long that took is in the line of the
fault. Then the verdict of `benchmarks.cluster_faults`: no site with two requests at once or a pause under its delay, no
page lost, no visit lost or doubled, every cycle with exactly its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psycopg

from benchmarks import cluster_verdict
from benchmarks.cluster_faults import LIMIT, Session, final_verdict, note_run
from benchmarks.cluster_stand import Stand, end_by_signals, stand
from benchmarks.cluster_verdict import Visit
from benchmarks.kills import alive, kill, offspring
from benchmarks.referee import Sites
from recrawl.cluster.run_requests import Kind

KINDS = ("worker", "reader", "coordinator", "raylet", "node", "head")
NODES = ("one", "two", "three", "four", "five", "six")
START_SECONDS = 300.0


@dataclass
class RayFault:
    """One fault; a line of the results."""

    during: str
    after: float
    kind: str
    victim: str
    back: float = 0.0
    """Seconds until all shards and the coordinator had a living owner again."""


class RayNodes:
    """Nodes of Ray, each a command that is started again when it has ended."""

    def __init__(self, at: Stand, count: int, shards: int, lease: float) -> None:
        self.at, self.shards, self.lease = at, shards, lease
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.names = NODES[:count]
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.due: dict[str, float] = {}
        self.killed: set[int] = set()

    def start(self, name: str) -> None:
        """Start the command of a node."""
        words = ["--node", name, "--work", str(self.at.work / name)]
        if name == self.names[0]:
            words = ["start", "--port", str(self.port), "--lease", str(self.lease), *words]
        else:
            words = ["join", f"127.0.0.1:{self.port}", *words]
        with (self.at.work / f"command-{name}.log").open("ab") as log:
            self.running[name] = self.at.recrawl("cluster", *words, stdout=log, stderr=log)

    def tend(self) -> None:
        """Start what has ended, after its pause; the others wait for the first node."""
        for name in self.names:
            process = self.running.get(name)
            if (process is None or process.poll() is not None) and time.monotonic() >= self.due.get(name, 0.0):
                self.due[name] = time.monotonic() + 3.0
                self.start(name)

    def owners(self) -> dict[int, tuple[str, int]]:
        """Node and process of each shard, and of the coordinator as -2, if the process lives."""
        held = f"SELECT shard, worker FROM {self.at.schema}.leases WHERE worker != ''"
        found = {}
        with suppress(psycopg.OperationalError):
            for shard, worker in self.at.query(held):
                pid = int(worker.rsplit("/", 1)[1].split("-", maxsplit=1)[0])
                if pid not in self.killed and alive(pid):
                    found[shard] = worker.split("/", maxsplit=1)[0], pid
        return found

    def complete(self) -> bool:
        """Whether all shards and the coordinator have a living owner."""
        return len(self.owners()) == self.shards + 1

    def settled(self) -> None:
        """Wait until all nodes have their part of the shards."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            self.tend()
            nodes = {node for shard, (node, _) in self.owners().items() if shard >= 0}
            if self.complete() and len(nodes) == len(self.names):
                return
            time.sleep(0.5)
        raise SystemExit(f"the nodes did not start; see the logs in {self.at.work}")

    def kill(self, name: str, rng: np.random.Generator) -> None:
        """Kill all processes of a node; what Ray has moved out of its tree ends by itself."""
        process = self.running[name]
        self._kill([*offspring(process.pid), process.pid])
        process.wait()
        self.due[name] = time.monotonic() + rng.uniform(0, 3)

    def strike(self, kind: str, rng: np.random.Generator) -> str:
        """Make a fault; returns its victim, empty if there is none at the moment."""
        owners = self.owners()
        shards = sorted(shard for shard in owners if shard >= 0)
        if not shards or -2 not in owners:
            return ""
        shard = shards[int(rng.integers(len(shards)))]
        node, pid = owners[-2 if kind == "coordinator" else shard]
        other = str(rng.choice(self.names[1:]))
        if kind in ("worker", "coordinator"):
            self._kill([pid])
            return f"shard {shard} on {node}" if kind == "worker" else "coordinator"
        if kind == "reader":
            readers = [it for it in offspring(pid) if alive(it)]
            self._kill(readers[:1])
            return f"reader of shard {shard} on {node}" if readers else ""
        if kind == "raylet":
            raylets = [it for it in offspring(self.running[other].pid) if _program(it) == "raylet"]
            self._kill(raylets)
            self.killed |= {pid for node, pid in owners.values() if raylets and node == other}  # they end with it
            return other if raylets else ""
        name = self.names[0] if kind == "head" else other
        self.kill(name, rng)
        return name

    def _kill(self, pids: list[int]) -> None:
        self.killed |= set(pids)
        kill(pids)

    @contextmanager
    def up(self) -> Iterator[RayNodes]:
        """All nodes, for as long as the block runs."""
        try:
            self.start(self.names[0])
            self.due = dict.fromkeys(self.names[1:], time.monotonic() + 10.0)
            self.settled()
            yield self
        finally:
            self.at.must("cluster", "stop")
            for process in self.running.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                kill([*offspring(process.pid), process.pid])


def _program(pid: int) -> str:
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH119, PTH115
    return ""


def follow(run: int, kind: str, nodes: RayNodes, kinds: list[str], rng: np.random.Generator) -> list[RayFault]:
    """Wait for the end of a run, with faults."""
    began, faults = time.monotonic(), list[RayFault]()
    struck, strike_at, open_ = 0.0, began + rng.uniform(1, 4), False
    while not nodes.at.finished(run):
        now = time.monotonic()
        if now - began > LIMIT:
            raise SystemExit(f"{kind} {run} is stuck; see {nodes.at.work}")
        if open_ and nodes.complete():
            faults[-1].back, open_ = round(now - struck, 1), False
            strike_at = now + rng.uniform(2, 5)
            print(json.dumps(asdict(faults[-1])), flush=True)
        if kinds and not open_ and now >= strike_at and (victim := nodes.strike(kinds[0], rng)):
            faults.append(RayFault(kind, round(now - began, 1), kinds.pop(0), victim))
            struck, open_ = now, True
        nodes.tend()
        time.sleep(0.1)
    return faults


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--count", type=int, default=12, help="faults (12)")
    ask.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of faults (all)")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--results", type=Path, help="file to which faults and verdict are added")
    ask.add_argument("--work", type=Path, help="folder for logs and repositories; kept")
    ask.add_argument("--sites", type=int, default=60)
    ask.add_argument("--pages", type=int, default=20, help="mean pages of a site")
    ask.add_argument("--shards", type=int, default=6)
    ask.add_argument("--nodes", type=int, default=3)
    ask.add_argument("--delay", type=float, default=0.5, help="seconds between requests to a site")
    ask.add_argument("--lease", type=float, default=6.0, help="seconds of a lease")
    ask.add_argument("--budget", type=float, default=0.5, help="visits of a cycle, as a share of the pages")
    asked = ask.parse_args()
    end_by_signals()
    rng, began = np.random.default_rng(asked.seed), time.monotonic()
    kinds = [str(it) for it in rng.permutation(list(asked.kinds) * -(-asked.count // len(asked.kinds)))][: asked.count]
    work = asked.work or Path(tempfile.mkdtemp(prefix="ray-faults-"))
    result, faults, before = Session(0, 0), list[RayFault](), list[Visit]()
    with stand(work, Sites(asked.sites, asked.pages, asked.seed), asked.delay) as at:
        at.create("--shards", str(asked.shards))
        budget = round(asked.budget * sum(at.web.sites.sizes))
        with RayNodes(at, asked.nodes, asked.shards, asked.lease).up() as nodes:
            generation = 0
            while kinds or generation < 2:
                at.web.generation(generation)
                kind: Kind = "cycle" if generation else "crawl"
                faults += follow(at.request(kind, budget=budget), kind, nodes, kinds, rng)
                visits = cluster_verdict.visits_of(at, asked.shards)
                note_run(result, generation, budget, before, visits)
                before, generation = visits, generation + 1
        final_verdict(result, at, before, asked.shards)
    result.faults, result.seconds = len(faults), round(time.monotonic() - began, 1)
    lines = [json.dumps(asdict(it)) for it in (*faults, result)]
    print(lines[-1])
    if asked.results:
        with asked.results.open("a") as file:
            file.writelines(line + "\n" for line in lines)
    sys.exit(1 if any(result.wrong.values()) else 0)


if __name__ == "__main__":
    main()
