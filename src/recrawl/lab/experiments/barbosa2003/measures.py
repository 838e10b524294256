"""B's figure 2, table 1 and case study on any history with links: generated (`b_world`) or real.

Each function returns plain rows. In a generated world anchors and depths are given. In a real history they are found
as they would have been by someone who had visited all pages daily until the time `Scope.at`: the automatic choice that
B leaves to future work. All is then measured on what happens after that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.columns import DAY, HOUR, Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.histories.history import ABSENT, History
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.structure.anchor import anchors
from recrawl.learn.structure.depth import from_anchors, layers, recommend

Row = dict[str, Any]
Times = float | Floats


@dataclass(frozen=True, slots=True, eq=False)
class SiteScope:
    """The pages that are there at a time, with their depths."""

    history: History
    at: Floats
    """One per page: the time on its site's clock."""
    pages: Ints
    depth: Ints
    """One per page of the history, -1 where none of the anchors leads to it."""
    anchor: Ints
    """One per site, -1 for a site that has no page then."""

    def changed(self, pages: Ints, since: Times, until: Times) -> Flags:
        """Which pages differ between two times, counted in seconds from `at`."""
        before = version_at(self.history, pages, self.at[pages] + since)
        after: Flags = before != version_at(self.history, pages, self.at[pages] + until)
        return after


def scope(history: History, share: float = 0.5) -> SiteScope:
    """The scope at a share of each site's history; anchors and depths are given or found (see the top of this file)."""
    if history.links is None:
        raise UsageError("anchors and depths are made of links, and this history has none")
    last = np.zeros(len(history.sites))
    np.maximum.at(last, history.site[history.page_of], history.time)
    given = history.facts.get("depth")
    book = book_at(history, share * last)
    if given is not None:
        depth = given.astype(np.int64)
        anchor = np.full(len(history.sites), -1, np.int64)
        anchor[history.site[depth == 0]] = np.flatnonzero(depth == 0)
    else:
        anchor = anchors(book)
        depth = from_anchors(book, anchor)
    return SiteScope(history, share * last[history.site], np.flatnonzero(book.known), depth, anchor)


