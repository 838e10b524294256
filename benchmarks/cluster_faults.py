"""Faults in a cluster at random moments: `python -m benchmarks.cluster_faults --count 100 --seed 1 --results FILE`.

A session is a new cluster of a coordinator and workers on two nodes (processes), PostgreSQL and an S3 server, and 60
sites of `benchmarks.referee`: a crawl and three cycles, two days and a generation of the web apart.
Meanwhile, every few seconds, one of these happens:

    worker        kill -9 of a worker alone; what it has started must end by itself
    reader        kill -9 of a process that reads pages for a worker
    coordinator   kill -9
    node          kill -9 of all processes of one of two nodes
    connections   all connections to the database are cut (`pg_terminate_backend`)
    database      restarted
    objects       the object store refuses for some seconds
    lease         a worker is frozen (SIGSTOP) until after its lease, then goes on
    clock         the clock of a worker or of the coordinator is set wrong by up to an hour, while it runs

What was killed is started again after up to three seconds. A session ends when its cycles have; then it looks for what
must not be:

* the referee's verdict over all requests of the session: no host with two requests at once, none sooner after an answer
  than the delay, and no host that passed from process to process more often than the lease of its shard did;
* pages: all of the web are known, once, in the shard that owns them;
* visits: none that was recorded before is gone, none is twice in a run, none was recorded that no server has seen;
* `check` finds no problem in any shard;
* cycles: as many visits as budget, over all shards.

Each fault and each session is a line of FILE. The same command continues until there are as many faults as asked for.
The first two sessions have no faults: finds of the others are compared with theirs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cluster_verdict
from benchmarks.cluster_processes import Processes
from benchmarks.cluster_stand import Stand, end_by_signals, stand
from benchmarks.cluster_trouble import KINDS, Trouble
from benchmarks.cluster_verdict import Visit
from benchmarks.referee import Sites
from benchmarks.referee_verdict import judge
from recrawl.cluster.run_requests import Kind
from recrawl.model import Outcome

CYCLES = 3
LIMIT = 900.0
"""Seconds after which a crawl or cycle is stuck."""


@dataclass
class Fault:
    """One fault; a line of the results."""

    session: int
    during: str
    """What ran: a crawl or a cycle."""
    after: float
    """Seconds from its start."""
    kind: str
    victim: str


@dataclass
class Session:
    """What one cluster came to; a line of the results."""

    session: int
    faults: int
    seconds: float = 0.0
    requests: int = 0
    clients: int = 0
    unknown: int = 0
    smallest_gap: float = 0.0
    visits: list[int] = field(default_factory=list)
    """Of the crawl and each cycle."""
    found: list[int] = field(default_factory=list)
    """Changes that each cycle found."""
    failed: int = 0
    """Visits that ended as a failure."""
    unrecorded: int = 0
    """Answers that no visit recorded: their worker was killed or frozen first, and the page was asked for again."""
    wrong: dict[str, list[str]] = field(default_factory=dict)


# -- sessions ----------------------------------------------------------------------------------------------


def session(number: int, asked: argparse.Namespace, work: Path, wanted: int) -> list[Fault | Session]:
    """One cluster from its first crawl to its last cycle, with at most so many faults."""
    rng, began = np.random.default_rng([asked.seed, number]), time.monotonic()
    kinds = [str(kind) for kind in rng.permutation(list(asked.kinds) * -(-wanted // len(asked.kinds)))][:wanted]
    result = Session(number, 0)
    faults: list[Fault] = []
    with ExitStack() as open_:
        at = open_.enter_context(stand(work, Sites(asked.sites, asked.pages, asked.seed), asked.delay))
        at.create("--shards", str(asked.shards))
        cluster = open_.enter_context(Processes(at, asked.shards, nodes=2, lease=asked.lease).up())
        cluster.settled(asked.shards)
        trouble = Trouble(at, cluster, rng, kinds, asked.lease)
        before: list[Visit] = []
        budget = round(asked.budget * sum(at.web.sites.sizes))
        for generation in range(CYCLES + 1):
            at.web.generation(generation)
            cluster.set_clocks(2.0 * generation)
            kind: Kind = "cycle" if generation else "crawl"
            run = at.request(kind, budget=budget)
            faults += follow(partial(at.finished, run), kind, trouble, number)
            visits = cluster_verdict.visits_of(at, asked.shards)
            note_run(result, generation, budget, before, visits)
            before = visits
        trouble.tend(all_of_it=True)
        cluster.end()
        final_verdict(result, at, before, asked.shards)
    result.faults, result.seconds = len(faults), round(time.monotonic() - began, 1)
    return [*faults, result]


def follow(
    finished: Callable[[], bool],
    kind: str,
    trouble: Trouble,
    session: int,
    *,
    first: float = 6.0,
) -> list[Fault]:
    """Wait for the end of a run, with faults; the first one comes after a sixth of `first` to `first` seconds."""
    began, rng = time.monotonic(), trouble.rng
    strike_at = began + rng.uniform(first / 6, first)
    faults: list[Fault] = []
    while not finished():
        now = time.monotonic()
        if now - began > LIMIT:
            raise SystemExit(f"the {kind} is stuck; see {trouble.at.work}")
        if trouble.kinds and now >= strike_at:
            struck = trouble.strike()
            strike_at = now + (rng.uniform(2, 6) if struck else 0.3)
            if struck:
                faults.append(Fault(session, kind, round(now - began, 1), *struck))
                print(json.dumps(asdict(faults[-1])), flush=True)
        trouble.tend()
        time.sleep(0.1)
    return faults


def note_run(result: Session, run: int, budget: int, before: list[Visit], after: list[Visit]) -> None:
    """Count a run that has ended, and judge its visits."""
    mine = set(after) - set(before)
    result.visits.append(len(mine))
    result.failed += sum(visit.outcome == Outcome.FAILED for visit in mine)
    wrong = cluster_verdict.visit_faults(before, after)
    if run:
        result.found.append(sum(visit.outcome == Outcome.CHANGED for visit in mine))
        wrong += [f"cycle {run} made {len(mine)} visits of {budget}"] if len(mine) != budget else []
    result.wrong.setdefault("visits", []).extend(wrong)


def final_verdict(result: Session, at: Stand, visits: list[Visit], shards: int) -> None:
    """Judge pages, requests and shards at the end of a session."""
    rows = at.web.requests()
    verdict = judge(rows, at.delay, cluster_verdict.turns_of(at, shards))
    unseen, result.unrecorded = cluster_verdict.request_faults(visits, rows)
    result.requests, result.clients, result.unknown = verdict.requests, verdict.clients, verdict.unknown
    result.smallest_gap = round(verdict.smallest_gap, 4)
    result.wrong |= {
        "politeness": verdict.faults,
        "pages": cluster_verdict.page_faults(at, shards),
        "requests": unseen,
        "check": cluster_verdict.check_faults(at, shards),
    }


def summary(lines: list[dict[str, Any]]) -> bool:
    """Print what the sessions came to; whether nothing is wrong."""
    faults = Counter(line["kind"] for line in lines if "kind" in line)
    sessions = [line for line in lines if "wrong" in line]
    quiet, struck = ([it for it in sessions if bool(it["faults"]) == some] for some in (False, True))
    print(f"{faults.total()} faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())))
    for name, rows in (("undisturbed", quiet), ("with faults", struck)):
        found = np.array([sum(row["found"]) for row in rows])
        error = found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else float("nan")
        visits, failed = (sum(map(sum, (row["visits"] for row in rows))), sum(row["failed"] for row in rows))
        print(
            f"{name}: {len(rows)} sessions, {sum(row['requests'] for row in rows):,} requests of "
            f"{sum(row['clients'] for row in rows)} processes, smallest gap "
            f"{min((row['smallest_gap'] for row in rows), default=float('nan')):.3f} s, "
            f"{visits:,} visits, {failed} failed, "
            f"{sum(row['unrecorded'] for row in rows)} answers not recorded, "
            f"found {found.mean() if len(found) else 0:.1f} changes a session, standard error {error:.1f}"
        )
    wrong = [f"session {it['session']}: {kind}: {text}" for it in sessions for kind in it["wrong"]
             for text in it["wrong"][kind]]  # fmt: skip
    print("\n".join(wrong) if wrong else "nothing is wrong")
    return not wrong


def main() -> None:
    ask = argparse.ArgumentParser(prog="python -m benchmarks.cluster_faults", description=__doc__.partition("\n")[0])
    ask.add_argument("--count", type=int, default=100, help="faults (100)")
    ask.add_argument("--seed", type=int, default=1, help="seed of web, faults, victims and moments (1)")
    ask.add_argument("--results", type=Path, help="file of faults and sessions; an existing one is continued")
    ask.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of faults (all)")
    ask.add_argument("--quiet", type=int, default=2, help="sessions without faults, before the others (2)")
    ask.add_argument("--session", type=int, default=20, help="most faults of a session (20)")
    ask.add_argument("--work", type=Path, help="folder for logs and repositories; kept")
    ask.add_argument("--sites", type=int, default=60)
    ask.add_argument("--pages", type=int, default=8, help="mean pages of a site")
    ask.add_argument("--shards", type=int, default=3, help="shards; each has a worker on both nodes (3)")
    ask.add_argument("--delay", type=float, default=0.5, help="seconds between requests to a site")
    ask.add_argument("--lease", type=float, default=4.0, help="seconds of a lease")
    ask.add_argument("--budget", type=float, default=0.3, help="visits of a cycle, as a share of the pages")
    asked = ask.parse_args()
    end_by_signals()
    results = asked.results or Path(tempfile.mkstemp(prefix="faults-", suffix=".jsonl")[1])
    work = asked.work or Path(tempfile.mkdtemp(prefix="faults-"))
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    while True:
        done = [line["session"] for line in lines if "wrong" in line]
        left = asked.count - sum("kind" in line for line in lines)
        number = max(done, default=-1) + 1
        if number >= asked.quiet and left <= 0:
            break
        made = session(number, asked, work / str(number), 0 if number < asked.quiet else min(asked.session, left))
        print(json.dumps(asdict(made[-1])), flush=True)
        lines += [asdict(it) for it in made]
        with results.open("a") as file:
            file.writelines(json.dumps(asdict(it)) + "\n" for it in made)
    sys.exit(0 if summary(lines) else 1)


if __name__ == "__main__":
    main()
