"""CPU of a page in a cluster, against the embedded crawler on the same pages: `python -m benchmarks.cluster_overhead`.

A crawl of all sites of `benchmarks.referee` (no delay, no latency), then a cycle that visits all pages: embedded with
SQLite and files, embedded with PostgreSQL and an S3 server, and a cluster of 1, 2 and 4 workers, each with a shard.
CPU is that of the crawler alone, readers included, from the start of the run to its end; that of PostgreSQL is a column
of its own. The S3 server, moto's, is not counted. Rounds alternate, and the ratios are those of the sums.

Each line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.cluster_processes import Processes
from benchmarks.cluster_stand import Stand, end_by_signals, stand
from benchmarks.cluster_verdict import visits_of
from benchmarks.kills import offspring
from benchmarks.referee import Sites
from recrawl.cluster.run_requests import Kind
from recrawl.record import storage
from recrawl.repository.repository import Repository
from recrawl.settings import TEMPLATE

TICKS = os.sysconf("SC_CLK_TCK")
RUNS: tuple[Kind, ...] = ("crawl", "cycle")
KINDS = ("sqlite", "postgres + s3", "1 worker", "2 workers", "4 workers")


def tree_cpu(root: int) -> float:
    """CPU seconds of a process and of all that it has started, ended ones included."""
    total = 0
    for pid in [root, *offspring(root)]:
        with suppress(OSError):  # it has just ended: its parent has counted it
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def embedded(folder: Path, pages: int) -> None:
    """Crawl and cycle in this process; prints the CPU seconds of each."""
    for step in RUNS:
        before = used()
        with Repository(folder) as repo:
            report = repo.crawl() if step == "crawl" else repo.cycle(budget=pages, policy="round-robin")
        print(json.dumps({"step": step, "visits": report.visits, "cpu": used() - before}), flush=True)


def used() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in both)


def alone(at: Stand, kind: str, pages: int) -> list[dict[str, Any]]:
    """The embedded crawler, in a process of its own."""
    if kind == "sqlite":
        storage.create(at.folder, TEMPLATE)
        at.configure(at.folder)
    else:
        at.create()
    command = [sys.executable, "-m", "benchmarks.cluster_overhead", "--embedded", str(at.folder), "--pages", str(pages)]
    before = tree_cpu(at.postmaster())
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    rows[-1]["postgres"] = tree_cpu(at.postmaster()) - before
    return rows


def together(at: Stand, workers: int, pages: int) -> list[dict[str, Any]]:
    """A cluster with as many shards as workers."""
    at.create("--shards", str(workers))
    rows: list[dict[str, Any]] = []
    with Processes(at, workers).up() as cluster:
        cluster.settled(workers)
        for step in RUNS:
            roots = [process.pid for process in cluster.running.values()]
            before, database = sum(map(tree_cpu, roots)), tree_cpu(at.postmaster())
            run = at.request(step, policy="round-robin", budget=pages)
            while not at.finished(run):
                time.sleep(0.2)
            cpu = sum(map(tree_cpu, roots)) - before
            postgres = tree_cpu(at.postmaster()) - database
            made = len(visits_of(at, workers)) - sum(row["visits"] for row in rows)
            rows.append({"step": step, "visits": made, "cpu": cpu, "postgres": postgres})
    return rows


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--sites", type=int, default=100)
    ask.add_argument("--pages", type=int, default=40, help="mean pages of a site")
    ask.add_argument("--words", type=int, default=600, help="words of a page")
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    ask.add_argument("--embedded", type=Path, help=argparse.SUPPRESS)
    asked = ask.parse_args()
    end_by_signals()
    if asked.embedded:
        embedded(asked.embedded, asked.pages)
        return
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    sites = Sites(asked.sites, asked.pages, words=asked.words)
    pages = sum(sites.sizes)
    for number in range(asked.rounds):
        for kind in asked.only:
            with tempfile.TemporaryDirectory() as work, stand(Path(work), sites, delay=0.0, latency=0.0) as at:
                workers = int(kind.split()[0]) if "worker" in kind else 0
                rows = together(at, workers, pages) if workers else alone(at, kind, pages)
            for row in rows:
                total = sums[kind, row["step"]]
                total[0] += row["cpu"]
                total[1] += row["visits"]
                print(json.dumps({"round": number, "kind": kind, **row}), flush=True)
    for (kind, step), (cpu, visits) in sums.items():
        row = {"kind": kind, "step": step, "ms a page": round(1000 * cpu / visits, 3)}
        row["pages per CPU second"] = round(visits / cpu)
        for other in KINDS[:2]:
            if (other, step) in sums:
                row[f"against {other}"] = round(cpu / visits / (sums[other, step][0] / sums[other, step][1]), 3)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
