"""The faults of `benchmarks.cluster_faults`, one method each."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.cluster_processes import Processes
from benchmarks.cluster_stand import Stand
from benchmarks.kills import kill

KINDS = ("worker", "reader", "coordinator", "node", "connections", "database", "objects", "lease", "clock")


class Trouble:
    """Chooses and makes the faults of a session."""

    def __init__(self, at: Stand, cluster: Processes, rng: np.random.Generator, kinds: list[str], lease: float) -> None:
        self.at, self.cluster, self.rng, self.kinds, self.lease = at, cluster, rng, kinds, lease
        self.later: list[tuple[float, Any]] = []
        """What is to be undone, and when."""

    def tend(self, *, all_of_it: bool = False) -> None:
        """Undo what is due, and start what has ended."""
        for entry in list(self.later):
            if all_of_it or time.monotonic() >= entry[0]:
                self.later.remove(entry)
                entry[1]()
        self.cluster.tend()

    def workers(self) -> list[str]:
        """The places with a worker that owns its shard and is not frozen."""
        return [place for place in self.cluster.owners() if place not in self.cluster.stopped]

    def strike(self) -> tuple[str, str] | None:
        """Make the next fault; returns its kind and victim, or nothing if it has no victim at the moment."""
        kind, workers = self.kinds[0], self.workers()
        victim = getattr(self, f"_{kind}")(workers[int(self.rng.integers(len(workers)))] if workers else "")
        if not victim:
            return None
        self.kinds.pop(0)
        return kind, victim

    def _worker(self, place: str) -> str:
        if place:
            self.cluster.kill_one(place, self.rng.uniform(0, 3))
        return place

    def _reader(self, place: str) -> str:
        readers = self.cluster.readers(place) if place else []
        if not readers:
            return ""
        kill([readers[int(self.rng.integers(len(readers)))]])
        return f"reader of {place}"

    def _coordinator(self, _place: str) -> str:
        if self.cluster.running["coordinator"].poll() is not None:
            return ""
        self.cluster.kill_one("coordinator", self.rng.uniform(0, 3))
        return "coordinator"

    def _node(self, place: str) -> str:
        node = self.cluster.node_of(place) if place else ""
        live = [it for it, process in self.cluster.running.items() if process.poll() is None]
        self.cluster.kill([it for it in live if node and self.cluster.node_of(it) == node], self.rng.uniform(0, 3))
        return node

    def _connections(self, _place: str) -> str:
        return f"{self.at.cut_connections()} connections"

    def _database(self, _place: str) -> str:
        self.at.restart_database()
        return "database"

    def _objects(self, _place: str) -> str:
        seconds = float(self.rng.uniform(1, 6))
        self.at.objects.refusing = True
        self.later.append((time.monotonic() + seconds, lambda: setattr(self.at.objects, "refusing", False)))
        return f"object store, {seconds:.1f} s"

    def _lease(self, place: str) -> str:
        if not place:
            return ""
        seconds = self.lease + float(self.rng.uniform(0.5, 3))
        pid = self.cluster.running[place].pid
        self.cluster.stop(place)
        self.later.append((time.monotonic() + seconds, lambda: self.cluster.go_on(place, pid)))
        return f"{place}, {seconds:.1f} s"

    def _clock(self, place: str) -> str:
        place = place if self.rng.random() < 0.8 else "coordinator"
        if place:
            self.cluster.clocks[place] = float(self.rng.uniform(-3600, 3600))
            self.cluster.set_clocks()
        return f"{place}, {self.cluster.clocks[place]:+.0f} s" if place else ""
