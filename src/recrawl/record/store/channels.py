"""Protocols of the tables behind hints, pushes and deliveries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from recrawl.columns import Ints
from recrawl.record.rows import Columns, FeedRow, OutboxRow, OutboxState, PushRow, Row


class SourceReport(NamedTuple):
    """A site's source of hints with the site's origin, for reports."""

    site: int
    origin: str
    kind: str
    seen: float
    signals: int
    ignored: int
    problem: str


class HintTable(Protocol):
    """Hints (the last claim of each source about each page), their sources and feeds."""

    def columns(self, kinds: Sequence[str], pages: Iterable[int] | None = None) -> Columns:
        """`page`, `kind`, `seen`, `value`, `signals`, `read`, `last` of the hints about these pages, or about all.

        `kind` is the position in `kinds`, -1 for any other; `read` is when the source was last read completely, `last`
        is the page's last visit or -inf.
        """

    def claims(self, kind: str, pages: Iterable[int]) -> Columns:
        """`page`, `last` (last visit or -inf), `before` (the last claim of this kind, or -1) of pages."""

    def values(self, kind: str, pages: Iterable[int]) -> dict[int, float]:
        """The last claim of this kind about each page that has one."""

    def pushed_pages(self, now: float = math.inf) -> Ints:
        """Pages that a push named since their last visit, or whose last visit was after `now`, by a wrong clock."""

    def sources(self) -> list[SourceReport]:
        """All sources, by site and kind."""

    def feeds(self, site: int) -> list[FeedRow]:
        """The known feeds of a site."""


class PushTable(Protocol):
    """Pushes: received and not yet processed, waiting for a visit, and how often each sender was right.

    Call the methods that write inside `Store.transaction`.
    """

    def put(self, row: PushRow) -> bool:
        """Store a received push; False if it is stored already."""

    def waiting(self) -> int:
        """The number of received pushes that no cycle has processed."""

    def oldest(self, limit: int) -> list[PushRow]:
        """Received pushes, oldest first."""

    def remove(self, rows: Iterable[PushRow]) -> None:
        """Delete processed pushes."""

    def start_hour(self, hour: int) -> None:
        """Forget the senders' counts of any other hour."""

    def count_other_senders(self, source: str) -> int:
        """The number of other senders in this hour."""

    def taken_in_hour(self, source: str, hour: int) -> int:
        """The number of URLs accepted from a sender in this hour."""

    def add_to_hour(self, source: str, taken: int, refused: int) -> None:
        """Add to the counts of a sender."""

    def count_awaited(self) -> int:
        """The number of pushes that wait for a visit to prove them right or wrong."""

    def await_visit(self, page: int, source: str, at: float) -> bool:
        """Record that a source claims a change; False if such a claim already waits for a visit."""

    def awaited(self, within: float) -> list[tuple[int, str, int | None]]:
        """Page, source, outcome of the first successful visit within these seconds after the claim, or None."""

    def remove_awaited(self, claims: Iterable[tuple[int, str]]) -> None:
        """Delete claims (page, source) that a visit has settled."""

    def remove_awaited_before(self, at: float) -> None:
        """Delete claims that are older than this time."""

    def count_claim(self, source: str, kind: str, at: float) -> None:
        """Count one claim of a source, which is trusted when it is new."""

    def keep_sources(self, limit: int) -> None:
        """Delete all but this many sources; untrusted ones stay first, then the most recent."""

    def untrusted(self) -> set[str]:
        """Sources that are not preferred."""

    def sources(self) -> list[Row]:
        """All sources with their counts, untrusted first."""

    def score(self, source: str) -> tuple[float, float, bool] | None:
        """Weighted counts of right and wrong claims of a source, and whether it is trusted."""

    def set_score(self, source: str, right: float, wrong: float, *, trusted: bool) -> None:
        """Write the same."""


