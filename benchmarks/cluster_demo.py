"""A cluster of three Ray nodes on one machine, by one command: `python -m benchmarks.cluster_demo`.

It starts PostgreSQL, an S3 server and the 1,000 sites of `benchmarks.referee` on loopback, makes a repository of six
shards, starts three nodes, crawls all sites, changes some pages, and runs a cycle over all of them with one budget. It
ends with what the web server has seen: no site with two requests at once, none sooner after an answer than the delay.
Each command of recrawl is printed before it is run.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.cluster_stand import Stand, end_by_signals, stand
from benchmarks.cluster_verdict import page_faults, turns_of
from benchmarks.referee import Sites
from benchmarks.referee_verdict import judge

START_SECONDS = 300.0


def begin(at: Stand, *words: str) -> subprocess.Popen[str]:
    """Print a command, and start it."""
    print(f"\n$ recrawl {shlex.join(words)}", flush=True)
    return at.recrawl(*words)


def show(at: Stand, *words: str) -> None:
    """Print a command, and run it to its end."""
    began = time.monotonic()
    code = begin(at, *words).wait()
    print(f"# exit code {code}, {time.monotonic() - began:.1f} s", flush=True)
    if code:
        raise SystemExit(code)


@contextmanager
def nodes(at: Stand, count: int, shards: int, lease: float) -> Iterator[None]:
    """Nodes of Ray on this machine, each a command in the foreground, until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    first = [
        "cluster",
        "start",
        "--node",
        "one",
        "--port",
        str(port),
        "--work",
        str(at.work / "one"),
        "--lease",
        str(lease),
    ]
    running = [begin(at, *first)]
    try:
        wait_for(at, running, 1, shards)
        for name in ("two", "three", "four", "five", "six")[: count - 1]:
            join = ["cluster", "join", f"127.0.0.1:{port}", "--node", name, "--work", str(at.work / name)]
            running.append(begin(at, *join))
            wait_for(at, running, len(running), shards)
        yield
    finally:
        begin(at, "cluster", "stop").wait()
        for process in running:
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)


def wait_for(at: Stand, running: list[subprocess.Popen[str]], count: int, shards: int) -> None:
    """Wait until so many nodes have all shards, each its part of them."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and all(process.poll() is None for process in running):
        state = json.loads(at.must("cluster", "status", "--json"))
        owned = [len(node["shards"]) for node in state["nodes"]]
        if len(owned) == count and sum(owned) == shards and min(owned) >= shards // count:
            return
        time.sleep(1)
    raise SystemExit(f"the nodes did not start; see the logs in {at.work}")


def main() -> None:
    ask = argparse.ArgumentParser(prog="python -m benchmarks.cluster_demo", description=__doc__.partition("\n")[0])
    ask.add_argument("--sites", type=int, default=1000)
    ask.add_argument("--pages", type=int, default=8, help="mean pages of a site")
    ask.add_argument("--shards", type=int, default=6)
    ask.add_argument("--nodes", type=int, default=3)
    ask.add_argument("--delay", type=float, default=0.5, help="seconds between requests to a site")
    ask.add_argument("--budget", type=float, default=0.1, help="visits of the cycle, as a share of the pages")
    ask.add_argument("--lease", type=float, default=30.0, help="seconds of a lease")
    ask.add_argument("--work", type=Path, help="folder for repository and logs; kept")
    asked = ask.parse_args()
    end_by_signals()
    sites = Sites(asked.sites, asked.pages)
    with ExitStack() as open_:
        made = tempfile.TemporaryDirectory(prefix="recrawl-cluster-", ignore_cleanup_errors=True)
        work = asked.work or Path(open_.enter_context(made))
        at = open_.enter_context(stand(work, sites, asked.delay))
        print(f"{sites.sites:,} sites with {sum(sites.sizes):,} pages at http://s0.localhost:{at.web.port}/ and so on")
        at.create("--shards", str(asked.shards))
        with nodes(at, asked.nodes, asked.shards, asked.lease):
            show(at, "crawl")
            at.web.generation(1)
            show(at, "cycle", "--budget", str(asked.budget))
            show(at, "cluster", "status")
            show(at, "status")
        verdict = judge(at.web.requests(), asked.delay, turns_of(at, asked.shards))
        print(
            f"\nThe web server saw {verdict.requests:,} requests to {verdict.hosts:,} sites from {verdict.clients} "
            f"processes; the shortest pause was {verdict.smallest_gap:.3f} s (delay: {asked.delay:g} s)."
        )
        faults = verdict.faults + page_faults(at, asked.shards)
        print(
            "\n".join(faults)
            if faults
            else "No site had two requests at once or a pause under its delay; no page is missing."
        )
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
