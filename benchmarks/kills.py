"""kill -9 at random moments: `python -m benchmarks.kills --count 1000 --seed 1`.

A generated web is served by this process. Each trial copies a repository, starts a command as a process of its own, and
kills it after a random time: the command alone (`parent`), one of the processes that it has started (`child`), all of
these (`children`), or everything (`both`). `crawl`, `cycle`, `serve` and `import git` start processes; their turn comes
twice as often, and half of their kills spare the command. Then it looks for what must not be:

* `check`: `Repository.check` finds a problem;
* lost: a version or visit that was recorded before the command began is not there any more, or is another one;
* doubled: a version is there twice in a row, or a page was visited twice in one crawl or cycle;
* wrong: when the command is run again, to its end, the repository differs from one that nobody disturbed;
* stuck: a process is still there 30 s after the command was killed.

The same seed gives the same commands, victims and shares of a command's duration; where a kill lands depends on the
machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Table
from recrawl.cli import invoke
from recrawl.crawl.options import CrawlOptions
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer
from recrawl.lab.timelapse.app import ServerOptions, TimeLapse
from recrawl.model import State
from recrawl.record import storage
from recrawl.repository import reader
from recrawl.repository.opening import options_of
from recrawl.repository.repository import Repository
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_value, write_values

DAY = 86400.0
_GONE = int(State.GONE)
_AWAY = (int(State.MISSING), _GONE)
VICTIMS = ("parent", "child", "children", "both")
STARTS = {"crawl": 1.0, "cycle": 1.0, "serve": 1.0, "import git": 0.04}
"""Commands that start processes, and the share of the time from the first process on in which there are some."""
BASE = "https://git.example.org/"
GIT_PAGES, GIT_COMMITS = 8, 20
PATIENCE = 30.0
LIMIT = 300.0
SERVED_SECONDS = 4.0
COMMITS: dict[str, Any] = {"commit_visits": 6, "commit_seconds": 0.05, "index_seconds": 0.08}
"""Commits so frequent that a short run has many."""


# -- what is killed ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command under attack."""

    name: str
    words: tuple[str, ...]
    begin: Path
    """The repository it starts from."""
    day: float
    """The day that the served web shows."""
    finish: Callable[[Repository, Path], None]
    """Run it again, to its end; gets the trial's folder."""
    seconds: float = 0.0
    """How long it takes undisturbed."""
    end: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The pages afterwards, undisturbed: state and digest by URL."""
    export: bytes = b""


class Served:
    """A generated web, served at a time that can be set."""

    def __init__(self, folder: Path) -> None:
        write(
            SyntheticWorld(seed=8, sites=2, pages=30, days=4, size_min=1000, size_max=6000, links=10, change_rate=0.5),
            folder / "world.parquet",
        )
        self.archive = Archive.open([folder / "world.parquet"])
        self.clock = Clock(self.archive.start, 0.0, time.monotonic)
        self.server = TimeLapseServer(TimeLapse(self.archive, self.clock, ServerOptions(latency=0.01)))

    def show(self, day: float) -> None:
        self.clock.set(self.archive.start + day * DAY)

    def create(self, folder: Path) -> Path:
        """A new repository that tracks all sites."""
        storage.create(folder, TEMPLATE)
        seeds = [self.server.url_of(f"https://{host}/") for host in self.archive.sites]
        path = folder / storage.SETTINGS
        write_seeds(path, tuple(Seed(url, allow_private=True, delay=0.0) for url in seeds))
        write_values(path, {"per_server": 4, "readers": 2, "every": "1s", "budget": 40.0})
        return folder


def commands(work: Path, web: Served) -> list[Command]:
    """All commands, each measured once without a kill."""
    empty = web.create(work / "empty")
    crawled = shutil.copytree(empty, work / "crawled")
    web.show(1)
    with Repository(crawled) as repo:
        repo.crawl()
        web.show(2)
        repo.cycle(budget=1000, policy="round-robin")
    history = shutil.copytree(crawled / "archive", work / "history")
    site = git_site(web.archive, work / "site")
    plans = [
        Command("crawl", ("crawl",), empty, 1, lambda repo, _: void(repo.crawl())),
        Command(
            "cycle",
            ("cycle", "--budget", "60", "--policy", "random"),
            crawled,
            3,
            lambda repo, _: refreshed(repo),
        ),
        Command(
            "import",
            ("import", "warc", str(history)),
            empty,
            1,
            lambda repo, _: void(repo.import_history(history, kind="warc")),
        ),
        Command(
            "import git",
            ("import", "git", str(site), "--base-url", BASE),
            empty,
            1,
            lambda repo, _: void(repo.import_history(site, kind="git", base_url=BASE)),
        ),
        Command("noise", ("noise", "--json"), crawled, 2, lambda repo, _: void(repo.noise_proposals())),
        Command("serve", ("serve", "--port", "0"), crawled, 3, lambda repo, _: refreshed(repo)),
        Command(
            "export",
            ("export", "{trial}/all.parquet"),
            crawled,
            2,
            lambda repo, trial: void(repo.export(trial / "all.parquet")),
        ),
        Command("check", ("check", "--repair"), crawled, 2, lambda repo, _: void(repo.check(repair=True))),
    ]
    return [undisturbed(plan, work, web) for plan in plans]


def git_site(archive: Archive, folder: Path) -> Path:
    """A git repository in which every commit writes the same pages anew."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    folder.mkdir()
    subprocess.run([*git, "init", "--quiet"], check=True)
    for commit in range(GIT_COMMITS):
        for page in range(GIT_PAGES):
            body = archive.html((page * GIT_COMMITS + commit) % len(archive.times))
            (folder / f"{page}.html").write_bytes(body + f"<p>Commit {commit}".encode())
        subprocess.run([*git, "add", "."], check=True)
        when = f"{1_600_000_000 + int(commit * DAY)} +0000"
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        subprocess.run([*git, "commit", "--quiet", "--message", "."], check=True, env={**os.environ, **dates})
    return folder


