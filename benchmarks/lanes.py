"""Do servers wait for one another? A crawl and a cycle of many hosts, against what politeness allows.

    python -m benchmarks.lanes crawl [--hosts 5000] [--delay 10]
    python -m benchmarks.lanes cycle [--hosts 1000] [--delay 0.2] [--ages 0 150 432000] [--seeds 1] [--whole]
    python -m benchmarks.lanes finds ARCHIVE... [--seeds 5] [--budgets 0.01] [--late 1]

The web is `benchmarks.lanes_web`: one process, each host a name under `localhost` with its own latency, 50 to 500 ms.
A host gets one request at a time; the next one starts no sooner than the delay, or the time of the last answer if that
was longer, after that answer.

* crawl: the share of the allowed pace that hosts got, by the pauses between their requests as the server saw them:
  allowed pause plus latency, over the pause plus latency that were. 1 means that no lane was idle.
* cycle: a tenth of the hosts is large, and half of the large ones are rebuilt, so that picks crowd. The time from the
  first request to the last answer, over the longest queue of any one host: its latencies and the pauses between them.
  `overlapping` is the default policy: it awaits the first pages of each group, and no others. `--whole` adds `whole
  batches`, the same made to wait for every batch. The clock of the cycles is set, so that pages have the age that is
  asked for. Each seed rebuilds other hosts.
* finds: changes that the default policy finds in the lab with and without late outcomes, by seed; no server is needed.

Each line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import CLOCK, must, run
from benchmarks.opinion import clairvoyant
from recrawl.choose.shock.policy import Shock
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.replay import Setup, replay
from recrawl.record import storage
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_value

DAY = 86400.0


class Whole(Shock):
    """The default policy, made to wait for whole batches."""

    name = "whole"

    def cycle(self, book, budget, rng):
        choice, seen = super().cycle(book, budget, rng), None
        try:
            while True:
                seen = yield replace(choice.send(seen), awaits=1.0)
        except StopIteration:
            return


class Hosts:
    """The web server, and a repository that keeps its hosts."""

    def __init__(self, asked: argparse.Namespace, pages: list[int], work: Path) -> None:
        self.work, self.delay = work, asked.delay
        words = [sys.executable, "-m", "benchmarks.lanes_web", str(asked.delay), *map(str, pages)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.folder = work / "repository"
        storage.create(self.folder, TEMPLATE)
        urls = [f"http://h{number}.localhost:{self.port}/" for number in range(len(pages))]
        path = self.folder / storage.SETTINGS
        write_seeds(path, tuple(Seed(url, allow_private=True, delay=asked.delay) for url in urls))
        for name, value in {"index": False, "per_server": 1}.items():
            write_value(path, name, value)
        self.clock = work / "clock.txt"
        self.clock.write_text("0")
        paths = [str(CLOCK), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        self.environment = {**os.environ, "PYTHONPATH": ":".join(paths), "RECRAWL_BENCH_CLOCK": str(self.clock)}

    def tell(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/{path}", timeout=600) as answer:
            return json.load(answer)

    def recrawl(self, folder: Path, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a command; what it printed, and what it cost, with what the server saw of it."""
        self.tell("reset")
        log = self.work / "log.txt"
        command = [sys.executable, "-m", "recrawl", "-C", str(folder), *words, "--json"]
        cost = run(command, log=log, server=self.process.pid, env=self.environment, limit=3600.0)
        must(cost, " ".join(words), log)
        seen = self.tell("counts")
        seen |= {"cpu s": round(cost.cpu, 1), "MiB": cost.memory >> 20, "other cpu s": round(cost.foreign, 1)}
        return json.loads(log.read_text()[log.read_text().index("{") :]), seen


def crawl(asked: argparse.Namespace, work: Path) -> None:
    hosts = Hosts(asked, [asked.pages] * asked.hosts, work)
    try:
        _, seen = hosts.recrawl(hosts.folder, "crawl")
        told(what="crawl", hosts=asked.hosts, delay=asked.delay, **seen)
    finally:
        hosts.process.kill()


