"""What is parked: entries that a receiver refused or that failed too often. Somebody tries them again or drops them."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from recrawl.errors import NotKnown
from recrawl.record.rows import OutboxState, Row
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import at, iso
from recrawl.repository.results.words import count

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

_SINK = "sink:"


@dataclass(frozen=True, slots=True)
class Parked:
    """A change that was not delivered and is not tried again by itself."""

    number: int
    receiver: str
    """The name of the sink or alert rule."""
    kind: str
    """sink or alert."""
    page: int
    url: str
    outcome: str
    """new, changed or gone."""
    tries: int
    since: datetime
    """When it was found, or taken up for the sink."""
    error: str

    def as_dict(self) -> Row:
        """As `recrawl sink parked --json` prints it."""
        return asdict(self) | {"since": iso(self.since)}


def parked(repo: Reader, name: str = "", *, limit: int = 1000, after: int = -1) -> list[Parked]:
    """Parked changes with larger numbers, oldest first; of the sink and the alert rule of a name, or of all."""
    rows = repo.storage.store.outbox.parked(_receivers(repo, name), limit, after)
    return [_parked(row) for row in rows]


def retry(repo: Repository, name: str = "", numbers: Collection[int] = ()) -> int:
    """Let parked changes be sent again: these, or all of a receiver, or all; returns how many."""
    return _unpark(repo, name, numbers, OutboxState.WAITING)


def drop(repo: Repository, name: str = "", numbers: Collection[int] = ()) -> int:
    """Drop parked changes: these, or all of a receiver, or all; returns how many."""
    return _unpark(repo, name, numbers, OutboxState.DROPPED)


def numbers_by_receiver(repo: Reader) -> list[Row]:
    """`kind` and `receiver` with the numbers of what is `waiting` and `parked`, of all sinks and alert rules."""
    settings = repo.settings
    names = [*(f"{_SINK}{rule.name}" for rule in settings.sinks), *(rule.name for rule in settings.alerts)]
    found = {name: {"waiting": 0, "parked": 0} for name in names}
    for name, state, number in repo.storage.store.outbox.counts():
        found.setdefault(name, {"waiting": 0, "parked": 0})[OutboxState(state).name.lower()] = number
    return [dict(zip(("kind", "receiver"), shown_name(name), strict=True)) | row for name, row in found.items()]


def parked_problems(repo: Reader) -> list[str]:
    """What is parked, a sentence for each receiver."""
    return [
        f"{count(row['parked'], 'change')} for the {row['kind']} '{row['receiver']}' could not be delivered and "
        f"{'is' if row['parked'] == 1 else 'are'} parked: see 'recrawl sink parked', or Settings, Deliveries."
        for row in numbers_by_receiver(repo)
        if row["parked"]
    ]


def shown_name(receiver: str) -> tuple[str, str]:
    """Kind and name of a receiver, as people know it.

    >>> shown_name("sink:search"), shown_name("news")
    (('sink', 'search'), ('alert', 'news'))
    """
    is_sink = receiver.startswith(_SINK)
    return ("sink", receiver.removeprefix(_SINK)) if is_sink else ("alert", receiver)


def _unpark(repo: Repository, name: str, numbers: Collection[int], state: OutboxState) -> int:
    outbox = repo.storage.store.outbox
    with repo.storage.store.transaction():
        there = {row["id"] for row in outbox.parked(_receivers(repo, name), 1 << 31)}
        missing = sorted(set(numbers) - there)
        if missing:
            raise NotKnown(f"no change with the number {missing[0]} is parked; 'recrawl sink parked' lists all")
        return outbox.unpark(sorted(numbers or there), state, repo.now())


def _receivers(repo: Reader, name: str) -> list[str]:
    """The receivers of a name."""
    if not name:
        return []
    settings = repo.settings
    sinks = [f"{_SINK}{rule.name}" for rule in settings.sinks if rule.name == name]
    alerts = [rule.name for rule in settings.alerts if rule.name == name]
    if not sinks and not alerts:
        raise NotKnown(f"there is no sink or alert rule '{name}'; 'recrawl sink list' lists the sinks")
    return [*sinks, *alerts]


def _parked(row: Row) -> Parked:
    body = json.loads(row["body"])
    kind, name = shown_name(row["alert"])
    return Parked(
        number=row["id"],
        receiver=name,
        kind=kind,
        page=row["page"],
        url=body["url"],
        outcome=body["outcome"],
        tries=row["tries"],
        since=at(row["created"]),
        error=row["error"],
    )
