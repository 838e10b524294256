"""Protocols of summaries and of queries for people. Rows are dicts; most are shown or sent as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from recrawl.record.rows import NO_LIMIT, NO_NUMBER, Row


class StreamPlace(NamedTuple):
    """A place in the stream of updates: before this visit."""

    at: float
    id: int


class UpdateFilter(NamedTuple):
    """Conditions on updates; None and False impose none."""

    site: int | None = None
    page: int | None = None
    path: str | None = None
    """A part of the URL."""
    divergence: float | None = None
    """The least share of words that a change must affect."""
    outcome: int | None = None
    significant: bool = False
    tag: str | None = None
    """Of the page or of its site."""
    unread: bool = False


class SummaryTable(Protocol):
    """Sums that are written when a crawl or a cycle ends, so that no report scans pages or visits."""

    def write(self, cycle: Row, by_site: Sequence[Row], sites: Sequence[Row] | None = None) -> None:
        """Write the sums of one cycle in one transaction; `sites` replaces the current figures of all sites."""

    def write_sites(self, sites: Sequence[Row]) -> None:
        """Replace the current figures of all sites."""

    def site_rows(self) -> list[Row]:
        """The current figures of all sites, by number."""

    def latest(self) -> Row | None:
        """The newest summary with an estimated freshness; also `budget`, `took` (seconds), `at` (the cycle's end)."""

    def latest_cycle(self) -> Row | None:
        """The newest cycle with an estimated freshness, as in `cycles`."""

    def cycles(self, before: int, limit: int) -> list[Row]:
        """Crawls and cycles with numbers below `before`, newest first, with their sums where there are any."""

    def refreshes(self, limit: int, since: float, until: float) -> list[Row]:
        """The sums of the newest cycles (no crawls) begun in this time, newest first; also `policy`, `started`."""

    def busiest_sites(self, limit: int) -> list[Row]:
        """`id`, `origin`, `visits`, `found`, `received`, `share` of the sites that the newest cycle visited most."""

    def totals(self) -> Row:
        """Sums over all sites: `changes` and `failing` pages."""

    def visit_totals(self) -> Row:
        """Sums over all cycles: `received`, `not_modified`, `frame_only`, `seconds`, and one per outcome."""

    def failures(self, cycles: int) -> list[dict[str, int]]:
        """How often each failure occurred in each of the newest cycles."""

    def sites(self, after: int, limit: int) -> list[Row]:
        """Sites with numbers above `after`, by number, each with its summary."""

    def site(self, site: int) -> Row | None:
        """One site with its summary and the counts of right and wrong validators."""

    def site_cycles(self, site: int, limit: int) -> list[Row]:
        """The sums of a site in the newest cycles, newest first."""

    def recent(self, cycles: int, site: int | None) -> tuple[int, list[Row]]:
        """The visits of the newest cycles; sites (one or all, by origin) with their summary and their part of these."""


class Reports(Protocol):
    """Queries for people over pages and visits."""

    def archived(self, since: Sequence[float]) -> list[Row]:
        """`site` (its origin; none for page requisites), `kind`, `records`, `bytes`, and `later`, of archive records.

        `later` are the bytes of those recorded at each of these times or after it. Records that are no version,
        requisite or screenshot are left out: they are known by the length of the files alone.
        """

    def recent(self, since: float) -> Row:
        """`visits` and `pages`: of all, the shares recorded since a time; `first`: when the first crawl began."""

    def cycles(self, limit: int) -> list[Row]:
        """The newest cycles with counts of their outcomes."""

    def spent(self, cycle: int, first_visit: int, site: int = -1) -> Row:
        """What a cycle spent: `visits`, `of_site` (visits to one site), `received`, `lowest` score visited."""

    def spent_by_site(self, cycle: int, first_visit: int, limit: int) -> list[Row]:
        """What a cycle spent on each site, most visits first."""

    def pages(self, *, site: str, state: str, limit: int, offset: int = 0) -> list[Row]:
        """Pages, oldest first; of a site (an origin) and in a state unless empty."""

    def pages_after(self, page: int, window: int, state: str, limit: int) -> list[Row]:
        """Pages among the `window` numbers after this one, by number; in a state unless empty."""

    def pages_of_site(self, site: int, after: tuple[int, int], state: str, limit: int) -> list[Row]:
        """Pages of a site after this (state, page), by state and number; in a state unless empty."""

    def visits_of_page(self, page: int, limit: int = NO_LIMIT, before: int = NO_NUMBER) -> list[Row]:
        """The visits of a page numbered below `before`, newest first, each with its policy, kind of run and reason."""

    def visits_after(self, visit: int, limit: int) -> list[Row]:
        """The visits after this one, in order, each with the page's URL and site and the version's title."""

    def updates(self, *, since: float, site: str, limit: int) -> list[Row]:
        """Updates (changed, new, gone) since a time, newest first; of a site (an origin) unless empty."""

    def updates_before(self, place: StreamPlace, since: float, wanted: UpdateFilter, limit: int) -> list[Row]:
        """Updates before a place in the stream that pass the filter, newest first."""

    def place_before(self, place: StreamPlace, updates: int) -> StreamPlace | None:
        """The place this many updates before another, None at the beginning."""


class Listings(Protocol):
    """Blocks of tables that grow; `recrawl.record.listings` iterates over them. `site` is an origin, empty for all."""

    def page(self, key: int) -> Row | None:
        """The page with this URL key."""

    def pages_after(self, page: int, site: str, state: int | None, limit: int) -> list[Row]:
        """Pages with larger numbers, by number; in one state unless None."""

    def changes_before(
        self, place: StreamPlace, since: float, site: str, limit: int, *, tag: str = "", unread: bool = False
    ) -> list[Row]:
        """Updates since a time and before a place in the stream, newest first; with a tag, or unread ones."""

    def changes_after(self, visit: int, site: str, limit: int) -> list[Row]:
        """Updates that were recorded after a visit, in order."""

    def deliveries_after(self, visit: int, site: str, limit: int) -> list[Row]:
        """The same with `page` and `version`."""

    def delivery(self, visit: int) -> Row | None:
        """The update that a visit found, with `page` and `version`."""

    def deliveries(self, visit: int, site: str) -> int:
        """The number of updates that were recorded after a visit."""

    def visits_after(self, visit: int, since: float, site: str, limit: int) -> list[Row]:
        """Visits that were recorded after this one and made since a time, in order."""

    def visits_before(self, page: int, visit: int, limit: int) -> list[Row]:
        """Visits of a page before this one, newest first."""

    def versions_after(self, version: int, since: float, site: str, limit: int) -> list[Row]:
        """Versions with larger numbers that were downloaded since a time, by number; with `url` and `number`."""
