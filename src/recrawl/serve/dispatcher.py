"""The thread that matches new visits against the alert rules, and delivers alerts and the changes for sinks.

It continues at the visit where it stopped, so visits made while the service was down are matched at the next start.
Settings are read in each round; a deleted rule sends nothing more. A slow receiver delays what is for itself only. What
is under way when the service stops may arrive twice, with the same key.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.cluster.opening import open_repository
from recrawl.columns import DAY
from recrawl.errors import RecrawlError
from recrawl.repository.alerts.matching import match_visits, skip_old_visits
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.alerts.receiver import AlertReceiver
from recrawl.repository.alerts.rules import check_rule
from recrawl.repository.delivery.engine import Engine
from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.repository import Repository
from recrawl.repository.sinks.delivery import receivers
from recrawl.settings import Settings

_INTERVAL = 1.0
_KEEP = 90 * DAY
_LAST_SECONDS, _STOP_SECONDS = 3.0, 8.0
"""How long the thread waits at the end for requests under way, and how long its owner waits for the thread."""


class Dispatcher:
    """The thread, with its own database connection."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        publish: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None,
        *,
        dashboard: str = "",
    ) -> None:
        """`dashboard` is the address of the service, for links in alerts."""
        self._dashboard = dashboard
        self._folder = folder
        self._clock = clock
        self._publish = publish
        self._something_new = threading.Event()
        self._ending = threading.Event()
        self.engine = Engine(clock, self.wake)
        self._thread = threading.Thread(target=self._loop, name="dispatcher", daemon=True)
        self.error = ""
        """Why the rules are invalid; empty if they are valid."""

    def start(self) -> None:
        """Start the thread at the first visit that was not matched yet."""
        with open_repository(self._folder) as repository:
            skip_old_visits(repository)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; requests under way have a few seconds to end."""
        self._ending.set()
        self.engine.end()
        self._something_new.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def wake(self) -> None:
        """Look for new visits and results now."""
        self._something_new.set()

    def _loop(self) -> None:
        with open_repository(self._folder, clock=self._clock) as repository:
            Outbox(repository).prune(self._clock() - _KEEP)
            while not self._ending.is_set():
                self._something_new.wait(_INTERVAL)
                self._something_new.clear()
                with contextlib.suppress(*TEMPORARY_ERRORS, RecrawlError):  # busy, or invalid settings: tried again
                    if not self._ending.is_set():
                        self.round(repository)
            with contextlib.suppress(*TEMPORARY_ERRORS):
                self.engine.settle(repository, _LAST_SECONDS)

    def round(self, repository: Repository) -> bool:
        """Record what was sent, match new visits, and start sending what is due; whether there was any."""
        self.engine.settle(repository, 0.0)
        values = repository.settings
        alerts = self._alerts(repository, values)
        return self.engine.start(repository, [*alerts, *receivers(repository, values.sinks)])

    def _alerts(self, repository: Repository, values: Settings) -> list[AlertReceiver]:
        """Match new visits; returns the rules, none if one is invalid."""
        try:
            for rule in values.alerts:
                check_rule(rule)
            repository.options()  # raises an error for invalid settings
            self.error = ""
        except RecrawlError as error:
            self.error = str(error)
            return []
        more = True
        while more and not self._ending.is_set():
            found, more = match_visits(repository, values.alerts, self._clock())
            for body in found:
                self._publish("alert", body)
        Outbox(repository).drop_others(values.alerts)
        return [AlertReceiver(rule, values, self._clock, dashboard=self._dashboard) for rule in values.alerts]
