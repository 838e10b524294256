"""CPU of a page in a cluster, against the embedded crawler on the same pages: `python -m benchmarks.cluster_overhead`.

A crawl of all sites of `benchmarks.referee` (no delay, no latency), then a cycle that visits all pages:

    sqlite           embedded, with SQLite and files
    postgres + s3    embedded, with PostgreSQL and an S3 server
    2 embedded       two such crawlers at the same time, each with half of the sites; no site links another
    2 workers        a cluster of two workers, each with a shard

As many processes on as many cores cost each other CPU time, whatever they do. So N workers are compared with N crawlers
at the same time, too. CPU is that of the crawlers alone, readers included, from the start of the run to its end; that
of PostgreSQL is a column of its own. The S3 server, moto's, is not counted. Rounds alternate; the ratios are those of
the sums. With several sizes (`--pages 60 200`) the CPU of each kind is divided into that of its start and that of a
page, by a line through the smallest and the largest.

Each line is a JSON object. With `--results FILE` they are kept there, and the summary is that of all lines of FILE.
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

import numpy as np

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
KINDS = ("sqlite", "postgres + s3", "1 worker", "2 embedded", "2 workers", "4 embedded", "4 workers")


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
    """Embedded crawlers, each in a process of its own; the sums of all of them."""
    count = int(kind.split(maxsplit=1)[0]) if "embedded" in kind else 1
    folders = [at.work / f"repository{number}" for number in range(count)]
    for number, folder in enumerate(folders):
        if kind == "sqlite":
            storage.create(folder, TEMPLATE)
            at.configure(folder)
        else:
            at.create_at(folder, f"bench{number}", part=(number, count))
    before = tree_cpu(at.postmaster())
    command = [sys.executable, "-m", "benchmarks.cluster_overhead", "--pages", str(pages), "--embedded"]
    running = [subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE, text=True) for folder in folders]
    parts = [[json.loads(line) for line in process.communicate()[0].splitlines()] for process in running]
    rows = [
        {"step": step, **{name: sum(part[place][name] for part in parts) for name in ("visits", "cpu")}}
        for place, step in enumerate(RUNS)
    ]
    rows[-1]["postgres"] = tree_cpu(at.postmaster()) - before
    return rows


def together(at: Stand, workers: int, pages: int) -> list[dict[str, Any]]:
    """A cluster with as many shards as workers."""
    at.create("--shards", str(workers))
    rows: list[dict[str, Any]] = []
    with Processes(at, workers, own_clocks=False).up() as cluster:
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


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CPU of a page of each kind, size and step, and the ratios to what it is compared with."""
    sums: dict[tuple[str, int, str], Any] = defaultdict(lambda: np.zeros(2))
    for line in lines:
        sums[line["kind"], line["pages"], line["step"]] += line["cpu"], line["visits"]
    cost = {what: cpu / visits for what, (cpu, visits) in sums.items()}
    found = []
    for (kind, pages, step), each in sorted(cost.items(), key=lambda item: (item[0][2], item[0][1])):
        row = {"kind": kind, "pages": pages, "step": step, "ms a page": round(1000 * each, 3)}
        row["pages per CPU second"] = round(1 / each)
        for other in (*KINDS[:2], kind.replace("workers", "embedded")):
            if other != kind and (other, pages, step) in cost:
                row[f"against {other}"] = round(each / cost[other, pages, step], 3)
        found.append(row)
    return found


def by_size(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CPU seconds of the start and milliseconds of a page, by a line through the smallest and the largest size."""
    sums: dict[tuple[str, str], dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        sums[line["kind"], line["step"]][line["pages"]].append((line["visits"], line["cpu"]))
    found = []
    for (kind, step), sizes in sums.items():
        (few, low), (many, high) = (np.mean(sizes[size], axis=0) for size in (min(sizes), max(sizes)))
        if many > few:
            each = (high - low) / (many - few)
            start = round(low - few * each, 2)
            found.append({"kind": kind, "step": step, "start, s": start, "ms a further page": round(1000 * each, 3)})
    return found


def measured(kind: str, asked: argparse.Namespace, size: int) -> list[dict[str, Any]]:
    """One crawl and cycle of a kind."""
    workers = int(kind.split(maxsplit=1)[0]) if "worker" in kind else 0
    sites = Sites(asked.sites, size, words=asked.words, apart="embedded" in kind)
    pages = sum(sites.sizes)
    with tempfile.TemporaryDirectory() as work, stand(Path(work), sites, delay=0.0, latency=0.0) as at:
        rows = together(at, workers, pages) if workers else alone(at, kind, pages)
    return [{"kind": kind, "pages": size, **row} for row in rows]


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--sites", type=int, default=60)
    ask.add_argument("--pages", type=int, nargs="+", default=[200], help="mean pages of a site; several sizes")
    ask.add_argument("--words", type=int, default=600, help="words of a page")
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    ask.add_argument("--results", type=Path, help="file of all measurements; an existing one is continued")
    ask.add_argument("--embedded", type=Path, help=argparse.SUPPRESS)
    asked = ask.parse_args()
    end_by_signals()
    if asked.embedded:
        embedded(asked.embedded, *asked.pages)
        return
    lines: list[dict[str, Any]] = []
    if asked.results and asked.results.exists():
        lines = [json.loads(line) for line in asked.results.read_text().splitlines()]
    for _ in range(asked.rounds):
        for size in asked.pages:
            for kind in asked.only:
                made = measured(kind, asked, size)
                text = "".join(json.dumps(row) + "\n" for row in made)
                print(text, end="", flush=True)
                if asked.results:
                    with asked.results.open("a") as file:
                        file.write(text)
                lines += made
    for row in [*summary(lines), *by_size(lines)]:
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
