"""The sinks of a repository: added, removed, listed, delivered to."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.errors import NotKnown, RepositoryBusy, UsageError
from recrawl.record.rows import Row
from recrawl.repository.delivery.engine import Counts, Engine
from recrawl.repository.delivery.parked import numbers_by_receiver
from recrawl.repository.results.words import count
from recrawl.repository.sinks.kinds import check_sink
from recrawl.repository.sinks.receiver import SinkReceiver, cursor, entries_of, problem_of, taken_up_to
from recrawl.settings import SinkRule, changing, write_sinks

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader
    from recrawl.repository.repository import Repository

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_POLL = 0.2
_LAST_SECONDS = 15.0
"""How long to wait for requests under way after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class SinkState:
    """A sink and how far it has come."""

    rule: SinkRule
    delivered: int
    """The last change up to which all were delivered, parked or dropped; -1 for none."""
    waiting: int
    """Changes that are not delivered yet."""
    parked: int
    """Changes that the sink refused, or that failed too often: try them again, or drop them."""
    problem: str
    """Why the last delivery failed, or the oldest of those that are to be tried again."""

    def as_dict(self) -> Row:
        """As `recrawl sink list --json` prints it; of the secret, its reference."""
        rule = self.rule
        own = {"name": rule.name, "kind": rule.kind, "target": rule.target, "site": rule.site, "secret": rule.secret}
        numbers = {"delivered": self.delivered, "waiting": self.waiting, "parked": self.parked}
        return own | {"max_body": rule.max_body} | numbers | {"problem": self.problem}


def add(repo: Repository, rule: SinkRule, *, from_now: bool) -> None:
    """Add a sink; it starts with the first change that is stored, or with the next one."""
    if not _NAME.fullmatch(rule.name):
        raise UsageError(f"invalid name '{rule.name}' of a sink; use up to 40 of a-z, 0-9 and -")
    with changing(repo.settings_file):
        settings = repo.settings
        if any(rule.name == known.name for known in settings.sinks):
            raise UsageError(f"there is a sink '{rule.name}' already; remove it first, or choose another name")
        check_sink(rule)
        newest = repo.storage.store.next_id("visits") - 1
        repo.storage.store.outbox.remove_receiver(entries_of(rule.name))
        repo.remember(cursor(rule.name), newest if from_now else -1)
        repo.remember(problem_of(rule.name), "")
        write_sinks(repo.settings_file, (*settings.sinks, rule))


def remove(repo: Repository, name: str) -> None:
    """Remove a sink; what was delivered stays where it is."""
    with changing(repo.settings_file):
        sinks = repo.settings.sinks
        rule_of(sinks, name)
        write_sinks(repo.settings_file, tuple(rule for rule in sinks if rule.name != name))
        repo.storage.store.outbox.remove_receiver(entries_of(name))


def rule_of(sinks: Iterable[SinkRule], name: str) -> SinkRule:
    """The sink with this name."""
    for rule in sinks:
        if rule.name == name:
            return rule
    raise NotKnown(f"there is no sink '{name}'; 'recrawl sink list' lists all")


def states(repo: Reader) -> list[SinkState]:
    """All sinks."""
    numbers = {row["receiver"]: row for row in numbers_by_receiver(repo) if row["kind"] == "sink"}
    return [_state(repo, rule, numbers[rule.name]) for rule in repo.settings.sinks]


def _state(repo: Reader, rule: SinkRule, numbers: Row) -> SinkState:
    store, last = repo.storage.store, taken_up_to(repo, rule.name)
    waiting = store.listings.deliveries(last, rule.site) + numbers["waiting"]
    oldest = store.outbox.oldest_waiting(entries_of(rule.name))
    done = last if oldest is None else max(-1, store.visits.before(json.loads(oldest["body"])["visit"], 1))
    problem = str(repo.recall(problem_of(rule.name)) or "") or store.outbox.last_error(entries_of(rule.name))
    return SinkState(rule, done, waiting, numbers["parked"], problem)


def receivers(repo: Repository, rules: Iterable[SinkRule]) -> list[SinkReceiver]:
    """Sinks as the engine takes them."""
    return [SinkReceiver(rule, repo) for rule in rules]


def run(repo: Repository, names: Iterable[str], stop: Callable[[], bool], *, at_once: bool) -> dict[str, Counts]:
    """Deliver what is due for sinks, or with `at_once` what waits, to all of them side by side."""
    rules = [rule_of(repo.settings.sinks, name) for name in names]
    found, wake = receivers(repo, rules), threading.Event()
    engine = Engine(repo.now, wake.set)
    for receiver in found if at_once else ():
        repo.storage.store.outbox.hurry(receiver.name, repo.now())
    while not stop() and (engine.start(repo, found) or engine.busy):
        wake.wait(_POLL)
        wake.clear()
        engine.settle(repo, 0.0)
    engine.end()
    engine.settle(repo, _LAST_SECONDS)
    return {rule.name: engine.counts.get(entries_of(rule.name), Counts()) for rule in rules}


def run_all(repo: Repository, notify: Callable[[str], None], stop: Callable[[], bool]) -> None:
    """Deliver what is due to every sink, after a cycle; a failure is told and concerns its own sink alone."""
    for name, counts in run(repo, [rule.name for rule in repo.settings.sinks], stop, at_once=False).items():
        if counts.error is not None and not isinstance(counts.error, RepositoryBusy):  # another process delivers to it
            notify(f"sink {name}: {failure(name, counts)}")


def failure(name: str, counts: Counts) -> str:
    """What has failed, and what becomes of it."""
    parked = f"; {count(counts.parked, 'change')} parked, see 'recrawl sink parked {name}'" if counts.parked else ""
    return f"{counts.error}{parked or '; it is tried again later'}"
