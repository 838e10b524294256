"""The thread that matches new visits against the alert rules, fills the outbox, and sends what is due.

It continues at the visit where it stopped, so visits made while the service was down are matched at the next start.
Settings are read in each round; a deleted rule sends nothing more. Receivers are sent to in parallel: a slow one delays
its own alerts only. What is under way when the service stops may arrive twice, with the same key.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.cluster.opening import open_repository
from recrawl.columns import DAY
from recrawl.errors import RecrawlError
from recrawl.repository.alerts.matching import match_visits, skip_old_visits
from recrawl.repository.alerts.outbox import Delivery, Outbox
from recrawl.repository.alerts.rules import check_rule
from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.outgoing import NotSent
from recrawl.repository.repository import Repository
from recrawl.serve.alerts.delivery import send
from recrawl.serve.senders import Senders
from recrawl.settings import Alert, Settings

_INTERVAL = 1.0
_KEEP = 90 * DAY
_SEND_SECONDS = 10.0
"""How long a thread goes on sending to one receiver before it reports what it has sent."""
_LAST_SECONDS, _STOP_SECONDS = 3.0, 8.0
"""How long the thread waits at the end for deliveries under way, and how long its owner waits for the thread."""


class Sent(NamedTuple):
    """A delivery that was tried."""

    delivery: Delivery
    at: float
    error: str


class Alerts:
    """The dispatcher thread, with its own database connection."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        publish: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._publish = publish
        self._new_visits = threading.Event()
        self._ending = threading.Event()
        self._senders: Senders[list[Sent]] = Senders(self.wake)
        self._thread = threading.Thread(target=self._loop, name="alerts", daemon=True)
        self.error = ""
        """Why the rules are invalid; empty if they are valid."""

    def start(self) -> None:
        """Start the thread at the first visit that was not matched yet."""
        with open_repository(self._folder) as repository:
            skip_old_visits(repository)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; deliveries under way have a few seconds to end."""
        self._ending.set()
        self._new_visits.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def wake(self) -> None:
        """Look for new visits now."""
        self._new_visits.set()

    def _loop(self) -> None:
        with open_repository(self._folder) as repository:
            Outbox(repository).prune(self._clock() - _KEEP)
            while not self._ending.is_set():
                self._new_visits.wait(_INTERVAL)
                self._new_visits.clear()
                with contextlib.suppress(*TEMPORARY_ERRORS):  # database busy: retried in the next round
                    if self._ending.is_set():
                        self.settle(repository, _LAST_SECONDS)
                    else:
                        self.round(repository)

    def round(self, repository: Repository) -> None:
        """Match new visits, record what was sent, and start sending what is due."""
        try:
            values = repository.settings
            for rule in values.alerts:
                check_rule(rule)
            repository.options()  # raises an error for invalid settings
            self.error = ""
        except RecrawlError as error:
            self.error = str(error)
            return
        more = True
        while more and not self._ending.is_set():
            found, more = match_visits(repository, values.alerts, self._clock())
            for body in found:
                self._publish("alert", body)
        self.settle(repository, 0.0)
        self._start_sending(Outbox(repository), values)

    def settle(self, repository: Repository, seconds: float) -> None:
        """Record the deliveries that have ended; wait up to `seconds` for those under way."""
        outbox = Outbox(repository)
        for batch in self._senders.collect(seconds):
            for delivery, at, error in batch:
                if error:
                    outbox.mark_failed(delivery, error, at)
                else:
                    outbox.mark_sent(delivery, at)

    def _start_sending(self, outbox: Outbox, values: Settings) -> None:
        rules = {rule.name: rule for rule in values.alerts}
        digests = frozenset(rule.name for rule in values.alerts if rule.digest)
        busy = [rule.name for rule in values.alerts if not self._senders.free(rule.target)]
        batches: dict[str, list[tuple[Alert, Delivery]]] = {}
        for delivery in outbox.due(self._clock(), digests, busy):
            rule = rules.get(delivery.alert)
            if rule is None or rule.target == "feed":  # deleted, or read from the outbox
                outbox.mark_sent(delivery, self._clock())
            else:
                batches.setdefault(rule.target, []).append((rule, delivery))
        for target, batch in batches.items():
            if self._senders.free(target):
                self._senders.start(target, partial(self._send, batch, values))

    def _send(self, batch: list[tuple[Alert, Delivery]], values: Settings) -> list[Sent]:
        """Send deliveries to one receiver, until one fails or the time is over."""
        sent: list[Sent] = []
        end = time.monotonic() + _SEND_SECONDS
        for rule, delivery in batch:
            error = ""
            try:
                send(rule, delivery, self._clock(), values)
            except NotSent as failed:
                error = str(failed)
            sent.append(Sent(delivery, self._clock(), error))
            if error or self._ending.is_set() or time.monotonic() > end:
                break
        return sent