def void(_: object) -> None:
    """Drop a result."""


def refreshed(repo: Repository) -> None:
    """Finish what was begun (a crawl, a cycle), then visit every page."""
    repo.crawl()
    repo.cycle(budget=1000, policy="round-robin")
    repo.cycle(budget=1000, policy="round-robin")


def undisturbed(plan: Command, work: Path, web: Served) -> Command:
    """The command with what it comes to, and how long it takes, when nobody kills it."""
    trial = work / f"undisturbed-{plan.name}"
    folder = shutil.copytree(plan.begin, trial / "repo")
    web.show(plan.day)
    seconds = SERVED_SECONDS
    if plan.name != "serve":
        begun = time.monotonic()
        ended = launch(plan, folder, trial).wait(LIMIT)
        seconds = time.monotonic() - begun
        if ended:
            raise SystemExit(f"recrawl {plan.name} ended with code {ended} although nobody killed it")
    with Repository(folder) as repo:
        plan.finish(repo, trial)
    exported = trial / "all.parquet"
    return replace(
        plan, seconds=seconds, end=pages_of(folder), export=exported.read_bytes() if exported.exists() else b""
    )


# -- processes ---------------------------------------------------------------------------------------------


def launch(plan: Command, folder: Path, trial: Path) -> subprocess.Popen[bytes]:
    """The command in a session of its own, with small commits."""
    words = [word.replace("{trial}", str(trial)) for word in plan.words]
    with (trial / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kills", "--run", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=Path(__file__).parents[1],
        )


def offspring(pid: int) -> list[int]:
    """All processes below a process."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found + [below for child in list(found) for below in offspring(child)]


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def working_on(folder: Path) -> list[int]:
    """All processes that name the repository: one may have been started while its parent was killed."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def attack(plan: Command, folder: Path, process: subprocess.Popen[bytes], victim: str, share: float) -> tuple[str, int]:
    """Kill after a share of the command's time; who was killed (empty: it ended first), and how many processes stayed.

    For a kill that hits processes of the command, the time begins when it has some.
    """
    begun = time.monotonic()
    seconds = plan.seconds
    if victim != "parent":
        awaited(process)
        seconds = max(seconds - (time.monotonic() - begun), 0.1) * STARTS[plan.name]
    with suppress(subprocess.TimeoutExpired):
        process.wait(share * seconds)
        return "", 0
    below = awaited(process) if victim != "parent" else offspring(process.pid)
    if process.poll() is not None:
        return "", 0
    if victim != "parent":
        kill([below[int(share * len(below))]] if victim == "child" else below)
    if victim in ("parent", "both"):
        kill([process.pid])
    elif plan.name == "serve":
        time.sleep(1.0)
        process.terminate()
    deadline = time.monotonic() + (PATIENCE if victim in ("parent", "both") else LIMIT)
    while time.monotonic() < deadline and (process.poll() is None or any(map(alive, below)) or working_on(folder)):
        time.sleep(0.02)
    left = [pid for pid in {process.pid, *below, *working_on(folder)} if alive(pid)]
    kill(left)
    process.wait()
    return victim, len(left)


