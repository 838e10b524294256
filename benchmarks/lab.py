"""The lab: cost of a replay under every policy, and of PageRank and clusters, which are computed before a replay.

Each measurement runs in its own process on one core:

* every policy at its defaults, and sampling with every neighbourhood and phi: 24 cycles on a world as large as T's;
* round-robin with larger budgets, for the loop itself rather than the choice;
* some policies on 30,000 pages, and on worlds of ten and a hundred copies of them, the same share visited in a cycle;
* PageRank of a million pages, and the clusters of T's pages, features included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import lab_clusters, lab_pagerank
from benchmarks.lab_replay import CYCLES, Cost
from benchmarks.report import Table, number
from recrawl.choose import POLICIES

PAGES = 284_692
BUDGET = 25_000
LARGER = (100_000, PAGES)
SMALL, COPIES = 30_000, (1, 10, 100)
GROWING = ("round-robin", "greedy", "sampling", "change-frequency", "nutch")
PREDICTING = frozenset({"predicted"})
"""Policies that fit models: they have no bar here."""
SECONDS, MEMORY = 30.0, 1536 * 2**20
VISITS = 5e6
CLUSTER_SECONDS = 300.0
LINEAR = 2.0
"""Allowed growth of the cost per page and cycle in a world ten times as large, which exceeds the CPU caches."""
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass
class Lab:
    """The measurements."""

    policies: list[Cost] = field(default_factory=list)
    larger: list[Cost] = field(default_factory=list)
    growing: list[Cost] = field(default_factory=list)
    pagerank: dict[str, float] = field(default_factory=dict)
    clusters: dict[str, float] = field(default_factory=dict)


def texts() -> list[str]:
    """Return the texts of the policies to replay."""
    kinds = ("directory", "links", "clusters")
    sampling = [f"sampling(neighbours={kind}, phi={phi})" for kind in kinds for phi in ("status", "ha", "wha", "pra")]
    return [*(name for name in POLICIES if name != "sampling"), *sampling]


def measure(work: Path, scale: float = 1.0) -> Lab:
    """Run all measurements; `scale` below 1 makes every world smaller, for a trial run."""
    done = Lab()
    world = work / "world"
    _child("lab_replay", "make", str(world), _scaled(PAGES, scale))
    for text in texts():
        done.policies += _replay(world, text, BUDGET, scale)
    for budget in LARGER:
        done.larger += _replay(world, "round-robin", budget, scale)
    for copies in COPIES:
        done.growing += _grown(world, copies, scale)
    world.unlink()
    done.pagerank = json.loads(
        _child("lab", "pagerank", _scaled(lab_pagerank.PAGES, scale), _scaled(lab_pagerank.LINKS, scale))
    )
    done.clusters = json.loads(_child("lab", "clusters", _scaled(lab_clusters.PAGES, scale)))
    return done


def _grown(world: Path, copies: int, scale: float) -> list[Cost]:
    """Replay some policies on `copies` copies of a small world."""
    _child("lab_replay", "make", str(world), _scaled(SMALL, scale), str(copies))
    budget = round(SMALL * copies * BUDGET / PAGES)
    return [cost for text in GROWING for cost in _replay(world, text, budget, scale)]


def _scaled(size: int, scale: float) -> str:
    return str(max(500, round(size * scale)))


def _replay(world: Path, text: str, budget: int, scale: float) -> list[Cost]:
    """Run one replay; return nothing if it fails, so that the others still run."""
    try:
        cost = Cost(**json.loads(_child("lab_replay", "run", str(world), text, str(max(1, round(budget * scale))))))
    except subprocess.CalledProcessError as problem:
        print(f"  FAILED: {text}: {problem.stderr.strip().splitlines()[-1]}", flush=True)
        return []
    print(
        f"  {cost.pages:9,} pages  {text:44} {cost.cpu:7.2f} s CPU {cost.wall:7.2f} s {cost.memory / 2**20:6.0f} MiB",
        flush=True,
    )
    return [cost]


def _child(module: str, *words: str) -> str:
    """Run a module of this package on one core and return its output."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ONE_CORE).stdout


def as_json(done: Lab) -> dict[str, object]:
    return asdict(done)


def from_json(found: dict[str, list[dict[str, object]]]) -> Lab:
    costs = {part: [Cost(**row) for row in found[part]] for part in ("policies", "larger", "growing")}  # type: ignore[arg-type]
    return Lab(**costs, pagerank=found["pagerank"], clusters=found["clusters"])  # type: ignore[arg-type]


