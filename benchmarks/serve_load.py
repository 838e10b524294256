"""The service under load: `python -m benchmarks.serve_load --pages 1000000 --visits 10000000`.

A repository is filled without crawling: pages that the benchmark's web serves, visits spread over cycles, and the sums
that cycles write. Then the real `recrawl serve` answers

* alone: each page of the dashboard and each question of the API, one after another; median and 95th percentile, and the
  CPU of an answer that is not cached;
* while it runs a cycle: clients ask for a fixed rate in all (200 a second unless told otherwise), a mix of the above;

and runs such a cycle without any requests, for how much they slow it. The bar: overview within 100 ms at the 95th
percentile, 200 requests a second held, the cycle no more than 10 % slower.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.scale import fill
from benchmarks.web import running
from recrawl.cli import invoke as command
from recrawl.crawl.reports.summaries import catch_up
from recrawl.record.store import SqliteStore

PATHS = {
    "overview": "/",
    "sites": "/sites",
    "site": "/sites/0",
    "page": "/pages/7",
    "changes": "/changes",
    "api status": "/api/v1/status",
    "api pages": "/api/v1/pages?limit=50",
    "api changes": "/api/v1/changes?limit=50",
    "api cycles": "/api/v1/cycles",
    "metrics": "/metrics",
}
DAY = 86400.0


@dataclass
class Times:
    """How long answers took, in seconds, by name."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: int = 0

    def add(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)

    def figures(self, name: str) -> tuple[float, float]:
        """Median and 95th percentile in milliseconds."""
        values = sorted(self.seconds[name])
        return 1000 * statistics.median(values), 1000 * values[min(len(values) - 1, int(0.95 * len(values)))]


def add_visits(folder: Path, pages: int, visits: int, cycles: int) -> None:
    """Give pages a past: `visits` of them in `cycles` cycles, the last of which ended just now."""
    chance = np.random.default_rng(1)
    now = time.time()
    each = visits // cycles
    with closing(SqliteStore(folder / "recrawl.db", create=True)) as store:
        store.db.execute("PRAGMA synchronous = OFF")
        first = store.next_id("visits")
        for cycle in range(cycles):
            begin = now - (cycles - cycle) * DAY
            page = chance.integers(0, pages, each)
            at = begin + np.arange(each) * (3600.0 / each)
            outcome = (chance.random(each) < 0.1).astype(int)
            with store.transaction():
                store.db.execute(
                    "INSERT INTO cycles (id, kind, policy, budget, seed, started, finished, first_visit, known) "
                    "VALUES (?, 'cycle', 'round-robin', ?, 1, ?, ?, ?, ?)",
                    (cycle, each, begin, begin + 3600.0, first, pages),
                )
                store.db.executemany(
                    "INSERT INTO visits (id, page, cycle, at, outcome, status, received, seconds, version, score) "
                    "VALUES (?, ?, ?, ?, ?, 200, 5000, 0.05, -1, 0.5)",
                    zip(
                        range(first, first + each),
                        page.tolist(),
                        [cycle] * each,
                        at.tolist(),
                        outcome.tolist(),
                        strict=True,
                    ),
                )
            first += each
        catch_up(store, now)


@dataclass(frozen=True)
class Running:
    """The real service."""

    port: int
    process: int

    def cpu(self) -> float:
        """Seconds of CPU that its own process has taken, without the one that crawls."""
        words = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: Path) -> Iterator[Running]:
    """The real command."""
    words = [sys.executable, "-m", "recrawl", "-C", str(folder), "serve", "--port", "0", "--no-schedule", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = ""
        while not told.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the service did not start")
            told += line
        yield Running(int(json.loads(told)["address"].rstrip("/").rpartition(":")[2]), process.pid)
    finally:
        process.terminate()
        process.wait()


def asked(connection: http.client.HTTPConnection, path: str) -> int:
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def alone(port: int, rounds: int) -> Times:
    """One request after another."""
    times = Times()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for turn in range(rounds + 2):
            for name, path in PATHS.items():
                begun = time.perf_counter()
                status = asked(connection, path)
                if turn >= 2:  # the first ones open files
                    times.add(name, time.perf_counter() - begun)
                    times.errors += status != 200
    return times


def uncached(service: Running, rounds: int = 5) -> dict[str, float]:
    """Milliseconds of CPU of an answer that is rendered anew, by name: rendered pages are kept for a second."""
    spent = {}
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)) as connection:
        for name, path in PATHS.items():
            asked(connection, path)  # the first one opens files
            total = 0.0
            for _ in range(rounds):
                time.sleep(1.1)
                begun = service.cpu()
                asked(connection, path)
                total += service.cpu() - begun
            spent[name] = 1000 * total / rounds
    return spent


