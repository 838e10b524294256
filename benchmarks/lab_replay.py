"""One replay in a process of its own: its time and memory, without anything else in the process.

    python -m benchmarks.lab_replay make WORLD PAGES            a world, written to a file
    python -m benchmarks.lab_replay make WORLD PAGES COPIES     the same sites so many times over
    python -m benchmarks.lab_replay run WORLD POLICY BUDGET     24 cycles on it; prints what they cost

The world is T's (spec §10): its sites, directories and links as published, a year of changes, no HTML. Beyond T's,
every other version of a page has one link that leads elsewhere: no policy profits from links that stay as they are.
Copies are for worlds that differ in nothing but size; they have neither links nor clusters. Time is that of the replay
alone; memory is the most that the process ever had, the interpreter, all libraries and the world itself included.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Directories
from recrawl.choose import make_policy
from recrawl.lab.experiments.tan2007 import TWorld
from recrawl.lab.histories.history import History, LinkLists
from recrawl.lab.replays.replay import Setup, replay

CYCLES = 24
CYCLE = 14 * 86400.0


@dataclass(frozen=True)
class Cost:
    """What one replay took."""

    policy: str
    pages: int
    budget: int
    visits: int
    found: int
    cpu: float
    """Seconds of the processor."""
    wall: float
    memory: int
    """Bytes."""


def make(path: Path, pages: int, copies: int = 0) -> None:
    """A world in a file."""
    history = TWorld(pages=pages, clusters=not copies).build()
    history = copied(history, copies) if copies else replace(history, links=restless(history))
    with path.open("wb") as file:
        pickle.dump(history, file, protocol=5)


def copied(history: History, times: int) -> History:
    """The same pages and changes so many times over, each time on sites and in directories of their own."""

    def again(column: NDArray[Any], further: int) -> NDArray[Any]:
        shift = further * np.arange(times, dtype=column.dtype)
        longer: NDArray[Any] = np.add.outer(shift, column).ravel()
        return longer

    tree = history.folders
    parent = again(tree.parent, len(tree.parent))
    parent[np.tile(tree.parent, times) < 0] = -1
    return replace(
        history,
        urls=list(history.urls) * times,
        sites=history.sites * times,
        site=again(history.site, len(history.sites)),
        folder=again(history.folder, len(tree.parent)),
        folders=Directories(parent, np.tile(tree.level, times)),
        form=again(history.form, int(history.form.max()) + 1),
        first=np.append(again(history.first[:-1], len(history.time)), len(history.time) * times),
        time=np.tile(history.time, times),
        version=again(history.version, int(history.version.max()) + 1),
        size=np.tile(history.size, times),
        begins=np.tile(history.begins, times),
        links=None,
        carries=history.carries - {"links"},
    )


def restless(history: History) -> LinkLists:
    """The links with a second list for each page, used by every other version: its first link leads elsewhere."""
    links = history.links
    assert links is not None
    pages = len(history)
    second = links.target.copy()
    first = links.start[:-1][np.diff(links.start) > 0]
    second[first] = (second[first] + 1) % pages
    age = np.arange(len(history.time)) - np.repeat(history.first[:-1], np.diff(history.first))
    return LinkLists(
        (history.page_of + pages * (age % 2)).astype(np.int32),
        np.concatenate((links.start, links.start[1:] + links.start[-1])),
        np.concatenate((links.target, second)),
    )


def run(path: Path, policy: str, budget: int, cycles: int = CYCLES) -> Cost:
    """Replay a world from a file."""
    with path.open("rb") as file:
        history: History = pickle.load(file)
    np.random.default_rng()  # loads a part of numpy, which is no part of the work
    setup = Setup(budget=budget, cycle=CYCLE, cycles=cycles)
    chosen = make_policy(policy)
    wall, cpu = time.perf_counter(), time.process_time()
    record = replay(history, chosen, setup)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(policy, len(history), budget, int(record.visits.sum()), int(record.found.sum()), cpu, wall, memory)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", path, pages, *copies]:
            make(Path(path), int(pages), *map(int, copies))
        case ["run", path, policy, budget]:
            print(json.dumps(asdict(run(Path(path), policy, int(budget)))))
        case _:
            sys.exit(__doc__)
