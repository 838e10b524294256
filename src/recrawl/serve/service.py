"""The service as a whole: what it needs is made ready, the server runs, and all of it ends in order.

The scheduler and the watcher start before the first request and end after the last: a stop loses nothing, since the
crawling process ends its downloads, records them and can go on later.
"""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import uvicorn

from recrawl.crawl.reports.summaries import catch_up
from recrawl.errors import RecrawlError, UsageError
from recrawl.record.lock import Lock
from recrawl.record.store import Store
from recrawl.serve.alerts.dispatcher import Alerts
from recrawl.serve.app import build
from recrawl.serve.context import Context, ServiceLimits
from recrawl.serve.events import Hub, Watcher
from recrawl.serve.jobs.queue import Jobs
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.pool import Pool
from recrawl.serve.push.websub import Renewals
from recrawl.serve.scheduler import Scheduler
from recrawl.serve.sessions import kept_secret, strong_enough
from recrawl.serve.turn_process import ProcessRunner, Runner

_PATIENCE = 30.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEAD_BYTES = 262_144
"""A request's address and headers are read so far: longer than any address may be, so that its sender hears of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """How a repository is to be served."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    names: tuple[str, ...] = ()
    """Names beside our address under which we may be asked for."""
    schedule: bool = True
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    clock: Callable[[], float] = time.time
    runner: Runner | None = None
    """Takes the turns; a process each if not given."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Service:
    """One repository being served: `with Service(folder, Plan()) as service:`, and then `service.url`."""

    def __init__(self, folder: Path, plan: ServiceConfig) -> None:
        if not is_loopback(plan.host) and not plan.token:
            raise UsageError("beyond loopback a token is needed")
        if plan.token and not strong_enough(plan.token):
            raise UsageError("a token has at least 16 characters")
        self._lock = Lock(folder / "serve.lock", "serve", lambda _: False)
        try:
            _bring_up_to_date(folder, plan.clock())
            self._bound = _listen(plan.host, plan.port)
        except RecrawlError:
            self._lock.release()
            raise
        self.port: int = self._bound.getsockname()[1]
        self.context = _context(folder, plan)
        self.alerts = Alerts(folder, plan.clock, self.context.events.tell)
        self._renewals = Renewals(folder, plan.clock)
        self._watcher = Watcher(self.context.pool, self.context.events, seen=lambda _first, _last: self.alerts.wake())
        self._server = _Uvicorn(build(self.context), self.context.events)
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        host = f"[{plan.host}]" if ":" in plan.host else plan.host
        self.url = f"http://{host}:{self.port}/"

    def foreground(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C or SIGTERM."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, interrupt)  # uvicorn passes signals on when it is done, to whoever was there
        try:
            self._begin()
            self._server.announce = ready  # not before signals are heard, so that who reads it may stop us at once
            self._run()
        except KeyboardInterrupt:
            pass  # to stop is what was asked for
        finally:
            self._end()

    def _run(self) -> None:
        self._server.run(sockets=[self._bound])

    def _begin(self) -> None:
        self.alerts.start()
        self._renewals.start()
        self._watcher.start()
        self.context.scheduler.start()

    def _end(self) -> None:
        self.context.events.end()
        self.context.jobs.close()
        self.context.scheduler.stop()
        self._watcher.stop()
        self.alerts.stop()
        self._renewals.stop()
        self.context.pool.close()
        self._bound.close()
        self._lock.release()

    def __enter__(self) -> Self:
        self._begin()
        self._thread.start()
        if not self._server.ready.wait(_PATIENCE):
            raise RecrawlError("the service did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        self._end()


def _bring_up_to_date(folder: Path, now: float) -> None:
    """The shape of the store, and the sums that are shown."""
    with contextlib.closing(Store(folder / "recrawl.db", create=True)) as store:
        catch_up(store, now)


def _context(folder: Path, plan: ServiceConfig) -> Context:
    hub = Hub()
    shelf = Uploads(folder)
    shelf.tidy()
    names = {name.lower() for name in plan.names} | _LOOPBACK
    names.add(f"[{plan.host}]" if ":" in plan.host else plan.host.lower())
    return Context(
        folder=folder,
        pool=Pool(folder),
        scheduler=Scheduler(
            folder, plan.runner or ProcessRunner(folder), plan.clock, enabled=plan.schedule, tell=hub.tell
        ),
        events=hub,
        jobs=Jobs(shelf, hub.tell, plan.clock),
        shelf=shelf,
        secret=kept_secret(folder),
        token=plan.token,
        hosts=frozenset(names),
        limits=replace(plan.limits),
        clock=plan.clock,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it is ready, and that sends listeners home when it is told to stop."""

    def __init__(self, app: object, hub: Hub) -> None:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )
        super().__init__(config)
        self.ready = threading.Event()
        self.announce: Callable[[], None] = lambda: None
        self._hub = hub

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()
        self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.end()
        await super().shutdown(sockets)
