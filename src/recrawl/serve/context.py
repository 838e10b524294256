"""What every answer may use: the repository, its settings, the scheduler, what happens, the clock, the limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.record.storage import SETTINGS, Storage
from recrawl.repository.opening import load
from recrawl.serve.events import Hub
from recrawl.serve.jobs.queue import Jobs
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.pool import Pool
from recrawl.serve.scheduler import Scheduler
from recrawl.settings import Settings


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What one client may ask of us."""

    address_bytes: int = 32_768
    """Longest address, with all that is asked for in it."""
    body_bytes: int = 1_000_000
    """Largest request body."""
    upload_bytes: int = 1_000_000_000
    """Largest file that is put on the shelf."""
    shelf_bytes: int = 10_000_000_000
    """Most that may be on the shelf when another file comes."""
    per_minute: float = 18_000.0
    """Requests a minute from one address, on the long run."""
    burst: float = 2000.0
    """Requests that may come at once."""
    logins_per_minute: float = 10.0
    """Wrong tokens a minute from one address."""
    streams: int = 32
    """Listeners to events at a time."""


@dataclass(frozen=True, slots=True)
class Context:
    """One repository being served. Made once, at the start, and handed to whatever answers requests."""

    folder: Path
    pool: Pool
    scheduler: Scheduler
    events: Hub
    jobs: Jobs
    """What takes long: comparisons of policies, imports, exports."""
    shelf: Uploads
    """The files that clients may name."""
    secret: bytes
    """Signs sessions and forms; kept in the repository."""
    token: str = ""
    """What a client must show; empty when none is asked for, which is so on loopback only."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    """Names under which we may be asked for; others are a sign of DNS rebinding."""
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    clock: Callable[[], float] = time.time
    places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(2))
    """Long questions that may be asked at a time."""

    def reading(self) -> AbstractContextManager[Storage]:
        """The repository, for questions. `repository.store.db` is its SQLite connection, read only."""
        return self.pool.lend()

    @contextmanager
    def apart(self) -> Iterator[Storage]:
        """The repository in a connection of its own, for questions that take long or need tables for a while."""
        with self.places, Storage(self.folder) as repository:
            yield repository

    def settings(self) -> Settings:
        """The settings as they are now; the file may change at any time."""
        return load(self.folder)

    @property
    def settings_file(self) -> Path:
        """Where they are written."""
        return self.folder / SETTINGS
