"""A rule tried on what is recorded before it is saved, and the history of the value that it watches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recrawl.discover.urls import key
from recrawl.errors import DamagedRecord, NotKnown, RecrawlError, Unreadable, UsageError
from recrawl.record.rows import VersionRow
from recrawl.repository.alerts.conditions import conditions, number_in
from recrawl.repository.alerts.elements import lines_of
from recrawl.repository.alerts.matching import update_of
from recrawl.repository.alerts.rules import applies, counts_for, matching_quote, payload
from recrawl.repository.lookup import key_of
from recrawl.repository.reader import Reader
from recrawl.repository.reports.changes import Filters, changes
from recrawl.repository.reports.sites import number_named
from recrawl.settings import Alert
from recrawl.times import iso

MOST = 300
"""Changes that a rule is tried on: the newest that its site, page and tag let through."""
_MOST_VALUES = 500


@dataclass(frozen=True, slots=True)
class TriedAlert:
    """An alert that a rule would have sent."""

    at: str
    url: str
    outcome: str
    title: str
    quote: str
    before: str
    after: str
    page: int
    version: int | None


@dataclass(frozen=True, slots=True)
class AlertTrial:
    """What a rule would have sent for the changes that are recorded."""

    looked: int
    """Changes that were looked at, newest first."""
    since: str | None
    """Time of the oldest of them."""
    alerts: tuple[TriedAlert, ...]
    """Newest first."""


@dataclass(frozen=True, slots=True)
class WatchedValue:
    """The value of chosen elements in a version."""

    at: str
    version: int
    text: str
    number: float | None


def try_rule(repo: Reader, rule: Alert, most: int = MOST) -> AlertTrial:
    """Apply a rule to the newest changes that are recorded, without sending anything."""
    page = None
    if rule.page:
        page = repo.storage.store.pages.number(key_of(repo.storage, rule.page)[0])
        if page is None:
            raise NotKnown(f"{rule.page} is not known here; 'recrawl pages' lists what is")
    where = Filters(site=number_named(repo, rule.site), page=page, tag=rule.tag)
    rows = changes(repo, where, limit=most).rows
    found = [body for row in rows if (body := _body(repo, rule, row)) is not None]
    return AlertTrial(
        len(rows),
        iso(rows[-1]["at"]) if rows else None,
        tuple(
            TriedAlert(
                at=str(iso(body["at"])),
                **{name: body[name] for name in ("url", "outcome", "title", "quote", "before", "after", "page")},
                version=body["version"],
            )
            for body in found
        ),
    )


def _body(repo: Reader, rule: Alert, row: dict[str, Any]) -> dict[str, Any] | None:
    """What a rule would have sent for a change; None if nothing."""
    update = update_of(repo, {**row, "version": -1 if row["version"] is None else row["version"]}, row["outcome"])
    try:
        if not applies(rule, update) or not counts_for(rule, update, repo):
            return None
        quote = matching_quote(rule, update, repo)
    except (RecrawlError, MemoryError):
        return None
    return None if quote is None else payload(rule, update, quote)


def watched_values(repo: Reader, url: str, selector: str, name: str = "") -> list[WatchedValue]:
    """Return the values of chosen elements of a page, one for each version in which they differ, oldest first."""
    number = repo.storage.store.pages.number(key(key_of(repo.storage, url)[1]))
    if number is None:
        raise NotKnown(f"{url} is not known here; 'recrawl pages' lists what is")
    if not (selector or name):
        raise UsageError("name the elements by a selector, or the words before the number")
    found: list[WatchedValue] = []
    for row, text in _texts(repo, number, selector):
        if found and found[-1].text == text:
            continue
        found.append(WatchedValue(str(iso(row.at)), row.id, text[:200], number_in(text, name)))
    return found


def _texts(repo: Reader, page: int, selector: str) -> Iterator[tuple[VersionRow, str]]:
    noise = repo.noise_filter("")
    for row in reversed(repo.storage.store.versions.newest_of_page(page, _MOST_VALUES)):
        try:
            yield row, " ".join(lines_of(repo, row, noise, selector))
        except (DamagedRecord, Unreadable, OSError, ValueError, KeyError):
            continue


def name_of_value(rule: Alert) -> str:
    """The words before the number that a rule watches."""
    return next((part.name for part in conditions(rule.when) if part.of_number), "")


def watches_value(rule: Alert) -> bool:
    """Whether a rule watches a value that has a history: chosen elements, or a number."""
    return bool(rule.selector) or any(part.of_number for part in conditions(rule.when))
