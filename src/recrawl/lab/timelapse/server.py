"""Running the time-lapse server: in the foreground for the command, in a thread for tests and the demo."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn

from recrawl.errors import RecrawlError, UsageError
from recrawl.lab.timelapse.app import TimeLapse

_PATIENCE = 30.0


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A bound socket; port 0 takes a free one."""
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is; with it on, every
    # answer of more than one packet waits 40 ms for an acknowledgement.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound


def serve(application: TimeLapse, bound: socket.socket) -> None:
    """Answer requests until Ctrl-C."""
    try:
        _Uvicorn(_config(application)).run(sockets=[bound])
    except KeyboardInterrupt:
        # uvicorn has closed everything and passes the signal on; to stop is what was asked for.
        return
    finally:
        bound.close()


class TimeLapseServer:
    """The server in a thread, on a free port of the loopback interface.

    `with Server(app(archive, clock)) as server:` and then `server.url_of("https://news1.example/")`.
    """

    def __init__(self, application: TimeLapse, port: int = 0) -> None:
        self._application = application
        self._bound = listen(port)
        self.port: int = self._bound.getsockname()[1]
        self._server = _Uvicorn(_config(application))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._bound]}, name="timelapse", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._server.ready.wait(_PATIENCE):
            raise RecrawlError("the time-lapse server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        self._bound.close()

    def url_of(self, url: str) -> str:
        """Where an address of the archive is served."""
        served = self._application.addresses.served(url, self.port)
        if served is None:
            raise UsageError(f"the archive has no site for {url}")
        return served


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _config(application: TimeLapse) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=2,
    )
