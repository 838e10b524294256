"""Receivers for sinks: a server of CloudEvents, a server of the bulk API, a PostgreSQL server.

`BulkServer` is not OpenSearch. It follows the documented bulk API for the operations that recrawl uses: lines of JSON,
external versions with conflicts, tombstones, errors for each item.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Answer = tuple[int, bytes]


class Receiver:
    """A server on loopback that passes each request's body and headers to `answer`."""

    def __init__(self) -> None:
        self.requests = 0
        self.before: Callable[[], Answer | None] = lambda: None
        """Asked before each request is handled; an answer replaces its own."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests += 1
                status, answer = outer.before() or outer.answer(
                    self.path, body, {name.lower(): value for name, value in self.headers.items()}
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """What the server does."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class EventServer(Receiver):
    """Stores CloudEvents in the order of their arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.after: Callable[[], None] = lambda: None
        """Called after an event is stored and before it is acknowledged."""

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        assert headers["content-type"] == "application/cloudevents+json"
        self.events.append(json.loads(body))
        self.headers.append(headers)
        self.bodies.append(body)
        self.after()
        return 204, b""


class BulkServer(Receiver):
    """An index behind the bulk API."""

    def __init__(self, authorization: str = "") -> None:
        super().__init__()
        self.documents: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        """Of documents that are there and of deleted ones."""
        self.writes: list[tuple[str, int]] = []
        self.reject: Callable[[dict[str, Any]], int] = lambda _: 0
        """Status of an item that is refused; 0 accepts it."""
        self._authorization = authorization

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        if self._authorization and headers.get("authorization") != self._authorization:
            return 401, b'{"error": {"type": "security_exception"}}'
        if headers["content-type"] != "application/x-ndjson" or not path.endswith("/_bulk") or body[-1:] != b"\n":
            return 400, b'{"error": {"type": "illegal_argument_exception"}}'
        lines = iter([json.loads(line) for line in body.splitlines()])
        items = []
        for action in lines:
            ((kind, order),) = action.items()
            document = next(lines) if kind == "index" else None
            status = self.reject(order) or self._write(order, document)
            error = {"error": {"type": "refused"}} if status >= 400 else {}
            items.append({kind: {"_id": order["_id"], "status": status, **error}})
        failed = any("error" in result for item in items for result in item.values())
        return 200, json.dumps({"took": 1, "errors": failed, "items": items}).encode()

    def _write(self, order: dict[str, Any], document: dict[str, Any] | None) -> int:
        assert order["version_type"] == "external_gte"
        name, version = order["_id"], int(order["version"])
        if version < self.versions.get(name, -1):
            return 409
        there = name in self.documents
        self.versions[name] = version
        self.writes.append((name, version))
        if document is None:
            self.documents.pop(name, None)
            return 200 if there else 404
        self.documents[name] = document
        return 200 if there else 201


def find_postgres() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them out of PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    folders += [Path(found).parent] if found else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _account() -> dict[str, Any]:
    """Who runs PostgreSQL, which refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def restart_postgres(data: Path) -> None:
    """Restart the server of this folder; all its connections end."""
    programs = find_postgres()
    assert programs is not None
    words = [str(programs / "pg_ctl"), "-D", str(data), "-l", str(data.parent / "log"), "-m", "fast", "-w", "restart"]
    subprocess.run(words, cwd=data.parent, stdout=subprocess.DEVNULL, check=True, **_account())


@contextmanager
def postgres(password: str) -> Iterator[str]:
    """A PostgreSQL server of its own on loopback, run by a user who is not root; yields the URL of a database."""
    programs = find_postgres()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
    secret = folder / "password"
    secret.write_text(password)
    account = _account()
    for path in (folder, secret) if account else ():
        os.chown(path, account["user"], account["group"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [str(programs / program), *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            **account,
        )
        assert done.returncode == 0, done.stderr

    data = folder / "data"
    options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
    try:
        run("initdb", "-D", str(data), "-U", "crawler", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        run("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://crawler@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)
