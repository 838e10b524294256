"""The thread that renews WebSub subscriptions, all hubs in parallel."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.cluster.opening import open_repository
from recrawl.errors import RecrawlError
from recrawl.repository.delivery.senders import Senders
from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.push.websub import begin_renewal, due_renewals, renewal_failed, request_renewal
from recrawl.repository.repository import Repository
from recrawl.settings import Settings

_CHECK_INTERVAL = 15.0
_LAST_SECONDS, _STOP_SECONDS = 3.0, 8.0
"""How long the thread waits at the end for requests under way, and how long its owner waits for the thread."""

Renewing = Senders[tuple[str, str]]
"""Threads that request renewals; a result is the name of a subscription and the error, if any."""


def renew(repository: Repository, senders: Renewing) -> int:
    """Start to request the renewals that are due; return how many. Those of a busy hub stay due."""
    settings, started = repository.settings, 0
    for row in due_renewals(repository):
        if senders.free(row["hub"]):
            begin_renewal(repository, row)
            senders.start(row["hub"], _request(row, settings))
            started += 1
    return started


def settle(repository: Repository, senders: Renewing, seconds: float = 0.0) -> None:
    """Record the errors of the requests that have ended; wait up to `seconds` for those under way."""
    for _, result in senders.collect(seconds):
        if result is not None and result[1]:
            renewal_failed(repository, *result)


def _request(row: dict[str, Any], settings: Settings) -> Callable[[], tuple[str, str]]:
    return lambda: (row["name"], request_renewal(row, settings))


class Renewals:
    """Thread that renews subscriptions."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._wake = threading.Event()
        self._ending = False
        self._senders: Renewing = Senders(self._wake.set)
        self._thread = threading.Thread(target=self._loop, name="renewals", daemon=True)

    def start(self) -> None:
        """Start the thread; overdue renewals are requested immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; requests under way have a few seconds to end."""
        self._ending = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _loop(self) -> None:
        with open_repository(self._folder, clock=self._clock) as repository:
            while True:
                with contextlib.suppress(*TEMPORARY_ERRORS, RecrawlError):  # busy, or invalid settings: retried in 15 s
                    renew(repository, self._senders)
                    settle(repository, self._senders, _LAST_SECONDS if self._ending else 0.0)
                if self._ending:
                    return
                self._wake.wait(_CHECK_INTERVAL)
                self._wake.clear()