class OutboxTable(Protocol):
    """What is to be delivered, was, or is held back. A receiver is an alert rule or, as `sink:NAME`, a sink.

    Call the methods that write several rows inside `Store.transaction`.
    """

    def add(self, row: OutboxRow) -> bool:
        """Store an entry; False if its key is stored already."""

    def held_pages(self) -> set[int]:
        """Pages with an alert that is held back."""

    def held(self, page: int) -> list[tuple[int, int, bytes | None]]:
        """Number, remaining visits and digest before the change of the alerts that are held back for a page."""

    def revert(self, entry: int) -> None:
        """Mark a held alert as reverted: the page is as before."""

    def release(self, entry: int, due: float) -> None:
        """Let a held alert go, not before `due`."""

    def hold_on(self, entry: int) -> None:
        """Count one visit of the visits for which an alert is held back."""

    def claim(self, receiver: str) -> bool:
        """Become the only one who delivers to a receiver, among all machines; False if another one is."""

    def unclaim(self, receiver: str) -> None:
        """Let others deliver to it."""

    def first_of_pages(self, receiver: str, now: float, limit: int, *, fewest_tries: bool = False) -> list[Row]:
        """The first waiting entry of each page if it is due, oldest first, or those with the fewest tries first.

        `id`, `key`, `alert`, `page`, `parcel`, `tries`, `body`.
        """

    def due(self, receiver: str, now: float, limit: int, latest: float) -> list[Row]:
        """All waiting entries that are due, oldest first; none is due in more than `latest` seconds."""

    def hurry(self, receiver: str, now: float) -> None:
        """Make all waiting entries due."""

    def set_parcel(self, entries: Iterable[int], parcel: str) -> None:
        """Record which alerts are sent together."""

    def set_sent(self, entries: Iterable[int], at: float) -> None:
        """Record a delivery."""

    def set_failed(self, entry: int, state: OutboxState, tries: int, due: float, error: str) -> None:
        """Record a failed attempt."""

    def remove(self, entries: Collection[int]) -> None:
        """Delete entries that were delivered and that nobody reads again."""

    def remove_skipped(self, receiver: str, page: int, before: int, *, parked: bool) -> None:
        """Delete the entries of a page before this one that were dropped, and with `parked` those that are parked."""

    def first_skipped(self, receiver: str, page: int, before: int) -> Row | None:
        """The first entry of a page before this one that is parked or was dropped."""

    def remove_receiver(self, receiver: str) -> None:
        """Delete all entries of a receiver."""

    def drop_waiting(self, receivers: Collection[str]) -> None:
        """Drop the waiting alerts of all other rules than these."""

    def parked(self, receivers: Collection[str], limit: int, after: int = -1) -> list[Row]:
        """Parked entries with larger numbers, of these receivers or of all, oldest first."""

    def unpark(self, entries: Collection[int], state: OutboxState, due: float) -> int:
        """Give parked entries another state; returns how many were parked."""

    def next_due(self) -> float | None:
        """When the next entry is to be sent."""

    def counts(self) -> list[tuple[str, int, int]]:
        """Receiver, state and number of the entries that wait or are parked."""

    def oldest_waiting(self, receiver: str) -> Row | None:
        """The oldest entry that waits."""

    def last_error(self, receiver: str) -> str:
        """Why the oldest entry that failed and is to be sent again has failed; empty without one."""

    def remove_done(self, created_before: float) -> None:
        """Delete old alerts that do not wait."""

    def newest(self, limit: int, before: int) -> list[Row]:
        """The newest alerts with numbers below `before`, newest first."""


class SubscriptionTable(Protocol):
    """WebSub subscriptions."""

    def get(self, name: str) -> Row | None:
        """A subscription by the name in its callback URL."""

    def of_topic(self, topic: str) -> Row | None:
        """The subscription to a topic."""

    def public(self) -> list[Row]:
        """All subscriptions without their secrets, by topic."""

    def due(self, now: float, longest: float = math.inf) -> list[Row]:
        """Subscriptions to be renewed now, and those to be renewed later than after the `longest` wait."""

    def put(self, row: Row) -> None:
        """Write a subscription; columns that are not given get their initial values."""

    def remove(self, name: str) -> None:
        """Delete a subscription."""

    def confirm(self, name: str, expires: float, due: float) -> None:
        """The hub confirmed the subscription."""

    def deny(self, name: str) -> None:
        """The hub denied the subscription."""

    def set_first_due(self, name: str, due: float) -> None:
        """Set the time of the first renewal unless the hub has confirmed already."""

    def set_attempt(self, name: str, due: float, tries: int, error: str) -> None:
        """Record an attempt to renew and the time of the next one."""

    def set_error(self, name: str, error: str) -> None:
        """Record why a renewal failed."""


class KeyProofTable(Protocol):
    """IndexNow keys that were verified at their hosts."""

    def get(self, host: str, key: str, location: str) -> Row | None:
        """The result of the last verification."""

    def put(self, row: Row) -> None:
        """Write a result."""

    def remove_expired(self, now: float, before: float) -> None:
        """Delete results that have expired and are older than `before`."""

    def count_since(self, host: str, since: float) -> int:
        """The number of verifications at a host since a time."""
