"""Readers of a worker: forked from a process that has imported what they need, and gone when it is."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from recrawl.child_processes import ChildProcess
from recrawl.cluster.reader_server import ReaderServer
from recrawl.crawl.visits.messages import ReaderConfig, Task, received
from recrawl.discover.urls import UrlRules


def read_title(connection: Connection, title: str) -> None:
    """Have a page read."""
    page = f"<title>{title}</title>".encode()
    connection.send(ReaderConfig(UrlRules()))
    connection.send([Task(7, "http://a.example/", 0.0, "", 200, (), b"", page, b"", 0, None, None, True)])
    (reading,) = received(connection.recv_bytes(), [7])
    assert (reading.ticket, reading.title) == (7, title)


def children(pid: int) -> list[int]:
    """The children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it is so within ten seconds."""
    until = time.monotonic() + 120
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def ended(child: ChildProcess) -> bool:
    """Whether a reader has ended."""
    return child.poll() is not None


def test_readers_read_pages_and_end_with_their_pipe_or_when_they_are_killed() -> None:
    with ReaderServer() as server:
        (one, first), (two, second) = server.start(), server.start()
        read_title(second, "seal")
        read_title(first, "walrus")
        assert not ended(one)
        first.close()
        assert one.wait() == 0
        assert not ended(two)
        two.kill()
        two.wait()
        assert (one.poll(), two.poll()) == (0, 0)
        three, third = server.start()
        read_title(third, "otter")
        assert len(children(server._process.pid)) == 1  # those that have ended were reaped
    assert soon(lambda: ended(three))


def test_another_process_is_started_for_one_that_was_killed() -> None:
    with ReaderServer() as server:
        one, _ = server.start()
        os.kill(server._process.pid, signal.SIGKILL)
        assert soon(lambda: ended(one))
        two, connection = server.start()
        read_title(connection, "walrus")
        assert not ended(two)
