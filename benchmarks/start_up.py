"""What commands cost to start: CPU seconds, the least of several runs, and modules loaded.

    python -m benchmarks.start_up [--runs 7] [--only crawl]

Commands that only read do so in a generated repository of 30 pages. `crawl` and `cycle` visit one page: what they cost
is their start and end; `readers` is the CPU time of their reader processes. The least is taken because other work on
the machine only adds to a run. `--version` loads no more than the command line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recrawl
from recrawl.testing import GeneratedWeb

COUNT = """
import resource, runpy, sys
try:
    runpy.run_module("recrawl", run_name="__main__")
finally:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(len(sys.modules), *(it.ru_utime + it.ru_stime for it in used), file=sys.stderr)
"""


def commands(url: str) -> list[list[str]]:
    return [
        *(["--version"], ["status"], ["sites"], ["pages"], ["changes"], ["log", url], ["show", url], ["diff", url]),
        *(["search", "a"], ["config"], ["why", url], ["why", "--chance", url], ["why", "--rate"]),
        *([*words, "--help"] for words in ([], ["add"], ["cycle"], ["status"], ["import"], ["serve"], ["lab", "run"])),
    ]


def cpu(words: list[str]) -> tuple[float, int]:
    """CPU seconds of one run, and its exit code."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def reading(folder: Path, command: list[str], runs: int) -> dict[str, object]:
    """The cost of a command that only reads."""
    words = [sys.executable, "-m", "recrawl", "-C", str(folder), *command]
    used = [cpu(words) for _ in range(runs + 1)][1:]  # the first may compile
    modules, _, _ = counted(folder, command)
    name = " ".join(command) if command[-1] == "--help" else command[0]
    return {"command": name, "cpu": round(min(it for it, _ in used), 3), "modules": modules, "exit": used[-1][1]}


def visiting(folder: Path, command: list[str], runs: int) -> dict[str, object]:
    """The cost of a command that visits one page, each time in a copy of the repository."""
    found = []
    for _ in range(runs + 1):
        copy = Path(shutil.copytree(folder, folder.with_name("copy")))
        found.append(counted(copy, command))
        shutil.rmtree(copy)
    _, own, readers = (min(column) for column in zip(*found[1:], strict=True))
    return {"command": command[0], "cpu": round(own, 3), "readers": round(readers, 3), "modules": found[-1][0]}


def counted(folder: Path, command: list[str]) -> tuple[int, float, float]:
    """Modules that a command has loaded at its end, its CPU seconds, and those of its reader processes."""
    words = [sys.executable, "-c", COUNT, "-C", str(folder), *command]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    modules, own, readers = ended.stderr.splitlines()[-1].split()
    return int(modules), float(own), float(readers)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--runs", type=int, default=7)
    ask.add_argument("--only", action="append", default=[], help="a command, such as cycle; may be repeated")
    asked = ask.parse_args()
    with tempfile.TemporaryDirectory() as work, GeneratedWeb(sites=1, pages=30) as web:
        folder, new = Path(work) / "repository", Path(work) / "new"
        with recrawl.init(new, clock=web.now) as repository:
            repository.add(*web.urls, allow_private=True, delay=0, limit=1)
        with recrawl.init(folder, clock=web.now) as repository:
            repository.add(*web.urls, allow_private=True, delay=0)
            repository.crawl()
            web.advance(days=1)
            repository.cycle(budget=10)
            url = repository.page(web.urls[0]).url
        for command in commands(url):
            if not asked.only or command[0] in asked.only:
                print(json.dumps(reading(folder, command, asked.runs)), flush=True)
        for where, command in ((new, ["crawl"]), (folder, ["cycle", "--budget", "1"])):
            if not asked.only or command[0] in asked.only:
                print(json.dumps(visiting(where, command, asked.runs)), flush=True)


if __name__ == "__main__":
    main()
