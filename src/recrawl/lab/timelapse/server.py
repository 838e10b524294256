"""Run the time-lapse server: in the foreground for the command line, in a thread for tests and the demo."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from recrawl.errors import UsageError
from recrawl.http_server import HttpServer, listen
from recrawl.lab.timelapse.app import TimeLapse

_OPTIONS: dict[str, Any] = {"date_header": False, "timeout_graceful_shutdown": 2}
"""The application sends the virtual date itself."""


def serve(application: TimeLapse, bound: socket.socket) -> None:
    """Serve until Ctrl-C."""
    try:
        HttpServer(application, bound, **_OPTIONS).foreground()
    except KeyboardInterrupt:
        return  # uvicorn raises the signal again after its shutdown
    finally:
        bound.close()


class TimeLapseServer:
    """The server in a thread, on a free port of the loopback interface.

    `with TimeLapseServer(app(archive, clock)) as server:` and then `server.url_of("https://news1.example/")`.
    """

    def __init__(self, application: TimeLapse, port: int = 0) -> None:
        self._application = application
        self._bound = listen(port)
        self.port: int = self._bound.getsockname()[1]
        self._server = HttpServer(application, self._bound, **_OPTIONS)

    def __enter__(self) -> Self:
        self._server.start("time-lapse")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._bound.close()

    def url_of(self, url: str) -> str:
        """Where this server serves a URL of the archive."""
        served = self._application.addresses.served(url, self.port)
        if served is None:
            raise UsageError(f"the archive has no site for {url}")
        return served
