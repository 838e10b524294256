"""Forked processes: what they keep of their parent, and how they end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from recrawl import child_processes
from recrawl.child_processes import ForkedChild, can_fork, fork
from recrawl.crawl.visits import reader_pool
from recrawl.crawl.visits.messages import ReaderConfig, Task, received
from recrawl.discover.urls import UrlRules

_ALONE = "from recrawl.child_processes import can_fork; print(can_fork())"
_PARENT = """
import os, time
from recrawl.child_processes import fork
child, ours = fork(lambda theirs: (theirs.send(os.getpid()), time.sleep(600)))
print(ours.recv(), flush=True)
time.sleep(600)
"""


def _tell(connection: Connection) -> None:
    files = {path.name: str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    connection.send((files, handlers, os.getpgid(0) == os.getpid()))


def _fail(_: Connection) -> None:
    raise ZeroDivisionError


def test_a_forked_process_keeps_no_file_handler_or_group_of_its_parent(tmp_path: Path) -> None:
    with (tmp_path / "held").open("w") as held:
        child, ours = fork(_tell)
        files, handlers, own_group = ours.recv()
        assert child.wait() == 0
        assert held.name not in files.values()
    assert [files["0"], files["1"]] == [os.devnull, os.devnull]
    assert len(files) <= 5  # the standard streams, the connection, the listing itself
    assert handlers == [signal.SIG_DFL, signal.SIG_DFL]
    assert own_group


def test_a_forked_process_that_fails_has_a_code_and_can_be_waited_for_again(capfd: pytest.CaptureFixture[str]) -> None:
    child, ours = fork(_fail)
    with pytest.raises(EOFError):
        ours.recv()
    assert (child.wait(), child.poll(), child.wait()) == (1, 1, 1)
    child.kill()  # it has ended: nothing happens
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_forked_process_is_killed() -> None:
    child, _ours = fork(lambda _: time.sleep(600))
    assert child.poll() is None
    child.kill()
    assert child.wait() == -signal.SIGKILL


def test_a_forked_process_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([child], [], [], 30)
    os.close(child)
    assert ended


def test_only_a_small_process_with_one_thread_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=True)
    assert alone.stdout == "True\n"
    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    assert not can_fork()
    release.set()
    other.join()
    monkeypatch.setattr(child_processes, "_FORKED_BYTES", 1)
    assert not can_fork()


@pytest.mark.parametrize("safe", [True, False])
def test_a_reader_is_forked_where_that_is_safe_and_started_anew_elsewhere(
    monkeypatch: pytest.MonkeyPatch, cold_readers: None, safe: bool
) -> None:
    del cold_readers
    monkeypatch.setattr(reader_pool, "can_fork", lambda: safe)
    child, ours = reader_pool.start_reader()
    assert isinstance(child, ForkedChild) == safe
    ours.send(ReaderConfig(UrlRules()))
    ours.send([Task(7, "http://a.example/", 0.0, "", 200, (), b"", b"<title>News</title>", b"", 0, None, None, True)])
    (reading,) = received(ours.recv_bytes(), [7])
    assert (reading.ticket, reading.title) == (7, "News")
    ours.close()
    assert child.wait() == 0
