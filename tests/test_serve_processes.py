"""Child processes: readers end with their parent and by themselves; nobody waits for a grandchild that holds a pipe."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import Pipe, connection
from pathlib import Path

import pytest

from recrawl.crawl.visits import reader_pool
from recrawl.crawl.visits.messages import ReaderConfig, Reading, Task
from recrawl.discover.urls import UrlRules
from recrawl.repository import processes
from recrawl.serve.jobs.queue import Jobs, JobSpec, JobStep
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.turn_process import ProcessRunner
from tests.serving import in_time

PATIENCE = 60.0

_PARENT = """
import sys
from tests.test_serve_processes import TASK
from recrawl.crawl.visits import reader_pool
from recrawl.crawl.visits.messages import ReaderConfig
from recrawl.discover.urls import UrlRules
sys.executable = sys.argv[1]
reader_pool.can_fork = lambda: False
readers = reader_pool.Readers(ReaderConfig(UrlRules()), processes=1, seconds=5.0)
readers.submit(TASK)
readers.pump(0.0)
sys.stdin.read()
"""
_LAB = """
import sys
from recrawl.child_processes import worker_pool
from tests.test_serve_processes import compute
if __name__ == "__main__":
    with worker_pool(1) as pool:
        pool.submit(compute, sys.argv[1]).result()
"""
_HANGING_READER = """
import os, sys
from recrawl.crawl.visits import reader_process
def hang(*_):
    with open(sys.argv[3], "w") as file:
        file.write(str(os.getpid()))
    while True:
        pass
reader_process.TaskReader.read_all = hang
reader_process.main()
"""
_LEAVES_A_CHILD = """#!/bin/sh
sleep 1000 &
echo $! > "$(dirname "$0")/left"
echo '{"summary": {"finished": true}}'
echo nothing >&2
"""
TASK = Task(0, "http://a.example/", 0.0, "", 200, (), b"", b"<p>a", b"", 0, None, None, True)


def compute(fifo: str) -> None:
    """Work without an end, in a worker of a pool."""
    Path(fifo).write_text(str(os.getpid()))
    while True:
        pass


def wait_for_end(process: int) -> bool:
    """Wait until a process that is not a child of ours has ended."""
    with os.fdopen(os.pidfd_open(process), "rb") as ended:
        ready = select.poll()
        ready.register(ended, select.POLLIN)
        return bool(ready.poll(PATIENCE * 1000))


def children() -> set[int]:
    """The processes that this thread started; other tests of this worker process may have left some."""
    return {int(child) for child in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()}


@pytest.mark.usefixtures("cold_readers")
@pytest.mark.parametrize("pages", [1, 3])
def test_a_reader_that_is_killed_while_idle_costs_no_page(pages: int) -> None:
    others = children()
    readers = reader_pool.Readers(ReaderConfig(UrlRules()), processes=1, seconds=5.0)
    with closing(readers):
        for _ in range(2):
            for _ in range(pages):
                readers.submit(TASK)
            readings: list[Reading] = []
            while readers.pending:
                readers.pump(0.0)
                connection.wait(readers.connections)
                readings += readers.collect(0.0)
            assert [reading.failure for reading in readings] == [""] * pages
            (child,) = children() - others
            os.kill(child, signal.SIGKILL)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)


@pytest.mark.usefixtures("cold_readers")
def test_a_reader_that_is_killed_at_work_costs_one_page_at_most() -> None:
    others = children()
    readers = reader_pool.Readers(ReaderConfig(UrlRules()), processes=1, seconds=5.0)
    with closing(readers):
        readers.submit(TASK)
        readers.pump(0.0)
        (child,) = children() - others
        os.kill(child, signal.SIGKILL)
        connection.wait(readers.connections)
        assert [reading.failure for reading in readers.collect(0.0)] == ["parse-crash"]


def test_a_reader_that_is_stuck_dies_with_its_parent(tmp_path: Path) -> None:
    fifo, code, program = tmp_path / "fifo", tmp_path / "code.py", tmp_path / "program"
    os.mkfifo(fifo)
    code.write_text(_HANGING_READER)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$3" "$4" {fifo}\n')  # -m MODULE PIPE PARENT
    program.chmod(0o700)
    with subprocess.Popen([sys.executable, "-c", _PARENT, str(program)], stdin=subprocess.PIPE) as parent:
        reader = int(fifo.read_text())  # it parses, and will not see its pipe close
        parent.kill()
        ended = wait_for_end(reader)
        if not ended:
            os.kill(reader, signal.SIGKILL)
    assert ended


def test_workers_of_the_lab_die_with_their_parent(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([sys.executable, "-c", _LAB, str(fifo)], stdin=subprocess.PIPE) as parent:
        worker = int(fifo.read_text())
        parent.kill()
        ended = wait_for_end(worker)
        if not ended:
            os.kill(worker, signal.SIGKILL)
    assert ended


def test_a_reader_ends_itself_when_its_parent_does_not_end_it() -> None:
    ours, theirs = Pipe()
    fd = str(theirs.fileno())
    words = [sys.executable, "-c", _HANGING_READER, fd, str(os.getpid()), os.devnull]
    with closing(ours), subprocess.Popen(words, pass_fds=[int(fd)]) as reader:
        theirs.close()
        ours.send(ReaderConfig(UrlRules(), deadline=0.2))
        ours.send([TASK])
        try:
            assert reader.wait(PATIENCE) == -signal.SIGALRM
        finally:
            reader.kill()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    """A program that ends and leaves a child behind, which holds its output."""
    made = tmp_path / "program"
    made.write_text(_LEAVES_A_CHILD)
    made.chmod(0o700)
    yield made
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def test_a_turn_ends_with_its_process(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(program))
    runner = ProcessRunner(program.parent)
    assert in_time(lambda: runner.run({}, lambda _: None)).summary == {"finished": True}


def test_a_query_ends_with_its_process(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(program))
    assert "finished" in in_time(lambda: processes.run_module("x", seconds=PATIENCE))


def test_a_job_ends_with_its_process(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(program))
    ended = threading.Event()
    jobs = Jobs(Uploads(program.parent), lambda *_: ended.set())
    jobs.start(JobSpec("x", {}, lambda _: [JobStep("Started ...", ())]))
    assert in_time(lambda: ended.wait(PATIENCE))
    assert jobs.newest_first()[0].state == "done"
    jobs.close()
