"""The commands that `benchmarks.kills` kills: their web, the repositories they start from, and their results."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.kills_verdict import pages_of
from recrawl.cli import VERBS, app_of, main
from recrawl.crawl import cycles
from recrawl.crawl.options import CrawlOptions
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, ServerOptions, TimeLapse, TimeLapseServer
from recrawl.record import storage
from recrawl.repository import reader
from recrawl.repository.opening import options_of
from recrawl.repository.repository import Repository
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_values

FORK = get_context("fork")
T = TypeVar("T")
DAY = 86400.0
BASE = "https://git.example.org/"
GIT_PAGES, GIT_COMMITS = 8, 20
LIMIT = 300.0
SERVED_SECONDS = 4.0
COMMITS: dict[str, Any] = {"commit_visits": 6, "commit_seconds": 0.05, "index_seconds": 0.08}
"""Commits so frequent that a short run has many."""


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
    """A generated web in a process of its own, at a day that can be set; it also prepares the empty repository."""

    def __init__(self, folder: Path) -> None:
        self._day = FORK.Value("d", 0.0)
        self.show(1)
        ours, theirs = FORK.Pipe()
        FORK.Process(target=self._serve, args=(folder, theirs), daemon=True).start()
        if ours.recv() != "ready":
            raise SystemExit("the web did not start")

    def show(self, day: float) -> None:
        self._day.value = day * DAY

    def _serve(self, folder: Path, parent: Connection) -> None:
        write(
            SyntheticWorld(seed=8, sites=2, pages=30, days=4, size_min=1000, size_max=6000, links=10, change_rate=0.5),
            folder / "world.parquet",
        )
        archive = Archive.open([folder / "world.parquet"])
        clock = Clock(archive.start, 1.0, lambda: self._day.value - DAY)
        clock.set(archive.start + DAY)
        server = TimeLapseServer(TimeLapse(archive, clock, ServerOptions(latency=0.01)))
        git_site(archive, folder / "site")
        empty_repository(folder / "empty", [server.url_of(f"https://{host}/") for host in archive.sites])
        with server:
            parent.send("ready")
            threading.Event().wait()


def empty_repository(folder: Path, urls: list[str]) -> None:
    """A new repository that tracks sites."""
    storage.create(folder, TEMPLATE)
    path = folder / storage.SETTINGS
    write_seeds(path, tuple(Seed(url, allow_private=True, delay=0.0) for url in urls))
    write_values(path, {"per_server": 4, "readers": 2, "every": "1s", "budget": 40.0})


def apart(task: Callable[[], T]) -> T:
    """Run a task in a copy of this process: this one must stay free of threads, since every command is a copy of it."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=lambda: theirs.send(task()))
    process.start()
    theirs.close()
    try:
        result: T = ours.recv()
    except EOFError:
        raise SystemExit("a check ended with an error; see above") from None
    process.join()
    return result


def commands(work: Path, web: Served) -> list[Command]:
    """All commands, each measured once without a kill."""
    empty, site = work / "empty", work / "site"
    crawled = shutil.copytree(empty, work / "crawled")

    def prepare() -> list[str]:
        with Repository(crawled) as repo:
            web.show(1)
            repo.crawl()
            web.show(2)
            repo.cycle(budget=1000, policy="round-robin")
        return [name for name in sys.modules if name.startswith("recrawl.")]

    for name in apart(prepare):
        import_module(name)
    for verb in VERBS:
        app_of(verb)
    history = shutil.copytree(crawled / "archive", work / "history")
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


def git_site(archive: Archive, folder: Path) -> None:
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


def void(_: object) -> None:
    """Drop a result."""


def refreshed(repo: Repository) -> None:
    """Finish what was begun (a crawl, a cycle), then visit every page, and those that this finds."""
    repo.crawl()
    if cycles.unfinished(repo.storage.store, "cycle") is not None:
        repo.cycle()
    repo.cycle(budget=1000, policy="round-robin")
    repo.crawl()


def undisturbed(plan: Command, work: Path, web: Served) -> Command:
    """The command with what it comes to, and how long it takes, when nobody kills it."""
    trial = work / f"undisturbed-{plan.name}"
    folder = shutil.copytree(plan.begin, trial / "repo")
    web.show(plan.day)
    seconds = SERVED_SECONDS
    if plan.name != "serve":
        begun = time.monotonic()
        process = launch(plan, folder, trial)
        process.join(LIMIT)
        seconds = time.monotonic() - begun
        if process.exitcode != 0:
            raise SystemExit(f"recrawl {plan.name} ended with code {process.exitcode} although nobody killed it")

    def finish() -> dict[str, tuple[int, str]]:
        with Repository(folder) as repo:
            plan.finish(repo, trial)
        return pages_of(folder)

    exported = trial / "all.parquet"
    end = apart(finish)
    return replace(plan, seconds=seconds, end=end, export=exported.read_bytes() if exported.exists() else b"")


class Launched(ForkProcess):
    """A command that runs."""

    pid: int


def launch(plan: Command, folder: Path, trial: Path) -> Launched:
    """The command in a session of its own, with small commits: a copy of this process, which has loaded the program."""
    words = [word.replace("{trial}", str(trial)) for word in plan.words]
    output = trial / "output.txt"
    output.touch()  # it may be killed before it writes
    process = Launched(target=_run, args=(["-C", str(folder), *words], output))
    process.start()
    return process


def _run(arguments: list[str], output: Path) -> None:
    """The command as it is, but for the size of its commits."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(os.devnull).open() as nothing, output.open("w") as file:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing has closed it

    def smaller(*given: Any, **named: Any) -> CrawlOptions:
        return replace(options_of(*given, **named), **COMMITS)

    reader.options_of = smaller  # type: ignore[attr-defined]
    sys.argv = ["recrawl", *arguments]
    main()
