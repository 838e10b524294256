"""Every long command ends within seconds of Ctrl-C and SIGTERM, with a documented exit code, and leaves no child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recrawl.lab.formats.archive import write
from tests.world import Repo, Site, page

_HANGING = """
    import importlib, pathlib, sys, time
    from recrawl import cli
    here, module, name, *words = sys.argv[1:]

    def works(*_args, stop=lambda: False, **_options):
        pathlib.Path(here).touch()
        while not stop():
            time.sleep(0.05)

    owner = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, works)
    sys.argv = ["recrawl", *words]
    cli.main()
"""
"""A command whose function `name` works for ever, and which says when it has come there."""
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
LIMIT = 120.0
"""Seconds after which a process that should end is taken for one that does not; on a quiet machine it takes one."""


def children(pid: int) -> list[int]:
    """The processes that a process has started, theirs too, zombies included."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(true: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait for a state that a running process will reach, however slow the machine is."""
    while not true():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Send the signal; the exit code and what was said, after a check that no child is left."""
    below = children(process.pid)
    process.send_signal(number)
    try:
        _, said = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it has not ended {LIMIT:.0f} s after {number.name}")
    begun = time.monotonic()
    while any(map(alive, below)) and time.monotonic() - begun < LIMIT:
        time.sleep(0.02)
    assert not list(filter(alive, below))
    assert "Traceback" not in said
    return process.returncode, said


def begin(*words: object, cwd: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(cwd)}
    return subprocess.Popen(
        list(map(str, words)), cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A Parquet archive of some pages."""
    rows = [(f"https://a.example/{n}", at, f"<p>page {n} at {at}".encode()) for n in range(9) for at in range(5)]
    urls, times, bodies = zip(*rows, strict=True)
    write(tmp_path / "world.parquet", urls, [1_700_000_000 + 86400 * at for at in times], list(bodies))
    return tmp_path / "world.parquet"


@pytest.fixture
def crawled(tmp_path: Path) -> Iterator[Repo]:
    repo = Repo.create(tmp_path / "repo")
    with Site({"/": page("one", "/a"), "/a": page("two")}) as site:
        repo.crawl(site.url())
        yield repo


LONG = {
    "import": ("recrawl.repository.exchange", "take_in", ["-C", "{repo}", "import", "{world}"]),
    "import --out": ("recrawl.lab.formats.git_history", "convert", ["import", "git", "{repo}", "--base-url",
                     "https://a.example/", "--out", "{out}.parquet"]),
    "export": ("recrawl.repository.export.files", "write", ["-C", "{repo}", "export", "{out}.wacz"]),
    "check": ("recrawl.repository.checking", "check_archive", ["-C", "{repo}", "check"]),
    "check --repair": ("recrawl.repository.checking", "_repair", ["-C", "{repo}", "check", "--repair"]),
    "move": ("recrawl.repository.repository", "Repository.move", ["-C", "{repo}", "move", "--to", "postgresql:///x"]),
    "search index": ("recrawl.crawl.state.reindex", "index_pages", ["-C", "{repo}", "check", "--repair"]),
    "chunks": ("recrawl.repository.repository", "Repository.chunks", ["-C", "{repo}", "chunks"]),
    "lab run": ("recrawl.lab.replays.runner", "run_one", ["lab", "run", "{world}", "--policy", "round-robin",
                "--budget", "2"]),
    "lab compare": ("recrawl.lab.replays.runner", "run_one", ["lab", "compare", "{world}", "--policy", "round-robin",
                    "--policy", "random", "--budget", "2"]),
    "lab synth": ("recrawl.cli.lab.synth", "write", ["lab", "synth", "{out}.parquet"]),
    "demo": ("recrawl.lab.synth", "write", ["demo"]),
}  # fmt: skip
"""Long commands, each with the function in which it works for ever."""


@SIGNALS
@pytest.mark.parametrize("name", LONG)
def test_a_long_command_ends_at_once(
    tmp_path: Path, crawled: Repo, world: Path, name: str, number: signal.Signals
) -> None:
    module, function, words = LONG[name]
    places = {"repo": crawled.folder, "world": world, "out": tmp_path / "out"}
    if name == "search index":
        for file in (crawled.folder / "index").iterdir():
            file.unlink()
    here = tmp_path / "here"
    filled = [word.format(**places) for word in words]
    code = textwrap.dedent(_HANGING)
    process = begin(sys.executable, "-c", code, here, module, function, *filled, cwd=tmp_path)
    until(here.exists, process)
    assert ended(process, number)[0] == 128 + number
    assert not list(tmp_path.glob("out*"))
    assert not list(tmp_path.glob("recrawl-*"))
    assert crawled.run("check").out.startswith("no problem") or name == "search index"


@SIGNALS
@pytest.mark.parametrize("verb", ["crawl", "cycle", "recheck", "run", "serve"])
def test_a_run_records_what_it_has_and_ends(tmp_path: Path, verb: str, number: signal.Signals) -> None:
    """One page answers late; what was downloaded before is recorded."""
    repo = Repo.create(tmp_path / "repo", readers=1)
    with Site(
        {"/": page("one", *(f"/{n}" for n in range(20)))} | {f"/{n}": page(f"page {n}") for n in range(20)}
    ) as web:
        repo.add(web.url())
        if verb != "crawl":
            repo.crawl()
            for n in range(20):
                web[f"/{n}"] = page(f"page {n}, changed")
        repo.config(delay=0.5, budget=15)
        web.forget()
        more = {"recheck": [web.url("")], "run": ["--every", "6h"], "serve": ["--port", "0"]}
        process = repo.start(verb, *more.get(verb, []))
        until(lambda: len(web.asked()) > 2, process)
        code, _ = ended(process, number)
    assert code == (0 if verb in ("run", "serve") else 128 + number)
    assert repo.run("check").out.startswith("no problem")
    if verb == "crawl":
        assert sum(row["visits"] for row in repo.pages().values()) >= 1


@SIGNALS
def test_workers_of_a_replay_end_with_it(tmp_path: Path, world: Path, number: signal.Signals) -> None:
    """The workers compute; nobody waits for the end of that."""
    policy = tmp_path / "slow.py"
    policy.write_text(
        "from recrawl.choose.papers.round_robin import RoundRobin\n"
        "import time\n"
        "class Slow(RoundRobin):\n"
        "    def rankings(self, *args, **options):\n"
        "        while True:\n"
        "            sum(range(1000))\n"
    )
    process = begin(
        sys.executable, "-m", "recrawl", "lab", "compare", world, "--policy", "slow:Slow", "--policy", "slow:Slow()",
        "--budget", "2", "--workers", "2", cwd=tmp_path,
    )  # fmt: skip
    until(lambda: len(children(process.pid)) >= 3, process)  # two workers, and what watches their memory
    assert ended(process, number)[0] == 128 + number
