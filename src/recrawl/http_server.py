"""An ASGI application behind uvicorn: a listening socket, and a server that runs in the foreground or in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

from recrawl.errors import RecrawlError, UsageError

_START_SECONDS = 30.0
_QUEUED = 1024
"""Connections that the system holds until they are accepted."""


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """Return a listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only if the socket names its protocol; with Nagle on, every response of more
    # than one packet waits 40 ms for an acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_QUEUED)
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound


class HttpServer(uvicorn.Server):
    """A uvicorn server on one socket. Further arguments are those of `uvicorn.Config`."""

    def __init__(
        self, app: Any, bound: socket.socket, *, on_shutdown: Callable[[], None] = lambda: None, **options: Any
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False, **options
            )
        )
        self.on_start: Callable[[], None] = lambda: None
        """Called once the server accepts requests and handles signals."""
        self._on_shutdown = on_shutdown
        self._bound = bound
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    def foreground(self) -> None:
        """Serve until a signal stops the server; uvicorn raises that signal again after its shutdown."""
        self.run(sockets=[self._bound])

    def start(self, name: str) -> None:
        """Serve in a thread of this name; return once the server accepts requests."""
        self._thread = threading.Thread(target=self.foreground, name=name, daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_SECONDS):
            raise RecrawlError(f"the {name} server did not start within {_START_SECONDS:g} s")

    def stop(self) -> None:
        """Shut down the server that `start` has started."""
        self.should_exit = True
        if self._thread is not None:
            self._thread.join(_START_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report readiness after uvicorn's own startup."""
        await super().startup(sockets)
        self._bound.listen(_QUEUED)  # uvicorn's `backlog` limits both this queue and the connections accepted at once
        self._ready.set()
        self.on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Run `on_shutdown` before uvicorn waits for open connections."""
        self._on_shutdown()
        await super().shutdown(sockets)
