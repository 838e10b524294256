"""A sink as a receiver of the delivery engine: its changes are taken up from the visits, in blocks."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from recrawl import plugins
from recrawl.errors import RepositoryBusy
from recrawl.model import Outcome
from recrawl.record import listings
from recrawl.record.lock import Lock
from recrawl.record.rows import OutboxRow, OutboxState, Row
from recrawl.repository.delivery.engine import AT_ONCE, CallReport, OutboxEntry, SendResult, described, first_of_pages
from recrawl.repository.delivery.law import Health, deliver_apart
from recrawl.repository.outgoing import NotSent
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import at
from recrawl.repository.sinks.events import event_of, within, without_text
from recrawl.repository.sinks.kinds import make_sink, max_body
from recrawl.repository.sinks.protocol import MAX_CHARACTERS, Event, Sink
from recrawl.settings import SinkRule

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

_SOURCE = "sinks:source"
_MOST_ENTRIES = 10_000
"""A sink with so many changes that wait or are parked takes up no more: it refuses too much."""


class SinkReceiver:
    """Delivers the changes of a repository to a sink."""

    keeps_sent = False

    def __init__(self, rule: SinkRule, repo: Repository) -> None:
        self.rule = rule
        self.name = entries_of(rule.name)
        self.target = self.name
        self._repo = repo
        self._folder = repo.folder
        self._open = partial(type(repo), repo.folder, clock=repo.now)
        self._source = source_of(repo)

    def claim(self, held: ExitStack) -> None:
        """One process delivers to a sink, whatever the machine."""
        held.enter_context(Lock(self._folder / f"sink-{self.rule.name}.lock", f"sink run {self.rule.name}", _no_wait))
        outbox = self._repo.storage.store.outbox
        if not outbox.claim(self.name):
            raise RepositoryBusy(f"another machine delivers to the sink '{self.rule.name}': wait for it to end")
        held.callback(outbox.unclaim, self.name)

    def take_up(self, repo: Reader) -> None:
        """Put the next changes into the outbox, unless enough wait there."""
        outbox, now = repo.storage.store.outbox, repo.now()
        if len(outbox.first_of_pages(self.name, now, AT_ONCE)) >= AT_ONCE:
            return
        if sum(number for name, _, number in outbox.counts() if name == self.name) >= _MOST_ENTRIES:
            return
        last = taken_up_to(repo, self.rule.name)
        newest = repo.storage.store.next_id("visits") - 1
        if last == newest:
            return
        rows = list(islice(listings.deliveries_after(repo.opened, last, site=self.rule.site), AT_ONCE))
        with repo.storage.store.transaction():
            for row in rows:
                outbox.add(_entry(self.name, row, now))
            repo.storage.store.meta.set(cursor(self.rule.name), rows[-1]["id"] if rows else newest)

    def choose(self, repo: Reader, now: float, health: Health) -> list[OutboxEntry]:
        """The first change of each page."""
        return first_of_pages(repo, self.name, now, health)

    def call(self, entries: Sequence[OutboxEntry], report: CallReport, over: Callable[[], bool]) -> None:
        """Send changes; those that have failed before each in a batch of its own."""
        with self._open() as repo, contextlib.closing(make_sink(self.rule, repo)) as sink:
            limit = max_body(self.rule)
            report.newest_only = getattr(sink, "newest_only", False)
            batch: list[_Change] = []
            characters = 0
            for entry in entries:
                if over():
                    return
                report.under_way = [entry]
                change = self._change(repo, entry, limit)
                if change is None:
                    report.results.append(SendResult(entry, None))
                    continue
                if entry.tries and not self._send(sink, [change], report):
                    return
                if not entry.tries:
                    batch.append(change)
                    characters += len(change.event.text)
                if len(batch) >= sink.max_events or characters >= MAX_CHARACTERS:
                    if not self._send(sink, batch, report):
                        return
                    batch, characters = [], 0
            if batch and not over():
                self._send(sink, batch, report)

    def tell(self, repo: Reader, problem: str) -> None:
        """Store the problem, if it is another one."""
        if self.told(repo) != problem:
            repo.storage.store.meta.set(problem_of(self.rule.name), problem)

    def told(self, repo: Reader) -> str:
        """The problem that is stored."""
        return str(repo.recall(problem_of(self.rule.name)) or "")

    def _change(self, repo: Reader, entry: OutboxEntry, limit: float) -> _Change | None:
        """The change of an entry; None if its visit is no longer there."""
        store = repo.storage.store
        if entry.body.get("erased"):
            body = entry.body
            event = Event(body["visit"], self._source, body["url"], body["site"], at(body["at"]), body["outcome"])
            return _Change(entry, event)
        row = store.listings.delivery(entry.body["visit"])
        if row is None:
            return None
        skipped = store.outbox.first_skipped(self.name, entry.page, entry.id)
        base = None if skipped is None else store.listings.delivery(json.loads(skipped["body"])["visit"])
        return _Change(entry, within(event_of(repo, self._source, row, base), limit))

    def _send(self, sink: Sink, changes: Sequence[_Change], report: CallReport) -> bool:
        """Send a batch, and add what came of it; whether to go on."""

        def deliver(batch: Sequence[_Change]) -> Mapping[int, NotSent]:
            numbers = {change.event.id: change.id for change in batch}
            try:
                failed = sink.deliver([change.event for change in batch]) or {}
            except (*plugins.ERRORS, MemoryError) as error:
                raise NotSent(described(error), permanent=len(batch) > 1) from error
            return {numbers[number]: error for number, error in failed.items()}

        report.under_way = [change.entry for change in changes]
        try:
            for change, error in deliver_apart(changes, deliver, _Change.shortened):
                report.results.append(SendResult(change.entry, error))
                if error is not None and not error.permanent:
                    return False
        except NotSent as error:
            report.problem = error
            return False
        report.under_way = ()
        return True


class _Change:
    """An entry with its change."""

    def __init__(self, entry: OutboxEntry, event: Event) -> None:
        self.entry = entry
        self.event = event
        self.id = entry.id

    def shortened(self) -> _Change | None:
        """The same without the text."""
        event = without_text(self.event)
        return None if event is None else _Change(self.entry, event)


def entries_of(sink: str) -> str:
    """The name under which the outbox has the changes for a sink."""
    return f"sink:{sink}"


def cursor(sink: str) -> str:
    """The name of the value that is the last visit whose change is in the outbox, or was delivered."""
    return f"sink:{sink}:delivered"


def problem_of(sink: str) -> str:
    """The name of the value that says why the last delivery failed."""
    return f"sink:{sink}:problem"


def taken_up_to(repo: Reader, sink: str) -> int:
    """The last visit whose change is in the outbox, or was delivered; -1 for none."""
    found = repo.recall(cursor(sink))
    return -1 if found is None else int(found)


def source_of(repo: Repository) -> str:
    """The repository as a URN, made when it is needed first."""
    source = str(repo.recall(_SOURCE) or "")
    if not source:
        source = uuid.uuid4().urn
        repo.remember(_SOURCE, source)
    return source


def _entry(name: str, row: Row, now: float) -> OutboxRow:
    outcome = Outcome(row["outcome"]).name.lower()
    body = {"page": row["page"], "visit": row["id"], "url": row["url"], "outcome": outcome}
    return OutboxRow(
        key=f"{name}:{row['id']}",
        alert=name,
        page=row["page"],
        state=OutboxState.WAITING,
        remaining=0,
        before=None,
        due=0.0,
        created=now,
        body=json.dumps(body),
    )


def _no_wait(_: str) -> bool:
    return False
