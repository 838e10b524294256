"""Protocols of pages, visits, versions and links. Writing goes through `Store.commit` unless stated otherwise.

Where a method takes page numbers, it accepts any number of them in one query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Int32s, Ints
from recrawl.record.rows import (
    NO_NUMBER,
    Columns,
    CycleRow,
    PageRow,
    Row,
    ScopeRow,
    ScreenshotRow,
    StoredPage,
    VersionRow,
)


class PageTable(Protocol):
    """Pages. A page's number is its row in the book; numbers have no gaps."""

    def get(self, page: int) -> PageRow:
        """One page."""

    def get_many(self, pages: Iterable[int]) -> dict[int, PageRow]:
        """Several pages, by number."""

    def number(self, key: int) -> int | None:
        """The number of the page with this URL key."""

    def find(self, key: int) -> Row | None:
        """The page with this URL key: all columns, the state by name."""

    def details(self, page: int) -> Row | None:
        """A page for people: all columns, the state by name, `origin`, `parent_url`, `target_url`, `title`."""

    def any(self) -> bool:
        """Whether the store holds a page."""

    def keys(self, first: int = 0) -> tuple[Ints, Int32s]:
        """URL key and number of every page from `first` on, by ascending key."""

    def keys_of(self, pages: Iterable[int]) -> dict[int, int]:
        """The URL keys of pages."""

    def urls(self, every: int = 1, first: int = 0) -> Iterator[str]:
        """The URLs of all pages from `first` on, or of every n-th, in the order of page numbers."""

    def urls_of(self, pages: Iterable[int]) -> dict[int, str]:
        """The URLs of pages, in the order of page numbers."""

    def visitable_urls(self) -> Iterator[str]:
        """The URLs of pages that a cycle may visit, in alphabetical order."""

    def visited(self) -> list[tuple[int, str]]:
        """Number and URL of pages with a visit, by URL."""

    def last_visits(self) -> dict[int, float]:
        """The last visit of each page that has one, by URL key."""

    def of_site(self, site: int, limit: int) -> list[tuple[int, str, int, int]]:
        """Number, URL, visits, changes of a site's visitable pages, oldest first."""

    def locations(self, pages: Iterable[int]) -> dict[int, tuple[str, int]]:
        """URL and directory number of pages."""

    def often_changed(self, limit: int) -> list[int]:
        """Pages that changed at nine visits out of ten, the most visited first."""

    def sites_of(self, pages: Iterable[int]) -> dict[int, int]:
        """The sites of pages."""

    def lanes_of(self, pages: Iterable[int]) -> dict[int, tuple[int, int]]:
        """The sites of pages, and their failed visits in a row."""

    def book_columns(self) -> Columns:
        """The columns of the book, in the order of page numbers; a missing time is -inf."""

    def copy_columns(self) -> Columns:
        """What groups of copies are made of, in the order of page numbers: `key`, `site`, `stored`, `digest` and
        `sketch` (bytes), `claim`, `same_as` (0 for a page that stands for itself), `listed`, `secure`, `length`,
        `last_visit`, `last_change`."""

    def has_copies(self) -> bool:
        """Whether any page is a copy of another."""

    def representatives(self) -> tuple[Ints, Ints]:
        """The copies, and the keys of the URLs of the pages that they are copies of."""

    def representative_of(self, pages: Iterable[int]) -> dict[int, int]:
        """Of those that are copies, the page that each is a copy of."""

    def copies_of(self, pages: Iterable[int]) -> dict[int, list[str]]:
        """The URLs of the copies of pages, shortest first."""

    def with_query(self) -> Iterator[tuple[str, int]]:
        """The URLs of live pages with a query, each with the key of the URL that stands for its group."""

    def groups_of(self, keys: Iterable[int]) -> dict[int, int]:
        """Of the live pages with these URL keys, the keys of the URLs that stand for their groups."""

    def groups(self, site: str, limit: int) -> list[Row]:
        """`url` and `copies` (their number) of pages that stand for groups, of a site (an origin) or of all if empty;
        the largest groups first."""

    def set_copies(self, same_as: Iterable[tuple[int, int]]) -> None:
        """Set of pages whose copies they are, by the key of its URL; 0 for one that no longer is; one transaction."""

    def unsketched(self, limit: int) -> list[tuple[int, int]]:
        """Live pages whose content was never looked at for copies, and their newest versions; the first ones."""

    def set_sketches(self, rows: Iterable[tuple[bytes, int, int]]) -> None:
        """Set sketch and claim of pages; one transaction."""

    def priors(self) -> Float32s:
        """The change priors of pages (see `compare.change_prior`), NaN where there is none; by page number."""

    def summary_columns(self, pages: Iterable[int] | None = None) -> Columns:
        """The columns that summaries need, of all pages or of some, in the order of their numbers; a missing time is
        -inf."""

    def touched(self) -> tuple[int, list[int]]:
        """The number of the list of pages that were changed without a visit, 0 if there is none, and its pages."""

    def begin_touched(self, number: int) -> None:
        """Begin a new list under a number above 0."""

    def last_modified(self, sites: Iterable[int] | None) -> NDArray[np.void]:
        """`id`, `site`, `folder` and `modified` (Last-Modified in seconds, 0 if unreadable) of the pages of these
        sites, or of all; by page number."""

    def never_downloaded(self) -> Columns:
        """`id`, `site`, `failures`, `last_try` of pages that were found but never downloaded, oldest first."""

    def barred(self) -> dict[int, list[tuple[int, str, bool]]]:
        """Pages that robots.txt excludes, by site: number, URL, whether a version is stored."""

    def listed(self, site: int) -> set[int]:
        """Pages that the site's sitemap listed when it was last read."""

    def moved_to(self, page: int) -> int:
        """The target of a page that has moved, -1 for any other page."""

    def moved_from(self, page: int) -> int:
        """The page whose redirect led to this one, -1 without one."""

    def moves(self, below: int) -> Iterator[tuple[int, int]]:
        """Page and target of all moves between pages with numbers below this."""

    def conditional(self) -> Flags:
        """One per page: whether a conditional request is possible (a version and a validator are stored)."""

    def count_by_state(self) -> Iterator[tuple[int, int, int]]:
        """Site, state, number of pages."""

    def scope_rows(self, sites: Iterable[int] | None = None) -> Iterator[ScopeRow]:
        """What decides on the scope, of every page of these sites; None for all sites."""

    def stored(self) -> list[tuple[int, str, int, int]]:
        """Number, URL, depth and version of live pages with a version."""

    def not_dropped(self) -> Iterator[tuple[int, str, int]]:
        """Number, URL and depth of pages that the user has not removed."""

    def set_states(self, state: int, pages: Iterable[int]) -> None:
        """Set the state of pages without a visit; one transaction."""

    def absent(self) -> Columns:
        """`id`, `site`, `given` (by the user), `failures`, `last_try` of pages that are gone or have moved."""

    def revive(self, moved_before: float, now: float = math.inf) -> None:
        """Make pages visitable again that a sitemap lists although they are gone or have moved, or that moved before
        this time, or after `now`: the clock was wrong then."""

    def check_now(self, pages: Iterable[int]) -> None:
        """Make those of the pages due for a check that are gone, have moved or could never be read."""

    def recall(self, pages: Iterable[int]) -> None:
        """Make those of the pages visitable again that are gone or have moved."""

    def revive_with(self, cycle: CycleRow) -> None:
        """Make pages visitable again that disappeared when another of their site did that is back in this cycle."""

    def forgive(self, cycle: CycleRow) -> None:
        """End the back-off of failing pages of a site with many of them, if one answered in this cycle that had failed
        for the same reason."""