def awaited(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes of a command, as soon as it has some; empty if it ended."""
    while process.poll() is None:
        if below := offspring(process.pid):
            return below
        time.sleep(0.005)
    return []


# -- what must not be ----------------------------------------------------------------------------------------


def ask(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "recrawl.db")) as db:
        return db.execute(sql).fetchall()


def pages_of(folder: Path) -> dict[str, tuple[int, str]]:
    """State and digest of every page, by URL. Missing and gone are one: more visits make one of the other."""
    rows = ask(folder, "SELECT url, state, ifnull(hex(payload), '') FROM pages")
    return {url: (_GONE, "") if state in _AWAY else (state, payload) for url, state, payload in rows}


def recorded(folder: Path) -> set[tuple[Any, ...]]:
    """What must never be lost: versions with their places, and visits."""
    versions = ask(folder, "SELECT 'version', id, page, at, warc, start, length, hex(payload) FROM versions")
    return {*versions, *ask(folder, "SELECT 'visit', id, page, at, outcome, status, version, 0 FROM visits")}


def doubled(folder: Path) -> list[str]:
    """Pages visited twice in one crawl or cycle, and versions that are there twice in a row."""
    twice = ask(
        folder,
        """SELECT p.url, 'visited twice in cycle ' || v.cycle FROM visits v JOIN pages p ON p.id = v.page
           JOIN cycles c ON c.id = v.cycle WHERE c.kind != 'import' GROUP BY v.cycle, v.page HAVING count(*) > 1
           UNION ALL
           SELECT p.url, 'has a version twice' FROM versions a JOIN pages p ON p.id = a.page JOIN versions b
             ON b.id = (SELECT min(id) FROM versions WHERE page = a.page AND id > a.id)
           WHERE a.payload = b.payload AND NOT EXISTS (SELECT 1 FROM visits WHERE page = a.page AND outcome = 3)""",
    )
    return [f"{url} {what}" for url, what in twice]


def differences(plan: Command, folder: Path, trial: Path) -> list[str]:
    """How the repository differs from the undisturbed one.

    A page whose reader was killed waits for its next visit, and with it the pages that it alone links.
    """
    now = pages_of(folder)
    waiting = {url for (url,) in ask(folder, "SELECT url FROM pages WHERE failures > 0")}
    found = [
        f"{url} is {now.get(url)} instead of {plan.end.get(url)}"
        for url in sorted(plan.end.keys() | now.keys())
        if url not in waiting and now.get(url) != plan.end.get(url) and not (waiting and url not in now)
    ]
    exported = trial / "all.parquet"
    if plan.export and (not exported.exists() or exported.read_bytes() != plan.export):
        found.append("the exported file differs")
    return found


def verdict(plan: Command, folder: Path, trial: Path, before: set[tuple[Any, ...]]) -> dict[str, list[str]]:
    """Everything that is wrong, by kind: first as the kill has left it, then after running the command again."""
    wrong: dict[str, list[str]] = {name: [] for name in ("check", "lost", "doubled", "wrong")}
    if "Traceback" in (trial / "output.txt").read_text(errors="replace"):
        wrong["wrong"].append("a traceback: " + (trial / "output.txt").read_text(errors="replace"))
    for step in ("killed", "finished"):
        write_value(folder / storage.SETTINGS, "readers", 1)  # one reader to start is enough to finish
        with Repository(folder) as repo:
            if step == "finished":
                plan.finish(repo, trial)
            wrong["check"] += [f"{step}: {problem.what}" for problem in repo.check(wait=True).problems]
        lost = before - recorded(folder)
        wrong["lost"] += [f"{step}: {row}" for row in sorted(lost, key=str)[:5]]
        wrong["doubled"] += [f"{step}: {line}" for line in doubled(folder)]
    wrong["wrong"] += differences(plan, folder, trial)
    return wrong


# -- trials ------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """The kills of one command."""

    seconds: float = 0.0
    """How long the command took when it last ended first."""
    victims: Counter[str] = field(default_factory=Counter)
    too_late: int = 0
    stuck: int = 0
    wrong: Counter[str] = field(default_factory=Counter)


@contextmanager
def world(work: Path | None) -> Iterator[tuple[Path, Served]]:
    with tempfile.TemporaryDirectory(dir=work, prefix="kills-") as folder:
        web = Served(Path(folder))
        with web.server:
            yield Path(folder), web


def trials(count: int, seed: int, only: list[str], work: Path | None) -> tuple[dict[str, Tally], list[str]]:
    """Kill until `count` kills have come in time, or until SIGINT or SIGTERM."""
    rng = np.random.default_rng(seed)
    complaints: list[str] = []
    with world(work) as (folder, web):
        plans = [plan for plan in commands(folder, web) if not only or plan.name in only]
        tallies = {plan.name: Tally(plan.seconds) for plan in plans}
        turns = [plan for plan in plans for _ in range(1 + (plan.name in STARTS))]
        number = 0
        with suppress(KeyboardInterrupt):
            while (done := sum(tally.victims.total() for tally in tallies.values())) < count:
                plan = turns[number % len(turns)]
                victim = VICTIMS[int(rng.integers(len(VICTIMS)))] if plan.name in STARTS else "parent"
                share = float(rng.uniform(0.15 if victim == "parent" else 0.0, 1.0))
                number += 1
                web.show(plan.day)
                found = attempt(plan, folder / f"trial-{number}", victim, share, tallies[plan.name])
                found = [f"trial {number}, {plan.name}, {victim} at {share:.0%}: {text}" for text in found]
                for text in found:
                    print(text, flush=True)
                complaints += found
                if number % 10 == 0:
                    print(f"{done} kills, {len(complaints)} complaints", file=sys.stderr, flush=True)
    return tallies, complaints


def attempt(plan: Command, trial: Path, victim: str, share: float, tally: Tally) -> list[str]:
    """One kill and what is wrong after it."""
    copy = shutil.copytree(plan.begin, trial / "repo")
    before = recorded(copy)
    begun = time.monotonic()
    process = launch(plan, copy, trial)
    try:
        killed, stuck = attack(replace(plan, seconds=tally.seconds), copy, process, victim, share)
    finally:
        kill([*offspring(process.pid), process.pid] if process.poll() is None else [])
    if killed:
        tally.victims[killed] += 1
    else:  # the machine is less busy now than when it was measured
        tally.too_late += 1
        tally.seconds = time.monotonic() - begun
    tally.stuck += stuck > 0
    wrong = verdict(plan, copy, trial, before)
    tally.wrong.update(kind for kind, found in wrong.items() if found)
    if not any(wrong.values()):
        shutil.rmtree(trial)
    return [text for found in wrong.values() for text in found]


def table(tallies: dict[str, Tally]) -> Table:
    heads = ["command", "kills", *VICTIMS, "ended first", "check", "lost", "doubled", "wrong", "stuck"]
    rows = []
    total = Tally()
    for name, tally in [*tallies.items(), ("all", total)]:
        kinds = [str(tally.wrong[kind]) for kind in ("check", "lost", "doubled", "wrong")]
        victims = [str(tally.victims[victim]) for victim in VICTIMS]
        rows.append([name, str(tally.victims.total()), *victims, str(tally.too_late), *kinds, str(tally.stuck)])
        total.victims += tally.victims
        total.wrong += tally.wrong
        total.too_late += tally.too_late
        total.stuck += tally.stuck
    return Table("Commands killed with SIGKILL at random moments", heads, rows)


def run(arguments: list[str]) -> int:
    """The command as it is, but for the size of its commits."""

    def smaller(*given: Any, **named: Any) -> CrawlOptions:
        return replace(options_of(*given, **named), **COMMITS)

    reader.options_of = smaller  # type: ignore[attr-defined]
    return invoke(arguments)


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        sys.exit(run(sys.argv[2:]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="kills (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of commands, victims and moments (1)")
    parser.add_argument("--only", action="append", default=[], metavar="COMMAND", help="only this command; repeatable")
    parser.add_argument("--work", type=Path, help="folder for the repositories")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # also when it was started in the background
        signal.signal(number, signal.default_int_handler)
    begun = time.monotonic()
    tallies, complaints = trials(chosen.count, chosen.seed, chosen.only, chosen.work)
    table(tallies).show()
    print(f"{time.monotonic() - begun:.0f} s, seed {chosen.seed}")
    sys.exit(1 if complaints or any(tally.stuck for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
