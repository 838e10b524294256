"""The thread that looks at new visits, puts what rules want into the outbox, and sends what is due.

It reads visits from where it stopped, whenever that was: what happened while the service was down is told when it is up
again. Settings are read anew each time; a rule that was deleted sends nothing more.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.discover.urls import origin
from recrawl.errors import RecrawlError
from recrawl.model import Outcome
from recrawl.record.questions import ask
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.opening import load, options_of
from recrawl.serve.alerts.delivery import NotSent, send
from recrawl.serve.alerts.outbox import Outbox, OutboxStep, Parcel
from recrawl.serve.alerts.rules import Update, check, matches, told, wanted
from recrawl.settings import Alert

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_AT_ONCE = 1000
_LOOK = 1.0
_KEEP = 90 * 86400.0


class Alerts:
    """Runs in a thread of its own, with a connection of its own."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        tell: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._tell = tell
        self._news = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="alerts", daemon=True)
        self.error = ""
        """Why the rules cannot be used, empty when they can."""

    def start(self) -> None:
        """Begin where it was left off."""
        with Storage(self._folder) as repository:
            Outbox(repository.store.db).mark(repository.store.next_id("visits") - 1)
        self._thread.start()

    def stop(self) -> None:
        """End; a parcel on its way is waited for."""
        self._ending.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """There are new visits."""
        self._news.set()

    def _loop(self) -> None:
        with Storage(self._folder) as repository:
            Outbox(repository.store.db).tidy(self._clock() - _KEEP)
            while not self._ending.is_set():
                self._news.wait(_LOOK)
                self._news.clear()
                if self._ending.is_set():
                    return
                with contextlib.suppress(sqlite3.OperationalError):  # busy: the next round does it
                    self.round(repository)

    def round(self, repository: Storage) -> None:
        """Look at what is new, then send what is due."""
        try:
            values = load(self._folder)
            for rule in values.alerts:
                check(rule)
            noise = options_of(values).noise
            self.error = ""
        except RecrawlError as error:
            self.error = str(error)
            return
        outbox = Outbox(repository.store.db)
        while self._look(repository, outbox, values.alerts, noise) and not self._ending.is_set():
            pass
        rules = {rule.name: rule for rule in values.alerts}
        digests = frozenset(rule.name for rule in values.alerts if rule.digest)
        for parcel in outbox.due(self._clock(), digests):
            if self._ending.is_set():
                return
            self._send(outbox, rules.get(parcel.alert), parcel)

    def _look(self, repository: Storage, outbox: Outbox, rules: tuple[Alert, ...], noise: Any) -> bool:
        """Look at some visits; whether there may be more."""
        repository.refresh()
        db, now = repository.store.db, self._clock()
        mark = outbox.mark(-1)
        rows = ask(
            db,
            """SELECT v.id, v.page, v.at, v.outcome, v.version, p.url FROM visits v JOIN pages p ON p.id = v.page
               WHERE v.id > ? ORDER BY v.id LIMIT ?""",
            (mark, _AT_ONCE),
        )
        if not rows:
            return False
        steps = [self._step(repository, row, rules, noise) for row in rows if row["outcome"] != Outcome.FAILED]
        if outbox.put(steps, rows[-1]["id"], now):
            for step in steps:
                for _, _, body in step.found:
                    self._tell("alert", body)
        return len(rows) == _AT_ONCE

    def _step(self, repository: Storage, row: dict[str, Any], rules: tuple[Alert, ...], noise: Any) -> OutboxStep:
        outcome = _OUTCOMES[row["outcome"]]
        if not rules or outcome == "unchanged":
            return OutboxStep(row["page"], None, [])
        update = _update(repository, row, outcome)
        found = []
        for rule in rules:
            if wanted(rule, update):
                quote = matches(rule, update, repository, noise(origin(update.url)))
                if quote is not None:
                    found.append((rule, update, told(rule, update, quote)))
        digest = update.version.digest if update.version is not None else None
        return OutboxStep(row["page"], digest, found)

    def _send(self, outbox: Outbox, rule: Alert | None, parcel: Parcel) -> None:
        now = self._clock()
        if rule is None:
            outbox.sent(parcel, now)  # nobody wants it any more
            return
        try:
            send(rule, parcel, now)
        except NotSent as error:
            outbox.failed(parcel, str(error), now)
        else:
            outbox.sent(parcel, self._clock())


def _update(repository: Storage, row: dict[str, Any], outcome: str) -> Update:
    version = repository.store.version(row["version"]) if outcome != "gone" and row["version"] >= 0 else None
    before = _before(repository, row["page"], version.id) if version is not None and outcome == "changed" else None
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


def _before(repository: Storage, page: int, version: int) -> VersionRow | None:
    sql = "SELECT * FROM versions WHERE page = ? AND id < ? ORDER BY id DESC LIMIT 1"
    row = repository.store.db.execute(sql, (page, version)).fetchone()
    return None if row is None else VersionRow._make(row)
