"""The engine of delivery: claims receivers, sends what is due to each in a thread of its own, records what came of it.

The engine's thread alone writes to the outbox. What a sending thread reports is recorded before the same receiver gets
more; what is under way when the process ends is sent again, under the same number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from recrawl import plugins
from recrawl.errors import RecrawlError, RepositoryBusy
from recrawl.record.rows import OutboxState, Row
from recrawl.repository.delivery.law import LAST_PAUSE, Health, after_call, verdict
from recrawl.repository.delivery.senders import Senders
from recrawl.repository.opening import steady_timer
from recrawl.repository.outgoing import NotSent
from recrawl.repository.reader import Reader

AT_ONCE = 100
"""Entries that a thread gets at most."""
_CALL_SECONDS = 10.0
"""How long a thread goes on sending to one receiver before it reports what it has sent."""
_MAX_ERROR = 500


class OutboxEntry(NamedTuple):
    """An entry of the outbox."""

    id: int
    key: str
    """The same for every attempt, so that receivers can tell repetitions."""
    page: int
    parcel: str
    tries: int
    body: dict[str, Any]


class SendResult(NamedTuple):
    """What came of sending an entry."""

    entry: OutboxEntry
    error: NotSent | None


@dataclass(slots=True)
class CallReport:
    """What a call to a receiver came to."""

    results: list[SendResult] = field(default_factory=list)
    under_way: Sequence[OutboxEntry] = ()
    """What is being sent: to blame if the call raises."""
    problem: RecrawlError | None = None
    """Why the call ended before all entries had a result: the receiver fails, or cannot be reached as it is set up."""
    newest_only: bool = False
    """Whether the receiver keeps the newest state of a page alone, so that parked changes before it mean nothing."""


class Receiver(Protocol):
    """Something that gets entries of the outbox: a sink or an alert rule."""

    name: str
    """Names its entries."""
    target: str
    """One call at a time is made for each target."""
    keeps_sent: bool
    """Whether entries that were sent stay in the outbox, to be shown."""

    def claim(self, held: ExitStack) -> None:
        """Become the only one who delivers to it, until `held` is closed; raises `RepositoryBusy`."""

    def take_up(self, repo: Reader) -> None:
        """Put what is to be delivered and not in the outbox yet into it."""

    def choose(self, repo: Reader, now: float, health: Health) -> list[OutboxEntry]:
        """The entries to be sent now; at most one of each page, unless they are sent as one."""

    def call(self, entries: Sequence[OutboxEntry], report: CallReport, over: Callable[[], bool]) -> None:
        """Send entries, in a thread of its own: add their results to the report; end early when it is over."""

    def tell(self, repo: Reader, problem: str) -> None:
        """Store why the last call failed; empty if it did not."""

    def told(self, repo: Reader) -> str:
        """What was stored last."""


@dataclass(slots=True)
class Counts:
    """What an engine has delivered to a receiver."""

    delivered: int = 0
    parked: int = 0
    error: RecrawlError | None = None
    """The last failure."""


class Engine:
    """Delivers to receivers, round by round."""

    def __init__(self, clock: Callable[[], float], on_result: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._timer = steady_timer()
        self._senders: Senders[bool] = Senders(on_result)
        self._calls: dict[str, tuple[Receiver, ExitStack, CallReport]] = {}
        """By target."""
        self._health: dict[str, Health] = {}
        self._turns: Counter[str] = Counter()
        self._ending = False
        self.counts: dict[str, Counts] = {}

    @property
    def busy(self) -> bool:
        """Whether a call is under way or was not recorded yet."""
        return bool(self._senders.busy)

    def end(self) -> None:
        """Let calls that are under way end after the request that they make now."""
        self._ending = True

    def start(self, repo: Reader, receivers: Iterable[Receiver]) -> bool:
        """Start sending what is due to receivers that are free; whether there was any."""
        started = False
        for receiver in sorted(receivers, key=lambda one: self._turns[one.name]):
            if self._ending or not self._senders.free(receiver.target):
                continue
            with ExitStack() as held:
                try:
                    receiver.claim(held)
                except RepositoryBusy as error:
                    self._count(receiver).error = error
                    continue
                health, now = self._health_of(repo, receiver), self._clock()
                if now < health.until <= now + LAST_PAUSE:  # a later time is of a clock that was wrong
                    continue
                receiver.take_up(repo)
                if entries := receiver.choose(repo, now, health):
                    started = True
                    self._turns[receiver.name] += 1
                    report = CallReport()
                    self._calls[receiver.target] = receiver, held.pop_all(), report
                    self._senders.start(receiver.target, partial(self._call, receiver, entries, report))
        return started

    def settle(self, repo: Reader, seconds: float) -> None:
        """Record the calls that have ended; wait up to `seconds` for those under way."""
        for target, ended in self._senders.collect(seconds):
            receiver, held, report = self._calls.pop(target)
            if not ended:  # whatever was raised, in the code of a plug-in perhaps: the thread has printed it
                report.problem = NotSent("it failed in a way that nobody expected: see the error output")
            with held:
                self._record(repo, receiver, report)

    def _call(self, receiver: Receiver, entries: Sequence[OutboxEntry], report: CallReport) -> bool:
        end = self._timer() + _CALL_SECONDS
        try:
            receiver.call(entries, report, lambda: self._ending or self._timer() > end)
        except RecrawlError as error:
            report.problem = error
        except (*plugins.ERRORS, MemoryError) as error:
            report.problem = NotSent(described(error))
        else:
            report.under_way = ()
        return True

    def _record(self, repo: Reader, receiver: Receiver, report: CallReport) -> None:
        table, counts, now = repo.storage.store.outbox, self._count(receiver), self._clock()
        health = self._health_of(repo, receiver)
        last: NotSent | None = None
        if report.problem is not None and len(report.under_way) == 1:
            report.results.append(SendResult(report.under_way[0], _as_not_sent(report.problem)))
            report.problem = None
        with repo.storage.store.transaction():
            for entry, error in report.results:
                if error is None or error is not last:  # a call for several entries has failed once
                    health = after_call(health, error, now)
                last = error
                if error is None:
                    counts.delivered += 1
                else:
                    counts.error = error
                    state, tries, due = verdict(error, entry.tries, now)
                    counts.parked += state == OutboxState.PARKED
                    table.set_failed(entry.id, state, tries, due, str(error)[:_MAX_ERROR])
            sent = [entry for entry, error in report.results if error is None]
            if receiver.keeps_sent:
                table.set_sent([entry.id for entry in sent], now)
            else:
                table.remove([entry.id for entry in sent])
            for entry in sent if not receiver.keeps_sent else ():
                table.remove_skipped(receiver.name, entry.page, entry.id, parked=report.newest_only)
        if report.problem is not None:
            counts.error = report.problem
            health = after_call(health, _as_not_sent(report.problem), now)
        errors = [str(error) for error in (*(error for _, error in report.results), report.problem) if error]
        receiver.tell(repo, errors[-1] if errors else "")
        self._health[receiver.target] = health

    def _health_of(self, repo: Reader, receiver: Receiver) -> Health:
        """What is known of a receiver; one that failed at the end of another run is in doubt."""
        known = self._health.get(receiver.target)
        return Health(failures=bool(receiver.told(repo))) if known is None else known

    def _count(self, receiver: Receiver) -> Counts:
        return self.counts.setdefault(receiver.name, Counts())


def described(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _as_not_sent(error: RecrawlError) -> NotSent:
    return error if isinstance(error, NotSent) else NotSent(str(error))


def entry_of(row: Row) -> OutboxEntry:
    """An entry from its row."""
    return OutboxEntry(row["id"], row["key"], row["page"], row["parcel"], row["tries"], json.loads(row["body"]))


def first_of_pages(repo: Reader, name: str, now: float, health: Health) -> list[OutboxEntry]:
    """The oldest entry of each page if it is due; of a receiver in doubt, one that was tried least."""
    limit = 1 if health.doubtful else AT_ONCE
    rows = repo.storage.store.outbox.first_of_pages(name, now, limit, fewest_tries=health.doubtful)
    return [entry_of(row) for row in rows]
