"""Deliver the changes after a sink's cursor, batch by batch."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.errors import DamagedRecord, NotKnown, RecrawlError, RepositoryBusy, Unreadable, UsageError
from recrawl.model import Outcome
from recrawl.record import listings
from recrawl.record.lock import Lock
from recrawl.record.rows import Row, VersionRow
from recrawl.repository.results.values import at
from recrawl.repository.sinks.kinds import check_sink, make_sink
from recrawl.repository.sinks.protocol import MAX_CHARACTERS, Event
from recrawl.settings import SinkRule, write_sinks

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_SOURCE = "sinks:source"


@dataclass(frozen=True, slots=True)
class SinkState:
    """A sink and how far it has come."""

    rule: SinkRule
    delivered: int
    """The last change that the receiver has acknowledged; -1 for none."""
    waiting: int
    """Changes that are not delivered yet."""
    problem: str
    """Why the last delivery failed; empty if it did not."""

    def as_dict(self) -> Row:
        """As `recrawl sink list --json` prints it; of the secret, its reference."""
        rule = self.rule
        own = {"name": rule.name, "kind": rule.kind, "target": rule.target, "site": rule.site, "secret": rule.secret}
        return own | {"delivered": self.delivered, "waiting": self.waiting, "problem": self.problem}


def add(repo: Repository, rule: SinkRule, *, from_now: bool) -> None:
    """Add a sink; it starts with the first change that is stored, or with the next one."""
    if not _NAME.fullmatch(rule.name):
        raise UsageError(f"invalid name '{rule.name}' of a sink; use up to 40 of a-z, 0-9 and -")
    settings = repo.settings
    if any(rule.name == known.name for known in settings.sinks):
        raise UsageError(f"there is a sink '{rule.name}' already; remove it first, or choose another name")
    check_sink(rule)
    newest = repo.storage.store.next_id("visits") - 1
    repo.remember(_cursor(rule.name), newest if from_now else -1)
    repo.remember(_problem(rule.name), "")
    write_sinks(repo.settings_file, (*settings.sinks, rule))


def remove(repo: Repository, name: str) -> None:
    """Remove a sink; what was delivered stays where it is."""
    sinks = repo.settings.sinks
    rule_of(sinks, name)
    write_sinks(repo.settings_file, tuple(rule for rule in sinks if rule.name != name))


def rule_of(sinks: Iterable[SinkRule], name: str) -> SinkRule:
    """The sink with this name."""
    for rule in sinks:
        if rule.name == name:
            return rule
    raise NotKnown(f"there is no sink '{name}'; 'recrawl sink list' lists all")


def states(repo: Repository) -> list[SinkState]:
    """All sinks."""
    return [_state(repo, rule) for rule in repo.settings.sinks]


def _state(repo: Repository, rule: SinkRule) -> SinkState:
    delivered = int(repo.recall(_cursor(rule.name)) if repo.recall(_cursor(rule.name)) is not None else -1)
    waiting = repo.storage.store.listings.deliveries(delivered, rule.site)
    return SinkState(rule, delivered, waiting, str(repo.recall(_problem(rule.name)) or ""))


def run(repo: Repository, name: str, stop: Callable[[], bool] = lambda: False) -> int:
    """Deliver what waits for a sink; return the number of changes. A failure is stored and raised."""
    rule = rule_of(repo.settings.sinks, name)
    with Lock(repo.folder / f"sink-{name}.lock", f"sink run {name}", lambda _: False):
        sent = 0
        try:
            with contextlib.closing(make_sink(rule, repo)) as sink:
                for batch in _batches(_events(repo, rule), sink.max_events):
                    if stop():
                        break
                    sink.deliver(batch)
                    repo.remember(_cursor(name), batch[-1].id)
                    sent += len(batch)
        except RecrawlError as error:
            repo.remember(_problem(name), str(error))
            raise
        repo.remember(_problem(name), "")
        return sent


def run_all(repo: Repository, notify: Callable[[str], None], stop: Callable[[], bool]) -> None:
    """Deliver to every sink, after a cycle; a failure is told and concerns its own sink alone."""
    for rule in repo.settings.sinks:
        try:
            run(repo, rule.name, stop)
        except RepositoryBusy:
            continue  # another process delivers to it
        except RecrawlError as error:
            notify(f"sink {rule.name}: {error}; the next cycle tries again")


def _events(repo: Repository, rule: SinkRule) -> Iterator[Event]:
    """The changes after the sink's cursor, in the order of their recording."""
    source = str(repo.recall(_SOURCE) or "")
    if not source:
        source = uuid.uuid4().urn
        repo.remember(_SOURCE, source)
    after = _state(repo, rule).delivered
    for row in listings.deliveries_after(repo.opened, after, site=rule.site):
        yield _event(repo, source, row)


def _event(repo: Repository, source: str, row: Row) -> Event:
    store = repo.storage.store
    versions = store.versions.of_page(row["page"])
    gone = row["outcome"] == Outcome.GONE
    version = next((one for one in versions if one.id == row["version"]), None) if not gone else None
    earlier = [one for one in versions if (one.id < version.id if version else one.at <= row["at"])]
    before = earlier[-1] if earlier else None
    removals = store.visits.removals(row["page"]) if before is not None and version is not None else []
    return Event(
        id=row["id"],
        source=source,
        url=row["url"],
        site=row["site"],
        time=at(row["at"]),
        outcome=Outcome(row["outcome"]).name.lower(),
        title=(row["title"] or "") if version else "",
        text=_text(repo, row["url"], version) if version else "",
        digest=version.digest.hex() if version else "",
        divergence=row["divergence"],
        content=None if row["content"] is None else bool(row["content"]),
        version=version,
        before=before,
        returned=any(before.at < removed <= row["at"] for removed in removals) if before else False,
    )


def _text(repo: Repository, url: str, version: VersionRow) -> str:
    from recrawl.repository.results.pages import Version  # lazy: loads the parser

    try:
        return Version.of(repo, version, url, 0).text
    except (DamagedRecord, Unreadable):
        return ""


def _batches(events: Iterable[Event], most: int) -> Iterator[list[Event]]:
    batch: list[Event] = []
    characters = 0
    for event in events:
        batch.append(event)
        characters += len(event.text)
        if len(batch) >= most or characters >= MAX_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _cursor(name: str) -> str:
    return f"sink:{name}:delivered"


def _problem(name: str) -> str:
    return f"sink:{name}:problem"
