"""The misbehaving server must itself be relied on: it does what its table says, and it stops at once."""

from __future__ import annotations

import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.cli.reference import MISBEHAVIOUR
from recrawl.model import Failure
from tests.misbehaving import KINDS, ROBOTS, Misbehaving, bomb, listing

FAILURES = Path(__file__).resolve().parents[1] / "docs" / "reference" / "failures.md"

SILENT = {"never-answers", "silent"}
CLOSES = {"closes-at-once", "closes"}
NOT_HTTP = {"http-0.9", "not-http"}


@pytest.fixture(scope="module")
def server() -> Iterator[Misbehaving]:
    with Misbehaving(pace=0.01) as running:
        yield running


def connect(server: Misbehaving) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def ask(server: Misbehaving, path: str, *headers: str, connection: socket.socket | None = None) -> bytes:
    """Send a request, give what comes first."""
    sock = connection or connect(server)
    try:
        sock.settimeout(0.2 if path.strip("/") in SILENT else 5)
        sock.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode())
        return sock.recv(65536)
    finally:
        if sock is not connection:
            sock.close()


def test_the_documentation_lists_every_kind_with_the_answer() -> None:
    _, heading, written = FAILURES.read_text().partition(MISBEHAVIOUR)
    assert heading + written == listing() + "\n", "run 'make docs'"
    assert len({kind.about for kind in KINDS.values()}) == len(KINDS)


def test_the_tables_are_complete() -> None:
    assert len(KINDS) >= 180
    assert len(ROBOTS) >= 30
    for table in (KINDS, ROBOTS):
        for name, kind in table.items():
            assert name == kind.name == name.lower().strip("/ ")
            assert kind.about
            assert kind.expect
            assert all(word == "ok" or isinstance(word, Failure) for word in kind.expect)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_misbehaves(server: Misbehaving, name: str) -> None:
    before = server.count(f"/{name}")
    try:
        said = ask(server, f"/{name}")
    except TimeoutError:
        assert name in SILENT
    except ConnectionResetError:
        assert name == "resets-at-once"
    else:
        assert bool(said) != (name in CLOSES or name == "resets-at-once")
        assert said.startswith(b"HTTP/") or not said or name in NOT_HTTP
    assert server.count(f"/{name}") == before + 1


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robots_txt(name: str) -> None:
    with Misbehaving(robots=name) as server:
        if name in SILENT:
            connection = connect(server)
            connection.settimeout(0.1)
            with connection, pytest.raises(TimeoutError):
                ask_silently(connection)
        else:
            said = ask(server, "/robots.txt")
            assert said.startswith(b"HTTP/1.1 ") != (name in CLOSES)
        assert server.count("/robots.txt") == 1


def ask_silently(connection: socket.socket) -> bytes:
    connection.sendall(b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n")
    return connection.recv(100)


def test_requests_are_logged_with_their_headers(server: Misbehaving) -> None:
    begin = len(server.log)
    ask(server, "/ok?a=1", "If-None-Match: x")
    request = server.log[begin]
    assert (request.path, request.query, request.headers["if-none-match"]) == ("/ok", "a=1", "x")
    assert request.time <= time.monotonic()


def test_the_front_page_links_to_every_kind(server: Misbehaving) -> None:
    with connect(server) as sock:
        page = b""
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while b"</body>" not in page:
            page += sock.recv(65536)
    assert all(f'href="/{name}"'.encode() in page for name in KINDS)


def test_connections_are_kept_where_the_answer_is_whole(server: Misbehaving) -> None:
    with connect(server) as sock:
        for path in ("/ok", "/status-404", "/no-such-kind", "/ok"):
            assert ask(server, path, connection=sock).startswith(b"HTTP/1.1 ")


def test_a_redirect_chain_ends_after_fifty(server: Misbehaving) -> None:
    path, hops = "/redirect-chain", 0
    while b"301 Moved" in (said := ask(server, path)):
        path = said.split(b"Location: ")[1].split(b"\r\n")[0].decode()
        hops += 1
    assert hops == 50
    assert b"200 OK" in said


def test_conditional_requests_are_lied_to(server: Misbehaving) -> None:
    assert b"200 OK" in ask(server, "/etag-lies")
    assert b"304 Not" in ask(server, "/etag-lies", 'If-None-Match: "same"')
    assert b"304 Not" in ask(server, "/always-304", "If-Modified-Since: whenever")


def test_the_bomb_is_one() -> None:
    inflate, size, rest = zlib.decompressobj(wbits=31), 0, bomb()
    while rest and size < 50 << 20:
        size += len(inflate.decompress(rest, 1 << 20))
        rest = inflate.unconsumed_tail
    assert size >= 50 << 20
    assert len(bomb()) < 2 << 20


def test_ports_where_nobody_answers(server: Misbehaving) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.closed_port), timeout=1)
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", server.deaf_port), timeout=0.2)


def test_it_stops_at_once_whatever_is_under_way() -> None:
    with Misbehaving(pace=3600.0) as server:
        sockets = [connect(server) for _ in range(5)]
        for sock, name in zip(
            sockets, ("never-answers", "slow-body", "body-endless", "stalls-in-body", "ok"), strict=True
        ):
            sock.sendall(f"GET /{name} HTTP/1.1\r\n\r\n".encode())
        for sock in sockets[1:]:
            assert sock.recv(10)
        before = time.monotonic()
    assert time.monotonic() - before < 600.0  # they would wait for hours
    for sock in sockets:
        sock.close()
