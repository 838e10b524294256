"""How recrawl is started for a benchmark: a new repository, its settings, then one verb at a time.

Nothing here reaches into the package: the command line is what people run, so its start-up counts too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import CommandError, Cost, must, run
from benchmarks.web import Web

COMMAND = Path(sys.executable).with_name("recrawl")
# A server of one's own may be asked as often as it can answer; peers get their own settings for that.
SETTINGS: dict[str, str] = {"per_server": "64"}
INDEX = {True: {"index": "true"}, False: {"index": "false"}}
ENV = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}


def unavailable() -> str:
    """Why recrawl cannot be measured, or nothing."""
    try:
        answer = subprocess.run([str(COMMAND), "crawl", "--help"], capture_output=True, text=True, check=False)
    except OSError as problem:
        return str(problem)
    return "" if answer.returncode == 0 else f"`recrawl crawl --help` ends with code {answer.returncode}"


class Repository:
    """A repository under measurement, with a log of what its last command said."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.folder = folder
        self.web = web
        self.log = folder.with_suffix(".log")

    def init(self, *, index: bool) -> None:
        self._quietly(str(COMMAND), "init", str(self.folder))
        for name, value in {**SETTINGS, **INDEX[index]}.items():
            self._quietly(*self._verb("config", name, value))

    def add(self) -> None:
        self._quietly(*self._verb("add", self.web.url, "--allow-private", "--delay", "0"))

    def crawl(self) -> Cost:
        return self._measured("crawl")

    def cycle(self, budget: int) -> Cost:
        return self._measured("cycle", "--budget", str(budget))

    def bytes(self) -> int:
        """What the repository takes on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def _verb(self, verb: str, *options: str) -> list[str]:
        return [str(COMMAND), "-C", str(self.folder), verb, *options]

    def _measured(self, verb: str, *options: str) -> Cost:
        cost = run(self._verb(verb, *options), log=self.log, server=self.web.pid, env=ENV)
        return must(cost, f"recrawl {verb}", self.log)

    def _quietly(self, *command: str) -> None:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=ENV)
        if answer.returncode:
            raise CommandError(f"{' '.join(command[1:])} ended with code {answer.returncode}: {answer.stderr[-800:]}")