class VisitTable(Protocol):
    """Visits, numbered in the order in which they were recorded."""

    def reason(self, text: str) -> int:
        """The number of a reason for visits; a new text is stored first."""

    def of_cycle(self, cycle: CycleRow) -> Columns:
        """`page`, `outcome`, `received` of a cycle's visits, in order.

        Pages without a request have the outcome that the policy observed: SKIPPED, or HELD by their server.
        """

    def received_of_cycle(self, cycle: CycleRow) -> list[tuple[int, int]]:
        """Site and bytes received by a cycle's visits."""

    def latest_by_site(self, visits: int = 20_000) -> list[tuple[int, int, float, int, int]]:
        """Site, count, seconds, bytes received and page sizes of the latest visits that downloaded a page."""

    def between(self, first: int, end: int) -> Columns:
        """Columns of the visits `first` ≤ number < `end`, in order.

        `id`, `page`, `cycle`, `at`, `outcome`, `held`, `hints`, `version` (-1 for none). `held` marks
        visits without a request.
        """

    def pages_since(self, visit: int) -> Ints:
        """Pages with a visit of this number or a later one."""

    def history(self, pages: Iterable[int], before_visit: int) -> Columns:
        """`page`, `at`, `outcome`, `held` of the pages' visits before a number, oldest first."""

    def end_of_cycle(self, cycle: CycleRow) -> int:
        """The number after the last visit of a cycle, 0 when it has none."""

    def with_previous(self, cycle: CycleRow) -> Columns:
        """`page`, `at`, `outcome`, `status`, `received`, `seconds`, `before` of a cycle's visits, in order.

        `before` is the time of the page's last successful visit before this one, -inf without one.
        """

    def failures_of_cycle(self, cycle: CycleRow) -> dict[str, int]:
        """How often each failure occurred in a cycle."""

    def frame_only(self, cycle: CycleRow) -> int:
        """Unchanged visits of a cycle that found another text, in the frame of the site alone."""

    def not_modified_by_site(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Site, answers, answers with status 304 of the visits `first` ≤ number < `end`."""

    def answered(self, sites: Iterable[int] | None, limit: int) -> NDArray[np.void]:
        """`page`, `at`, `changed` of the newest successful visits, oldest first; to these sites, or to all."""

    def of_site(self, site: int, limit: int) -> NDArray[np.void]:
        """`page`, `cycle`, `at`, `changed` of a site's newest successful visits, oldest first."""

    def after(self, visit: int, limit: int) -> list[Row]:
        """`id`, `page`, `at`, `outcome`, `version`, `copy`, `url` of the visits after this one, in order."""

    def tell_once(self, first: int, copies: Iterable[int], others: Iterable[int]) -> None:
        """Of the visits from this number on tell nothing of those to `copies`, and tell those to `others`."""

    def before(self, visit: int, count: int) -> int:
        """The visit that was recorded so many visits before this one; negative if there are fewer."""

    def of_page(self, page: int, limit: int) -> list[tuple[float, int]]:
        """Time and outcome of a page's successful visits, newest first."""

    def removals(self, page: int) -> list[float]:
        """When visits found the page gone."""

    def most_changed(self, site: str, updates: int, limit: int) -> list[int]:
        """Pages with more than one of the newest `updates` updates, most updates first; of a site (an origin), or of
        all if empty."""

    def pages_updated_since(self, visit: int) -> list[int]:
        """Pages with an update (changed, new, gone) after this visit."""


class VersionTable(Protocol):
    """Stored versions of pages."""

    def get(self, version: int) -> VersionRow | None:
        """A version by its number."""

    def at(self, page: int, at: float) -> VersionRow | None:
        """The version of a page that was downloaded at exactly this time."""

    def other_than(self, page: int, digest: bytes) -> VersionRow | None:
        """The newest version of a page with another text."""

    def of_page(self, page: int) -> list[VersionRow]:
        """The versions of a page, oldest first."""

    def newest_of_page(self, page: int, limit: int, before: int = NO_NUMBER) -> list[VersionRow]:
        """The newest versions of a page with smaller numbers, newest first."""

    def pick(self, page: int, version: int | None) -> VersionRow | None:
        """A version of this page by number, the newest without a number."""

    def before(self, page: int, version: int) -> VersionRow | None:
        """The version of a page before this one."""

    def in_force(self, page: int, at: float) -> VersionRow | None:
        """The newest version of a page at this time; the first version if the time is before it."""

    def times(self, page: int, limit: int) -> list[float]:
        """When the newest versions of a page were downloaded, newest first."""

    def newest(self, below: int) -> list[StoredPage]:
        """The newest version of each page with a number below this that is not gone, moved or dropped, by page."""

    def new_links(self, before: float, below: int) -> NDArray[np.void]:
        """`page` and `links` (number of new links) of each visit that found a change before a time, by page."""


class ScreenshotTable(Protocol):
    """Screenshots of pages. Writing goes through `Store.commit`."""

    def of_page(self, page: int, limit: int) -> list[ScreenshotRow]:
        """The newest screenshots of a page that can be read, newest first."""

    def of_version(self, page: int, version: int) -> ScreenshotRow | None:
        """The newest screenshot of a version that can be read."""

    def with_payload(self, payload: bytes) -> ScreenshotRow | None:
        """The first screenshot of any page with these bytes whose record can be read."""


class LinkTable(Protocol):
    """Links of each page's newest version: page numbers as packed little-endian int32."""

    def of_pages(self, pages: Iterable[int]) -> dict[int, bytes]:
        """The targets of pages."""

    def below(self, page: int) -> Iterator[tuple[int, bytes]]:
        """Page and targets of all pages with numbers below this, by page."""
