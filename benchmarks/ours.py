"""Start recrawl for a benchmark: a new repository, its settings, then one command at a time.

The benchmark runs the command line, as users do, so its start-up time counts too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import CommandError, Cost, must, run
from benchmarks.web import Web

COMMAND = Path(sys.executable).with_name("recrawl")
# No politeness limit for our own server; peers get the equivalent settings.
SETTINGS: dict[str, str] = {"per_server": "64"}
INDEX = {True: {"index": "true"}, False: {"index": "false"}}
ENV = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}


def unavailable() -> str:
    """Return why recrawl cannot be measured; empty if it can."""
    try:
        answer = subprocess.run([str(COMMAND), "crawl", "--help"], capture_output=True, text=True, check=False)
    except OSError as problem:
        return str(problem)
    return "" if answer.returncode == 0 else f"`recrawl crawl --help` ends with code {answer.returncode}"


class Repository:
    """A repository under measurement, with a log of its last command's output."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.folder = folder
        self.web = web
        self.log = folder.with_suffix(".log")

    def init(self, *, index: bool, **settings: str) -> None:
        self._quietly(str(COMMAND), "init", str(self.folder))
        for name, value in {**SETTINGS, **INDEX[index], **settings}.items():
            self._quietly(*self._verb("config", name, value))

    def add(self) -> None:
        self._quietly(*self._verb("add", self.web.url, "--allow-private", "--delay", "0"))

    def crawl(self) -> Cost:
        return self.measured("crawl")

    def cycle(self, budget: int) -> Cost:
        return self.measured("cycle", "--budget", str(budget))

    def bytes(self) -> int:
        """Return the size of the repository on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def _verb(self, verb: str, *options: str) -> list[str]:
        return [str(COMMAND), "-C", str(self.folder), verb, *options]

    def measured(self, verb: str, *options: str) -> Cost:
        """Run a command."""
        cost = run(self._verb(verb, *options), log=self.log, server=self.web.pid, env=ENV)
        return must(cost, f"recrawl {verb}", self.log)

    def _quietly(self, *command: str) -> None:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=ENV)
        if answer.returncode:
            raise CommandError(f"{' '.join(command[1:])} ended with code {answer.returncode}: {answer.stderr[-800:]}")
