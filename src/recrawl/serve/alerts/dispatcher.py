"""The thread that matches new visits against the alert rules, fills the outbox, and sends what is due.

It continues at the visit where it stopped, so visits made while the service was down are matched at the next start.
Settings are read in each round; a deleted rule sends nothing more.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.columns import DAY
from recrawl.discover.urls import origin
from recrawl.errors import RecrawlError
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from recrawl.record.store import TEMPORARY_ERRORS
from recrawl.repository.opening import load, options_of
from recrawl.serve.alerts.delivery import NotSent, send
from recrawl.serve.alerts.outbox import Delivery, Outbox, VisitMatches
from recrawl.serve.alerts.rules import Update, applies, check_rule, matching_quote, payload
from recrawl.settings import Alert

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_BATCH = 1000
_INTERVAL = 1.0
_KEEP = 90 * DAY


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
        self._thread = threading.Thread(target=self._loop, name="alerts", daemon=True)
        self.error = ""
        """Why the rules are invalid; empty if they are valid."""

    def start(self) -> None:
        """Start the thread at the first visit that was not matched yet."""
        with Storage(self._folder) as repository:
            Outbox(repository.store).matched_up_to(repository.store.next_id("visits") - 1)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after a delivery that is under way."""
        self._ending.set()
        self._new_visits.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """Look for new visits now."""
        self._new_visits.set()

    def _loop(self) -> None:
        with Storage(self._folder) as repository:
            Outbox(repository.store).prune(self._clock() - _KEEP)
            while not self._ending.is_set():
                self._new_visits.wait(_INTERVAL)
                self._new_visits.clear()
                if self._ending.is_set():
                    return
                with contextlib.suppress(*TEMPORARY_ERRORS):  # database busy: retried in the next round
                    self.round(repository)

    def round(self, repository: Storage) -> None:
        """Match new visits, then send what is due."""
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
        rules = {rule.name: rule for rule in values.alerts}
        digests = frozenset(rule.name for rule in values.alerts if rule.digest)
        for delivery in outbox.due(self._clock(), digests):
            if self._ending.is_set():
                return
            self._send(outbox, rules.get(delivery.alert), delivery)

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

    def _send(self, outbox: Outbox, rule: Alert | None, delivery: Delivery) -> None:
        now = self._clock()
        if rule is None:
            outbox.mark_sent(delivery, now)  # the rule was deleted
            return
        try:
            send(rule, delivery, now)
        except NotSent as error:
            outbox.mark_failed(delivery, str(error), now)
        else:
            outbox.mark_sent(delivery, self._clock())


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
