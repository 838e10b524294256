"""What tests of the service need: a client that sends what it is told, and nothing else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from recrawl.serve.running import Service

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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
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
