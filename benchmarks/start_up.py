"""What each command that only reads costs to start: CPU seconds, the least of several runs, and modules loaded.

    python -m benchmarks.start_up [--runs 7]

The repository is a generated one of 30 pages. The least is taken because other work on the machine only adds to a run.
`--version` loads no more than the command line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import recrawl
from recrawl.testing import GeneratedWeb

COUNT = """
import runpy, sys
try:
    runpy.run_module("recrawl", run_name="__main__")
finally:
    print(len(sys.modules), file=sys.stderr)
"""


def commands(url: str) -> list[list[str]]:
    return [
        *(["--version"], ["status"], ["sites"], ["pages"], ["changes"], ["log", url], ["show", url], ["diff", url]),
        *(["search", "a"], ["config"], ["why", url], ["predict", url], ["rates"]),
    ]


def cpu(words: list[str]) -> tuple[float, int]:
    """CPU seconds of one run, and its exit code."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--runs", type=int, default=7)
    asked = ask.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "repository"
        with GeneratedWeb(sites=1, pages=30) as web, recrawl.init(folder, clock=web.now) as repository:
            repository.add(*web.urls, allow_private=True, delay=0)
            repository.crawl()
            web.advance(days=1)
            repository.cycle(budget=10)
            url = repository.page(web.urls[0]).url
        for command in commands(url):
            words = [sys.executable, "-m", "recrawl", "-C", str(folder), *command]
            runs = [cpu(words) for _ in range(asked.runs + 1)][1:]  # the first may compile
            counted = [sys.executable, "-c", COUNT, "-C", str(folder), *command]
            modules = subprocess.run(counted, capture_output=True, text=True, check=False).stderr.split()[-1]
            row = {"command": command[0], "cpu": round(min(used for used, _ in runs), 3), "modules": int(modules)}
            print(json.dumps({**row, "exit": runs[-1][1]}), flush=True)


if __name__ == "__main__":
    main()