def book_at(history: History, at: Floats) -> Book:
    """What daily visits of every page until a time (one per site) would have taught."""
    book = Book.blank(len(history), now=float(at.max(initial=0.0)))
    book.site[:], book.folder[:] = history.site, history.folder
    book.depth[:] = history.folders.level[history.folder]
    # Each site has its own clock: all are moved so that they stop now.
    moved = book.now - at[history.site]
    page, born = history.page_of, history.time[history.first[:-1]]
    seen = history.time <= at[history.site[page]]
    moves = np.append(True, (page[1:] != page[:-1]) | (history.version[1:] != history.version[:-1]))
    span = int(history.span // DAY) + 1
    days = np.unique((page * span + (history.time // DAY).astype(np.int64))[moves & seen])
    book.found[:] = born + moved
    book.changes[:] = np.bincount(days // span, minlength=len(history))
    book.visits[:] = np.maximum(np.floor((at[history.site] - born) / DAY) + 1, 0)
    book.changes[:] = np.minimum(book.changes, book.visits)
    row = row_at(history, np.arange(len(history)), at[history.site])
    there = row >= 0
    np.maximum.at(book.last_change, page[moves & seen], (history.time + moved[page])[moves & seen])
    book.last_visit[there] = book.last_try[there] = book.now
    book.known[:] = there & (history.version[np.maximum(row, 0)] != ABSENT)
    if history.links is not None:
        book.links = history.links.at(np.where(book.known, history.links.of_row[np.maximum(row, 0)], -1))
    return book


def row_at(history: History, pages: Ints, at: Floats) -> Ints:
    """The row in force on each page at its time, -1 before its first."""
    deadline = np.full(len(history), -np.inf)
    deadline[pages] = at
    passed = np.add.reduceat((history.time <= deadline[history.page_of]).astype(np.int64), history.first[:-1])
    row: Ints = np.where(passed[pages] > 0, history.first[pages] + passed[pages] - 1, -1)
    return row


def version_at(history: History, pages: Ints, at: Floats) -> Ints:
    """The version in force on each page at its time."""
    row = row_at(history, pages, at)
    version: Ints = np.where(row >= 0, history.version[np.maximum(row, 0)], ABSENT)
    return version


# -- figure 2 and table 1 --------------------------------------------------------------------------------------


def figure_2(where: SiteScope, days: int = b.DAYS, deepest: int = 4) -> list[Row]:
    """The share of pages at each depth that differ from the day before: mean, least and greatest of the days.

    `changed_by_site` is the mean over sites, so that each counts as much as any other.
    """
    rows: list[Row] = []
    for depth in range(1, deepest + 1):
        pages = where.pages[where.depth[where.pages] == depth]
        moved = [where.changed(pages, day * DAY, (day + 1) * DAY) for day in range(days)]
        site, sites = where.history.site[pages], len(where.history.sites)
        count = np.bincount(site, minlength=sites)
        hits = np.bincount(site, np.sum(moved, axis=0), sites) / days
        by_site = hits[count > 0] / count[count > 0]
        row = {"depth": depth, "pages": len(pages), "sites": len(by_site), **_spread("changed", moved)}
        rows.append({**row, "changed_by_site": float(by_site.mean()) if len(by_site) else None})
    return rows


def table_1(where: SiteScope, every: float = b.EVERY_HOURS * HOUR, visits: int = 8) -> list[Row]:
    """For n = 1, 2, 3: pages, and the share of visits that find a change when all are visited so often."""
    rows: list[Row] = []
    for group in b.TABLE_1:
        pages = _group(where, group.n)
        moved = [where.changed(pages, k * every, (k + 1) * every) for k in range(visits)]
        row = {"n": group.n, "pages": len(pages), **_spread("success", moved)}
        rows.append({**row, "published_success": group.success, "published_pages": group.pages})
    return rows


def recommended(where: SiteScope, every: float = b.EVERY_HOURS * HOUR) -> Row:
    """The n that `recrawl anchor` would recommend at B's pace, with all pages as one scope, as B has them."""
    book = book_at(where.history, _clock(where))
    book.site = np.zeros(len(book), np.int32)
    table = layers(book, where.depth, every, room=_pace(where) * every)
    n = int(recommend(table)[0])
    return {
        "n": n,
        "pages": int(table.pages[0, : n + 1].sum()),
        "expected_by_depth": [None if np.isnan(share) else float(share) for share in table.expected[0, :5]],
        "uniform": float(table.uniform[0]),
        "published_n": b.CHOSEN_N,
    }


# -- the case study --------------------------------------------------------------------------------------------


def case_study(where: SiteScope, n: int = b.CHOSEN_N, every: float = b.EVERY_HOURS * HOUR, seed: int = 1) -> list[Row]:
    """Uniform visits against the dynamic group every six hours, at B's pace for as many pages.

    Uniform visits run for as long as B let them, each a whole pass after the page's last. `hours` is the time for all
    pages in question once. `delay_hours` is the mean time from a change to the visit that finds it, over the changes
    of a pass; of the dynamic group, and of all pages. For the latter, what `non-uniform` leaves of the pace goes to
    the rest in turn; it is None when the group takes all of it.
    """
    rng = np.random.default_rng(seed)
    pages, group, pace = where.pages, _group(where, n), _pace(where)
    whole = len(pages) / pace
    drawn = rng.permutation(pages)[: max(1, round(pace * every))]
    turn = np.sort(rng.uniform(0, every, len(drawn)))
    uniform = _spread("success", [where.changed(drawn, turn - whole, turn)])["success"]
    turns = np.arange(len(group)) / pace
    moved = [where.changed(group, turns + k * every, turns + (k + 1) * every) for k in range(4)]
    often = _spread("success", moved)["success"]
    left = pace - len(group) / every
    rest = np.setdiff1d(pages, group)
    interval = np.full((2, len(where.history)), whole)
    interval[1, rest] = len(rest) / left if left > 0 else np.inf
    interval[1, group] = every
    phase = rng.random(len(where.history))
    rows: list[Row] = [
        {"policy": "uniform", "pages": len(pages), "success": uniform, "requests_a_day": pace * DAY},
        {"policy": "non-uniform", "pages": len(group), "success": often, "requests_a_day": len(group) * DAY / every},
    ]
    printed = (
        (b.UNIFORM_SUCCESS, b.UNIFORM_HOURS["from its figures"]),
        (b.GROUP_SUCCESS["text"], b.GROUP_HOURS["printed"]),
    )
    for row, wait, (success, hours) in zip(rows, interval, printed, strict=True):
        row["hours"] = row["pages"] / pace / HOUR
        row["delay_hours_of_group"] = _delay(where, group, wait, phase, whole)
        row["delay_hours"] = _delay(where, pages, wait, phase, whole)
        row["published_success"], row["published_hours"] = success, hours
    return rows


def replayed(where: SiteScope, n: int = b.CHOSEN_N, passes: float = 1.0, seed: int = 1) -> list[Row]:
    """The same by the policies themselves: cycles of six hours, each with the visits that B's pace has room for.

    The history is replayed from its start; the first whole pass is left out, in which uniform visits come to pages
    that were in the repository for less than a pass.
    """
    every = b.EVERY_HOURS * HOUR
    budget = max(1, round(_pace(where) * every))
    first = int(np.ceil(len(where.pages) / budget))
    cycles = first + max(1, round(first * passes))
    rows: list[Row] = []
    for text in ("round-robin", f"anchor-depth(n={n}, every={b.EVERY_HOURS:g}, rest=0)"):
        done = replay(
            where.history, make_policy(text), Setup(budget=budget, cycle=every, cycles=cycles, seed=seed, samples=1)
        )
        visits, found = int(done.visits[first:].sum()), int(done.found[first:].sum())
        fresh = float(np.mean(done.freshness[first:]))
        row = {"policy": text, "visits": visits, "found": found, "success": found / max(1, visits)}
        rows.append({**row, "freshness": fresh, "delay_hours": done.delay * 24})
    return rows


def _delay(
    where: SiteScope,
    pages: Ints,
    interval: Floats,
    phase: Floats,
    span: float,
) -> float | None:
    """Mean hours from a change of these pages to their next visit, for the changes within a time.

    Each page is visited at its interval, from a phase of its own on; None where a page with changes never is.
    """
    history = where.history
    page = history.page_of
    these = np.zeros(len(history), bool)
    these[pages] = True
    since = history.time - where.at[page]
    rows = np.flatnonzero(these[page] & (since > 0) & (since <= span))
    wait = interval[page[rows]]
    if not len(rows) or not np.isfinite(wait).all():
        return None
    return float(np.mean(np.mod(phase[page[rows]] * wait - since[rows], wait))) / HOUR


def _group(where: SiteScope, n: int) -> Ints:
    depth = where.depth[where.pages]
    return where.pages[(depth >= 0) & (depth <= n)]


def _pace(where: SiteScope) -> float:
    """Pages a second: B's pace for as large a share of the pages."""
    return b.PER_MINUTE / 60 * len(where.pages) / b.PAGES


def _clock(where: SiteScope) -> Floats:
    """The scope's time by site."""
    at = np.zeros(len(where.history.sites))
    at[where.history.site] = where.at
    return at


def _spread(name: str, moved: list[Flags]) -> Row:
    """Mean, least and greatest share; None where there are no pages."""
    if not moved or not len(moved[0]):
        return {name: None, "low": None, "high": None}
    shares = [float(found.mean()) for found in moved]
    return {name: float(np.mean(shares)), "low": min(shares), "high": max(shares)}