def pressed(port: int, rate: float, stop: threading.Event, clients: int = 8) -> tuple[Times, float]:
    """Clients that ask at a fixed rate in all until told to stop; what they saw, and the rate that was held."""
    times, lock = Times(), threading.Lock()
    begun = time.perf_counter()

    def client(number: int) -> None:
        names = list(PATHS)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            turn = 0
            while not stop.is_set():
                due = begun + (turn * clients + number) / rate
                if stop.wait(max(0.0, due - time.perf_counter())):
                    return
                name = "overview" if turn % 2 else names[(turn // 2 + number) % len(names)]
                start = time.perf_counter()
                status = asked(connection, PATHS[name])
                with lock:
                    times.add(name, time.perf_counter() - start)
                    times.errors += status != 200
                turn += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count = sum(len(values) for values in times.seconds.values())
    return times, count / (time.perf_counter() - begun)


def cycle(port: int, visits: int) -> float:
    """Seconds that a cycle of the service takes, from its first visit to its last."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:

        def told(method: str, path: str, body: str | None = None) -> dict[str, object]:
            connection.request(method, f"/api/v1{path}", body, {"Content-Type": "application/json"} if body else {})
            return json.loads(connection.getresponse().read())

        told("POST", "/cycles", json.dumps({"budget": visits, "policy": "round-robin"}))
        while (now := told("GET", "/scheduler"))["running"] or now["last"] is None:
            time.sleep(0.1)
    last = now["last"]
    assert isinstance(last, dict), now
    assert last["visits"] >= visits * 0.99, now
    return float(last["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--visits", type=int, default=100_000)
    parser.add_argument("--cycles", type=int, default=200, help="cycles that these visits were made in")
    parser.add_argument("--budget", type=int, default=2_000, help="visits of the cycle that runs beside requests")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second beside it")
    parser.add_argument("--rounds", type=int, default=40)
    chosen = parser.parse_args()
    with running(10_000) as web, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "repo"
        begun = time.perf_counter()
        command(["init", str(folder)])
        for name, value in (("per_server", "8"), ("readers", "1")):
            command(["-C", str(folder), "config", name, value])
        fill(folder, web.url, chosen.pages)
        add_visits(folder, chosen.pages, chosen.visits, chosen.cycles)
        print(f"filled in {time.perf_counter() - begun:.0f} s", flush=True)
        report(folder, chosen)


def _beside(folder: Path, chosen: argparse.Namespace) -> tuple[tuple[Times, float, float], float]:
    """What clients saw while a cycle ran, at which rate and for how much CPU; and how long the cycle took."""
    seen: list[tuple[Times, float]] = []
    stop = threading.Event()
    with served(folder) as service:
        before = service.cpu()
        presser = threading.Thread(target=lambda: seen.append(pressed(service.port, chosen.rate, stop)))
        presser.start()
        seconds = cycle(service.port, chosen.budget)
        stop.set()
        presser.join()
        times, rate = seen[0]
        spent = (service.cpu() - before) / sum(len(values) for values in times.seconds.values())
    return (times, rate, spent), seconds


def report(folder: Path, chosen: argparse.Namespace) -> None:
    """Measure and print."""
    with served(folder) as service:
        times = alone(service.port, chosen.rounds)
        print(f"{chosen.pages:,} pages, {chosen.visits:,} visits; nothing else asked or crawled; {times.errors} errors")
        for name in PATHS:
            median, high = times.figures(name)
            print(f"  {name:12} median {median:7.1f} ms   95 % within {high:7.1f} ms")
        for name, spent in uncached(service).items():
            print(f"  {name:12} {spent:7.1f} ms CPU when rendered anew")
    with served(folder) as service:
        cycle(service.port, 1)  # the first one crawls what the web has beside the pages that were made up
    quiet = []
    for _ in range(2):
        with served(folder) as service:
            quiet.append(cycle(service.port, chosen.budget))
    seen, loud = zip(*(_beside(folder, chosen) for _ in range(2)), strict=True)
    for beside, rate, spent in seen:
        print(
            f"beside a cycle: {rate:.0f} requests a second, {beside.errors} errors, {1000 * spent:.1f} ms CPU a request"
        )
        for name in PATHS:
            median, high = beside.figures(name)
            print(f"  {name:12} median {median:7.1f} ms   95 % within {high:7.1f} ms")
    print(f"cycle of {chosen.budget:,}: {min(quiet):.2f} s alone, {min(loud):.2f} s beside requests")
    print(f"  slower by {100 * (min(loud) / min(quiet) - 1):.1f} %")


if __name__ == "__main__":
    main()
