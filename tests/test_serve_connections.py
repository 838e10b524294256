"""Slow clients: they are let go in time, they make room for others, and they fill no log."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import resource
import socket
import threading
from collections.abc import Iterator

import pytest

from recrawl.serve import service as running
from recrawl.serve.access.connections import LogThrottle
from recrawl.serve.context import ServiceLimits
from recrawl.serve.events import EventBus
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Repo

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "


@contextlib.contextmanager
def half_sent(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that never end their request."""
    with contextlib.ExitStack() as stack:
        lines = []
        for _ in range(count):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            with contextlib.suppress(OSError):  # it may have made room for another one already
                line.sendall(HALF)
            lines.append(line)
        yield lines


def closed(line: socket.socket) -> bool:
    """Whether the other side closes a connection; waits for it."""
    try:
        return line.recv(1000) == b""
    except ConnectionError:
        return True


def test_a_head_must_arrive_in_time(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(head_seconds=2.0))
    with Service(repo.folder, plan) as service, half_sent(service.port, 3) as lines:
        assert all(map(closed, lines))
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            assert closed(line), "nothing was sent at all"
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in line.recv(10_000)
            line.sendall(HALF)  # the second request of a connection
            while line.recv(1000):
                pass


def test_a_body_must_arrive_in_time(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(body_seconds=2.0))
    head = b"PUT /api/v1/files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"
    with Service(repo.folder, plan) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            line.sendall(head)
            answer = b""
            while piece := line.recv(10_000):  # the connection is closed after the answer
                answer += piece
        assert b" 408 " in answer.partition(b"\r\n")[0]
        assert Asker(service).get("/api/v1/files").json["items"] == []


def test_clients_that_wait_make_room_for_those_that_ask(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "most_connections", lambda: 20)
    with Service(repo.folder, ServiceConfig(schedule=False)) as service, half_sent(service.port, 60) as lines:
        for _ in range(5):
            assert Asker(service).get("/healthz").status == 200
        assert len(service._server.server_state.connections) <= 21
        assert closed(lines[0])


def test_few_descriptors_and_many_slow_clients(repo: Repo) -> None:
    """The server has 256 descriptors; without a limit, 300 clients would take them all."""
    process = repo.start("serve", "--port", 0, "--no-schedule", "--json")
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
    try:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
        port = int(json.loads(told)["address"].rstrip("/").rpartition(":")[2])
        with half_sent(port, 800):
            for _ in range(5):
                assert Asker(port).get("/api/v1/status").status == 200
    finally:
        process.terminate()
        ended = repo.wait(process)
    assert len(ended.err.splitlines()) < 40


def test_a_request_with_two_lengths_is_refused(repo: Repo) -> None:
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    request = b"POST /api/v1/cycles HTTP/1.1\r\nHost: localhost\r\n" + both + b"\r\n0\r\n\r\n"
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
            line.sendall(request + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while piece := line.recv(10_000):
                answer += piece
        assert b" 400 " in answer.partition(b"\r\n")[0]
        assert answer.count(b"HTTP/1.1 ") == 1, "what follows is not taken for a request"


def test_the_limit_of_event_streams_holds_in_a_burst(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(streams=4))
    with Service(repo.folder, plan) as service, contextlib.ExitStack() as stack:
        lines = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=60) for _ in range(20)]
        gate = threading.Barrier(len(lines))

        def ask(line: http.client.HTTPConnection) -> None:
            stack.callback(line.close)
            line.connect()
            gate.wait(60)
            line.request("GET", "/api/v1/events")

        threads = [threading.Thread(target=ask, args=(line,)) for line in lines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [stack.enter_context(line.getresponse()).status for line in lines]
        assert sorted(found) == [200] * 4 + [503] * 16


def test_the_limit_of_listeners_is_checked_when_they_join() -> None:
    async def burst() -> list[object]:
        bus = EventBus()
        return [bus.listen(most=2) for _ in range(3)]

    found = asyncio.run(burst())
    assert [listener is None for listener in found] == [False, False, True]


def test_long_queries_that_wait_do_not_take_all_threads(repo: Repo) -> None:
    """There are 40 threads; those that wait for one of two slots are limited, and others are answered."""
    with Service(repo.folder, ServiceConfig(schedule=False)) as service, contextlib.ExitStack() as stack:
        slots = [service.context.query_slots.acquire() for _ in range(2)]
        lines = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=60) for _ in range(50)]
        try:
            for line in lines:
                stack.callback(line.close)
                line.request("GET", "/api/v1/noise")
            assert Asker(service).get("/api/v1/sites").status == 200
        finally:
            for _ in slots:
                service.context.query_slots.release()
        found = [stack.enter_context(line.getresponse()).status for line in lines]
        assert sorted(found) == [200] * 16 + [503] * 34


def test_the_log_is_throttled() -> None:
    now = [0.0]
    throttle = LogThrottle(lambda: now[0])

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("x", logging.WARNING, "", 0, text, None, None)

    assert [throttle.filter(record("bad")) for _ in range(7)] == [True] * 5 + [False] * 2
    assert throttle.filter(record("other"))
    now[0] = 61.0
    later = record("bad")
    assert throttle.filter(later)
    assert "2 more" in later.getMessage()