def cycle(asked: argparse.Namespace, work: Path) -> None:
    rng = np.random.default_rng(1)
    large = rng.permutation(asked.hosts)[: asked.hosts // 10]
    pages = np.full(asked.hosts, 4)
    pages[large] = rng.integers(20, 120, len(large))
    hosts = Hosts(asked, pages.tolist(), work)
    try:
        budget = asked.budget or int(pages.sum()) // 3
        hosts.tell("quick?on=1")
        hosts.recrawl(hosts.folder, "crawl")
        crawled = time.time()
        hosts.tell("quick?on=0")
        policies = {"overlapping": "shock"} | ({"whole batches": "benchmarks.lanes:Whole"} if asked.whole else {})
        for age, seed in product(asked.ages, range(1, asked.seeds + 1)):
            rebuilt = np.random.default_rng(seed).permutation(large)[: len(large) // 2]
            hosts.tell("rebuild?" + "&".join(f"h={number}" for number in rebuilt))
            for name, policy in policies.items():
                folder = work / "copy"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(hosts.folder, folder)
                write_value(folder / storage.SETTINGS, "seed", seed)
                hosts.clock.write_text(str(age - (time.time() - crawled)))
                summary, seen = hosts.recrawl(folder, "cycle", "--budget", str(budget), "--policy", policy)
                found = {key: summary.get(key) for key in ("visits", "changed")}
                told(what=name, hosts=asked.hosts, delay=asked.delay, age=age, seed=seed, **found, **seen)
    finally:
        hosts.process.kill()


def finds(asked: argparse.Namespace) -> None:
    history = open_history(asked.archives, "text", asked.cache)
    for budget in asked.budgets:
        visits, bound = clairvoyant(history, budget, asked.cycles)
        rows: dict[float, list[float]] = {}
        for seed in range(1, asked.seeds + 1):
            for late in (0.0, *asked.late):
                setup = Setup(budget=visits, cycle=DAY, cycles=asked.cycles, seed=seed, samples=1, late=late)
                found = replay(history, Shock(), setup).found.sum() / max(bound, 1)
                rows.setdefault(late, []).append(float(found))
                told(budget=budget, seed=seed, late=late, found=round(float(found), 4))
        for late in asked.late:
            gain = np.array(rows[late]) - np.array(rows[0.0])
            error = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else float("nan")
            told(budget=budget, late=late, mean_gain=round(float(gain.mean()), 4), standard_error=round(error, 4))


def told(**row: object) -> None:
    print(json.dumps(row), flush=True)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("what", choices=("crawl", "cycle", "finds"))
    ask.add_argument("archives", nargs="*", type=Path)
    ask.add_argument("--hosts", type=int)
    ask.add_argument("--delay", type=float)
    ask.add_argument("--pages", type=int, default=8, help="pages of each host, of `crawl`")
    ask.add_argument("--budget", type=int, help="visits, of `cycle`; a third of the pages by default")
    ask.add_argument("--ages", type=float, nargs="+", default=[0.0], help="seconds from the crawl to the cycle")
    ask.add_argument("--whole", action="store_true", help="of `cycle`: also with batches that wait for all outcomes")
    ask.add_argument("--seeds", type=int, default=1)
    ask.add_argument("--cycles", type=int, default=120)
    ask.add_argument("--budgets", type=float, nargs="+", default=[0.01])
    ask.add_argument("--late", type=float, nargs="+", default=[1.0])
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    if asked.what == "finds":
        finds(asked)
        return
    hosts, delay = {"crawl": (5000, 10.0), "cycle": (1000, 0.2)}[asked.what]
    asked.hosts, asked.delay = asked.hosts or hosts, delay if asked.delay is None else asked.delay
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        {"crawl": crawl, "cycle": cycle}[asked.what](asked, Path(work))


if __name__ == "__main__":
    main()
