"""The objects that request handlers use: repository, settings, scheduler, events, jobs, clock and limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.cluster.opening import open_repository
from recrawl.repository.opening import load, settings_file
from recrawl.repository.repository import Repository
from recrawl.serve.access.connections import HEAD_SECONDS
from recrawl.serve.access.sessions import LoggedOut
from recrawl.serve.events import EventBus
from recrawl.serve.jobs.queue import Jobs
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.pool import Pool
from recrawl.serve.problems import Problem
from recrawl.serve.scheduler import Scheduler
from recrawl.settings import Settings


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Limits on requests and uploads."""

    url_bytes: int = 32_768
    """Longest request target: path and query."""
    body_bytes: int = 1_000_000
    """Largest request body."""
    upload_bytes: int = 1_000_000_000
    """Largest uploaded file."""
    uploads_bytes: int = 10_000_000_000
    """Total size of the uploaded files above which uploads are refused."""
    per_minute: float = 18_000.0
    """Sustained requests per minute from one client address."""
    burst: float = 2000.0
    """Requests that one client may send in a burst."""
    logins_per_minute: float = 10.0
    """Wrong tokens per minute from one client address."""
    streams: int = 32
    """Concurrent event streams."""
    head_seconds: float = HEAD_SECONDS
    """Longest time in which a request head must arrive."""
    body_seconds: float = 30.0
    """Longest time in which a request body must arrive, besides a second for each 10 kB of it."""


@dataclass(frozen=True, slots=True)
class Context:
    """One served repository; created once at start-up and passed to every request handler."""

    folder: Path
    pool: Pool
    scheduler: Scheduler
    events: EventBus
    jobs: Jobs
    """Long commands: policy comparisons, imports, exports."""
    uploads: Uploads
    """The only files that clients may read, write or name."""
    secret: bytes
    """Key that signs session cookies and CSRF tokens; stored in the repository."""
    logged_out: LoggedOut
    """Sessions that have ended before their time."""
    token: str = ""
    """Access token that clients must send; empty (none required) on loopback only."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    """Accepted Host names; any other may be a DNS rebinding attack."""
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    mcp_writes: bool = False
    """Assistants may add pages and request visits."""
    clock: Callable[[], float] = time.time
    query_slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(2))
    """Limits concurrent long queries."""
    query_places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(16))
    """Limits long queries that run or wait: each holds one of the server's threads, which others need."""

    def reading(self) -> AbstractContextManager[Repository]:
        """Borrow a repository for reading."""
        return self.pool.borrow()

    def writing(self) -> Repository:
        """Open the repository on its own connection, for short writes; a request to another server may go between."""
        return open_repository(self.folder, clock=self.clock)

    @contextmanager
    def long_query(self) -> Iterator[None]:
        """Wait for a slot; raise a Problem if too many wait already."""
        if not self.query_places.acquire(blocking=False):
            raise Problem(503, "Too many long queries; try again later.", headers={"retry-after": "30"})
        try:
            with self.query_slots:
                yield
        finally:
            self.query_places.release()

    @contextmanager
    def dedicated(self) -> Iterator[Repository]:
        """Open the repository on its own connection, for long queries and temporary tables; few at a time."""
        with self.long_query(), open_repository(self.folder, clock=self.clock) as repository:
            yield repository

    def settings(self) -> Settings:
        """Read the current settings; the file may change at any time."""
        return load(self.folder)

    @property
    def settings_file(self) -> Path:
        """Path of the settings file."""
        return settings_file(self.folder)
