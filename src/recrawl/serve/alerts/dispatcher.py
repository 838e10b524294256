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

from recrawl.columns import DAY
from recrawl.discover.urls import origin
from recrawl.errors import RecrawlError
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from recrawl.record.store import TEMPORARY_ERRORS
from recrawl.repository.opening import load, options_of
from recrawl.repository.outgoing import NotSent
from recrawl.serve.alerts.delivery import send
from recrawl.serve.alerts.outbox import Delivery, Outbox, VisitMatches
from recrawl.serve.alerts.rules import Update, applies, check_rule, matching_quote, payload
from recrawl.serve.senders import Senders
from recrawl.settings import Alert, Settings

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_BATCH = 1000
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
        with Storage(self._folder) as repository:
            Outbox(repository.store).matched_up_to(repository.store.next_id("visits") - 1)
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
        with Storage(self._folder) as repository:
            Outbox(repository.store).prune(self._clock() - _KEEP)
            while not self._ending.is_set():
                self._new_visits.wait(_INTERVAL)
                self._new_visits.clear()
                with contextlib.suppress(*TEMPORARY_ERRORS):  # database busy: retried in the next round
                    if self._ending.is_set():
                        self.settle(repository, _LAST_SECONDS)
                    else:
                        self.round(repository)

    def round(self, repository: Storage) -> None:
        """Match new visits, record what was sent, and start sending what is due."""
        try:
            values = load(self._folder)
            for rule in values.alerts:
                check_rule(rule)
            noise = options_of(values).noise
            self.error = ""
        except RecrawlError as error:
            self.error = str(error)
            return
        outbox = Outbox(repository.store)
        while self._match_batch(repository, outbox, values.alerts, noise) and not self._ending.is_set():
            pass
        self.settle(repository, 0.0)
        self._start_sending(outbox, values)

    def settle(self, repository: Storage, seconds: float) -> None:
        """Record the deliveries that have ended; wait up to `seconds` for those under way."""
        outbox = Outbox(repository.store)
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

    def _match_batch(self, repository: Storage, outbox: Outbox, rules: tuple[Alert, ...], noise: Any) -> bool:
        """Match a batch of visits; return whether there may be more."""
        repository.refresh()
        now = self._clock()
        last_visit = outbox.matched_up_to(-1)
        rows = repository.store.visits.after(last_visit, _BATCH)
        if not rows:
            return False
        visits = [self._matches(repository, row, rules, noise) for row in rows if row["outcome"] != Outcome.FAILED]
        if outbox.put(visits, rows[-1]["id"], now):
            for visit in visits:
                for _, _, body in visit.found:
                    self._publish("alert", body)
        return len(rows) == _BATCH

    def _matches(self, repository: Storage, row: dict[str, Any], rules: tuple[Alert, ...], noise: Any) -> VisitMatches:
        outcome = _OUTCOMES[row["outcome"]]
        if not rules or outcome == "unchanged":
            return VisitMatches(row["page"], None, [])
        update = _update(repository, row, outcome)
        found = []
        for rule in rules:
            if applies(rule, update):
                quote = matching_quote(rule, update, repository, noise(origin(update.url)))
                if quote is not None:
                    found.append((rule, update, payload(rule, update, quote)))
        digest = update.version.digest if update.version is not None else None
        return VisitMatches(row["page"], digest, found)


def _update(repository: Storage, row: dict[str, Any], outcome: str) -> Update:
    version = repository.store.versions.get(row["version"]) if outcome != "gone" and row["version"] >= 0 else None
    changed = version is not None and outcome == "changed"
    before = repository.store.versions.before(row["page"], version.id) if version and changed else None
    return Update(
        visit=row["id"],
        page=row["page"],
        url=row["url"],
        at=row["at"],
        outcome=outcome,
        title=version.title if version else "",
        divergence=version.divergence if version else None,
        significant=bool(version and version.significant),
        version=version,
        before=before,
    )
