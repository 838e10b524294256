"""kill -9 in the middle of crawl and cycle, more than fifty times at random points: nothing lost, nothing doubled.

The real command runs as a process of its own against a time-lapse server in this one. The server counts requests, so a
kill can be made to land within the work; a random delay after that spreads the kills over downloading, reading,
committing and indexing. Some kills come by the clock alone and hit the start, when the last crash is being mended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import ServerOptions as Manners
from tests.crashes import Bench, ask, choices, contents, image, judge, start

_DAY = 86400.0
_KILLS = 9
_PATIENCE = 300.0
_CYCLE = ("cycle", "--budget", "100", "--policy", "random")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    path = tmp_path_factory.mktemp("world") / "world.parquet"
    write(
        SyntheticWorld(seed=8, sites=2, pages=60, days=4, size_min=1000, size_max=4000, links=10, change_rate=0.5), path
    )
    with Bench(Archive.open([path]), Manners(latency=0.02)) as made:
        yield made


@pytest.fixture(scope="module")
def crawled(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a crawl that nobody disturbs comes to."""
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path_factory.mktemp("crawled") / "repo")
    assert finish(folder, "crawl") == 0
    judge(folder)
    return folder


@pytest.fixture(scope="module")
def cycled(bench: Bench, crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a cycle that nobody disturbs comes to, a day later."""
    bench.clock.set(bench.archive.start + 2 * _DAY)
    folder = image(crawled, tmp_path_factory.mktemp("cycled") / "repo")
    assert finish(folder, *_CYCLE) == 0
    judge(folder)
    return folder


def finish(folder: Path, *arguments: str) -> int:
    """Run the command as people do, to its end."""
    words = [sys.executable, "-m", "recrawl", "-C", str(folder), *arguments]
    ended = subprocess.run(words, capture_output=True, timeout=_PATIENCE, check=False, text=True)
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode


class Trap:
    """Sends a signal to a process group some time after it has made so many requests."""

    def __init__(self, bench: Bench, number: int, *, requests: int, delay: float, group: bool = True) -> None:
        self._bench, self._number, self._requests, self._delay = bench, number, requests, delay
        self._send = os.killpg if group else os.kill
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def run(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """Start the command, spring the trap, and wait for the end: exit code and what it complained of."""
        process = start(folder, *arguments)
        self._bench.app.on_request = lambda _path: self._count(process.pid)
        try:
            _, complaint = process.communicate(timeout=_PATIENCE)
        finally:
            self._bench.app.on_request = None
            if self._timer is not None:
                self._timer.join()
            process.kill()
        return process.returncode, complaint.decode()

    def _count(self, pid: int) -> None:
        with self._lock:
            self._requests -= 1
            if self._requests == 0:
                self._timer = threading.Timer(self._delay, self._spring, [pid])
                self._timer.start()

    def _spring(self, pid: int) -> None:
        with suppress(ProcessLookupError):  # it may have been quicker
            self._send(pid, self._number)


def kill_early(folder: Path, *arguments: str, seconds: float) -> int:
    """Kill the command by the clock, most likely before it has asked for anything."""
    process = start(folder, *arguments)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process.returncode


def torture(bench: Bench, folder: Path, seed: int, *arguments: str) -> None:
    """Kill the command again and again; fails when it ends before it was killed often enough."""
    rng = np.random.default_rng(seed)
    kills = 0
    while kills < _KILLS:
        if kills % 5 == 4:
            code = kill_early(folder, *arguments, seconds=rng.uniform(0.2, 0.5))
        else:
            trap = Trap(bench, signal.SIGKILL, requests=int(rng.integers(1, 12)), delay=rng.uniform(0, 0.03))
            code, complaint = trap.run(folder, *arguments)
            assert "Traceback" not in complaint, complaint
        assert code == -signal.SIGKILL, f"it ended by itself after {kills} kills"
        assert ask(folder, "PRAGMA integrity_check") == [("ok",)]
        kills += 1


# -- killed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_crawl_that_is_killed_loses_nothing(bench: Bench, crawled: Path, tmp_path: Path, seed: int) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path / "repo")
    torture(bench, folder, seed, "crawl")
    assert finish(folder, "crawl") == 0
    judge(folder)
    assert contents(folder) == contents(crawled)
    served = {bench.server.url_of(bench.archive.urls[page]) for page in bench.archive.pages_at(bench.clock.now())}
    assert set(contents(folder)) == served
    assert ask(folder, "SELECT count(*), count(finished) FROM cycles") == [(1, 1)]
    assert ask(folder, "SELECT count(*) FROM visits") == [(len(served),)]


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_cycle_that_is_killed_makes_the_same_choices(
    bench: Bench, crawled: Path, cycled: Path, tmp_path: Path, seed: int
) -> None:
    bench.clock.set(bench.archive.start + 2 * _DAY)
    folder = image(crawled, tmp_path / "repo")
    torture(bench, folder, seed, *_CYCLE)
    assert finish(folder, *_CYCLE) == 0
    judge(folder)
    (number,) = {cycle for (cycle,) in ask(folder, "SELECT id FROM cycles WHERE kind = 'cycle'")}
    assert len(choices(folder, number)) == 100
    assert choices(folder, number) == choices(cycled, number)
    visits = "SELECT page, outcome FROM visits WHERE cycle = ? ORDER BY page"
    assert ask(folder, visits, number) == ask(cycled, visits, number)
    assert contents(folder) == contents(cycled)


def test_when_only_the_command_is_killed_its_readers_end_and_its_lock_is_free(bench: Bench, tmp_path: Path) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path / "repo")
    trap = Trap(bench, signal.SIGKILL, requests=30, delay=0.0, group=False)
    code, _ = trap.run(folder, "crawl")  # returns only when all who could write to its output have ended
    assert code == -signal.SIGKILL
    assert finish(folder, "crawl") == 0
    judge(folder)


# -- stopped -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_crawl_that_is_stopped_ends_well_and_goes_on(
    bench: Bench, crawled: Path, tmp_path: Path, number: signal.Signals
) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path / "repo")
    code, complaint = Trap(bench, number, requests=30, delay=0.0).run(folder, "crawl")
    assert code in (0, 128 + number), complaint
    assert "Traceback" not in complaint
    assert ask(folder, "SELECT finished FROM cycles") == [(None,)]
    assert 0 < ask(folder, "SELECT count(*) FROM visits")[0][0] < len(contents(crawled))
    judge(folder)
    assert finish(folder, "crawl") == 0
    judge(folder)
    assert contents(folder) == contents(crawled)


def test_a_cycle_that_is_stopped_ends_well_and_goes_on(
    bench: Bench, crawled: Path, cycled: Path, tmp_path: Path
) -> None:
    bench.clock.set(bench.archive.start + 2 * _DAY)
    folder = image(crawled, tmp_path / "repo")
    code, complaint = Trap(bench, signal.SIGINT, requests=40, delay=0.0).run(folder, *_CYCLE)
    assert code in (0, 130), complaint
    judge(folder)
    assert finish(folder, *_CYCLE) == 0
    judge(folder)
    number = ask(folder, "SELECT max(id) FROM cycles")[0][0]
    assert choices(folder, number) == choices(cycled, number)
