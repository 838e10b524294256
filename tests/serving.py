"""What tests of the service need: a client that sends what it is told, and nothing else."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlencode

from recrawl.serve.service import Service

Result = TypeVar("Result")
TOKEN = "a-token-for-the-tests-of-recrawl"


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """A client. It follows no redirects, keeps no cookies and believes nothing."""

    def __init__(self, service: Service | int, **headers: str) -> None:
        self.port = service if isinstance(service, int) else service.port
        self.headers = headers

    def ask(
        self, method: str, path: str, body: Any = None, *, form: bool = False, headers: Mapping[str, str] | None = None
    ) -> Got:
        """Send a request; a body is sent as JSON, as a form, or as it is when it is bytes."""
        sent = {name.replace("_", "-"): value for name, value in self.headers.items()} | dict(headers or {})
        data: Any = body
        if form:
            data, kind = urlencode(body).encode(), "application/x-www-form-urlencoded"
            sent = {"Content-Type": kind, **sent}
        elif body is not None and not isinstance(body, bytes | Iterator):
            data, sent = json.dumps(body).encode(), {"Content-Type": "application/json", **sent}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Got(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Got:
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, body: Any = None, **more: Any) -> Got:
        return self.ask("POST", path, body, **more)


class Dripping:
    """A server that begins to answer a request and never ends; `reached` once it was asked."""

    def __init__(self) -> None:
        self.reached, self._ending = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.reached.set()
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                with suppress(OSError):
                    while not outer._ending.wait(0.1):
                        self.wfile.write(b"x")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def in_time(call: Callable[[], Result], seconds: float = 60.0) -> Result:
    """The result of a call that must not wait for ever; TimeoutError if it does."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(seconds)


class Hub:
    """A hub of WebSub: notes what it is asked, and answers with `status`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.came = threading.Event()
        self.status = 202
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.asked.append({name: values[0] for name, values in parse_qs(body).items()})
                outer.came.set()
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()
