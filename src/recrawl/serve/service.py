"""The service as a whole: start-up, web server, orderly shutdown.

The scheduler and the watcher start before the first request and stop after the last. Stopping loses nothing: the
crawling process finishes and records its downloads, and its cycle resumes later.
"""

from __future__ import annotations

import ipaddress
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from recrawl.cluster.opening import ServiceLock
from recrawl.errors import RecrawlError, UsageError
from recrawl.http_server import HttpServer, listen
from recrawl.repository.checking import upgrade
from recrawl.serve.access.connections import ACCEPTED_AT_ONCE, BoundedProtocol, LogThrottle, most_connections
from recrawl.serve.access.sessions import LoggedOut, is_strong, session_key
from recrawl.serve.app import build
from recrawl.serve.context import Context, ServiceLimits
from recrawl.serve.cycle_log import CycleLog
from recrawl.serve.dispatcher import Dispatcher
from recrawl.serve.events import EventBus, Watcher
from recrawl.serve.jobs.queue import Jobs
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.pool import Pool
from recrawl.serve.push import Renewals
from recrawl.serve.scheduler import Scheduler
from recrawl.serve.turn_process import ProcessRunner, TurnRunner

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LOGGERS = ("uvicorn.error", "asyncio")
_HEAD_BYTES = 262_144
"""Most bytes of a request line and headers; above `ServiceLimits.url_bytes`, so that over-long URLs get a 414."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """How to serve a repository."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    names: tuple[str, ...] = ()
    """Accepted Host names besides loopback and `host`."""
    proxies: tuple[str, ...] = ()
    """IP addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    schedule: bool = True
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    clock: Callable[[], float] = time.time
    log: Callable[[str], None] | None = None
    """Gets a line for each crawl and cycle."""
    mcp_writes: bool = False
    """Assistants may add pages and request visits."""
    runner: TurnRunner | None = None
    """Runs the turns; default: a child process per turn."""


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only.

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
    """A served repository: `with Service(folder, ServiceConfig()) as service: ... service.url`."""

    def __init__(self, folder: Path, config: ServiceConfig) -> None:
        if not is_loopback(config.host) and not config.token:
            raise UsageError(f"listening on {config.host} requires an access token")
        if config.proxies and not config.token:
            raise UsageError("a trusted proxy passes requests from other machines on; this requires an access token")
        for proxy in config.proxies:
            _check_proxy(proxy)
        if config.token and not is_strong(config.token):
            raise UsageError("the access token is too short; use at least 16 characters")
        self._lock = ServiceLock(folder)
        try:
            upgrade(folder, config.clock())
            self._socket = listen(config.port, config.host)
        except RecrawlError:
            self._lock.release()
            raise
        self.port: int = self._socket.getsockname()[1]
        self.context = _context(folder, config)
        host = f"[{config.host}]" if ":" in config.host else config.host
        self.url = f"http://{host}:{self.port}/"
        self.dispatcher = Dispatcher(folder, config.clock, self.context.events.publish, dashboard=self.url)
        if config.log is not None:
            self.context.events.log = CycleLog(self.context, config.log)
        self._throttle = LogThrottle()
        self._renewals = Renewals(folder, config.clock)
        self._watcher = Watcher(self.context.pool, self.context.events, on_visits=self.dispatcher.wake)
        self._server = HttpServer(
            build(self.context),
            self._socket,
            on_shutdown=self.context.events.close,  # an open event stream would hold up the shutdown
            http=partial(BoundedProtocol, head_seconds=config.limits.head_seconds, most=most_connections()),
            backlog=ACCEPTED_AT_ONCE,
            proxy_headers=bool(config.proxies),
            forwarded_allow_ips=list(config.proxies),
            timeout_keep_alive=15,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )

    def foreground(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C or SIGTERM."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, interrupt)  # uvicorn re-raises captured signals with the previous handler
        try:
            self._begin()
            self._server.on_start = ready  # after uvicorn installed its handlers: a signal may follow immediately
            self._server.foreground()
        except KeyboardInterrupt:
            pass
        finally:
            self._end()

    def _begin(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._throttle)
        self.dispatcher.start()
        self._renewals.start()
        self._watcher.start()
        self.context.scheduler.start()

    def _end(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._throttle)
        self.context.events.close()
        self.context.jobs.close()
        self.context.scheduler.stop()
        self._watcher.stop()
        self.dispatcher.stop()
        self._renewals.stop()
        self.context.pool.close()
        self._socket.close()
        self._lock.release()

    def __enter__(self) -> Self:
        self._begin()
        self._server.start("web")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._end()


def _check_proxy(address: str) -> None:
    try:
        ipaddress.ip_network(address)
    except ValueError:
        raise UsageError(f"invalid trusted proxy '{address}'; use an IP address or network, as 10.0.0.0/8") from None


def _context(folder: Path, config: ServiceConfig) -> Context:
    events = EventBus()
    uploads = Uploads(folder)
    uploads.remove_partial()
    hosts = {name.lower() for name in config.names} | _LOOPBACK
    hosts.add(f"[{config.host}]" if ":" in config.host else config.host.lower())
    return Context(
        folder=folder,
        pool=Pool(folder, config.clock),
        scheduler=Scheduler(
            folder,
            config.runner or ProcessRunner(folder),
            config.clock,
            enabled=config.schedule,
            publish=events.publish,
        ),
        events=events,
        jobs=Jobs(uploads, events.publish, config.clock),
        uploads=uploads,
        secret=session_key(folder, config.token),
        logged_out=LoggedOut(folder),
        token=config.token,
        hosts=frozenset(hosts),
        limits=replace(config.limits),
        mcp_writes=config.mcp_writes,
        clock=config.clock,
    )