def tables(done: Lab) -> list[Table]:
    heads = ["policy", "CPU s", "s", "peak MiB", "visits", "found", "visits per CPU-second"]
    rows = [
        [
            cost.policy if cost in done.policies else f"{cost.policy}, {cost.budget:,} a cycle",
            number(cost.cpu),
            number(cost.wall),
            f"{cost.memory / 2**20:.0f}",
            f"{cost.visits:,}",
            f"{cost.found:,}",
            f"{cost.visits / cost.cpu:,.0f}",
        ]
        for cost in (*done.policies, *done.larger)
    ]
    size, budget = next(((cost.pages, cost.budget) for cost in done.policies), (PAGES, BUDGET))
    title = f"Replays: {size:,} pages, {CYCLES} cycles, at most {budget:,} visits a cycle"
    return [Table(title, heads, rows), _growth(done), _bounds(done)]


def _growth(done: Lab) -> Table:
    sizes = sorted({cost.pages for cost in done.growing})
    rows = []
    for text in GROWING:
        costs = [cost for cost in done.growing if cost.policy == text]
        largest = f"{costs[-1].memory / 2**20:.0f}" if costs else ""
        rows.append([text, *(number(_per_page(cost)) for cost in costs), largest])
    heads = ["policy", *(f"{size:,} pages, ns" for size in sizes), "MiB for the largest"]
    return Table("Replays: CPU time per page and cycle", heads, rows)


def _per_page(cost: Cost) -> float:
    """Nanoseconds."""
    return cost.cpu * 1e9 / cost.pages / CYCLES


def _bounds(done: Lab) -> Table:
    checks: list[tuple[str, str, str, bool]] = []
    plain = [cost for cost in done.policies if cost.policy not in PREDICTING]
    if plain:
        slow, large = max(plain, key=lambda cost: cost.cpu), max(plain, key=lambda cost: cost.memory)
        checks += [
            (f"the slowest replay, {slow.policy}", f"{slow.cpu:.1f} s", f"{SECONDS:g} s", slow.cpu < SECONDS),
            (
                f"the largest memory, {large.policy}",
                f"{large.memory / 2**20:.0f} MiB",
                f"{MEMORY / 2**20:.0f} MiB",
                large.memory < MEMORY,
            ),
        ]
    for cost in done.larger:
        speed = cost.visits / cost.cpu
        about = f"round-robin, {cost.budget:,} visits a cycle"
        checks.append((about, f"{speed / 1e6:.1f} M a second", f"at least {VISITS / 1e6:g} M", speed >= VISITS))
    for text in GROWING:
        costs = [cost for cost in done.growing if cost.policy == text]
        if len(costs) > 1:
            ratio = _per_page(costs[-1]) / _per_page(costs[-2])
            about = f"{text}: a page and cycle, {costs[-1].pages:,} pages against {costs[-2].pages:,}"
            checks.append((about, f"{ratio:.2f}x", f"{LINEAR:g}x", ratio <= LINEAR))
    if done.pagerank:
        took = done.pagerank["seconds"]
        about = f"PageRank of {done.pagerank['pages']:,} pages with {done.pagerank['links']:,} links"
        checks.append((about, f"{took:.2f} s", f"{lab_pagerank.SECONDS:g} s", took < lab_pagerank.SECONDS))
    if done.clusters:
        took = done.clusters["CPU seconds, both"]
        about = f"features and clusters of {done.clusters['pages']:,} pages"
        checks.append((about, f"{took:.0f} s", f"{CLUSTER_SECONDS:g} s", took < CLUSTER_SECONDS))
        most = done.clusters["MiB at most"]
        checks.append(("their memory", f"{most:.0f} MiB", f"{MEMORY / 2**20:.0f} MiB", most < MEMORY / 2**20))
    rows = [[about, measured, bar, "yes" if kept else "NO"] for about, measured, bar, kept in checks]
    return Table("Bounds of the lab, in CPU seconds", ["", "measured", "bar", "kept"], rows)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pagerank", pages, links]:
            print(json.dumps(lab_pagerank.pagerank(int(pages), int(links))))
        case ["clusters", pages]:
            print(json.dumps(lab_clusters.clusters(int(pages))))
        case _:
            sys.exit("run `python -m benchmarks --only lab`")
