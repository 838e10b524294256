"""B's figure 2, table 1 and case study on any history with links: generated (`world`) or real.

Each function returns plain rows. In a generated world anchors and depths are given. In a real history they are those
that daily visits of all pages until the time `SiteScope.at` would have found: the automatic choice that B leaves to
future work. Everything is then measured on what happens after that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.protocol import NAMED, Choice, Learner, Policy
from recrawl.columns import DAY, HOUR, Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.experiments.readings import replayed as replayed_by
from recrawl.lab.histories.history import ABSENT, History
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.structure.anchor import anchors
from recrawl.learn.structure.depth import from_anchors, layers, recommend
from recrawl.model import Outcomes

Row = dict[str, Any]
SecondsOffset = float | Floats


@dataclass(frozen=True, slots=True, eq=False)
class SiteScope:
    """The pages that exist at a time, with their depths."""

    history: History
    at: Floats
    """One per page: the time on its site's clock."""
    pages: Ints
    depth: Ints
    """One per page of the history; -1 where no anchor leads to it."""
    anchor: Ints
    """One per site; -1 for a site without pages at that time."""

    def changed(self, pages: Ints, since: SecondsOffset, until: SecondsOffset) -> Flags:
        """Whether each page differs between two times, in seconds from `at`."""
        before = version_at(self.history, pages, self.at[pages] + since)
        differs: Flags = before != version_at(self.history, pages, self.at[pages] + until)
        return differs


def scope_at(history: History, share: float = 0.5) -> SiteScope:
    """The scope at a share of each site's history; anchors and depths are given or found (see the module's text)."""
    if history.links is None:
        raise UsageError("this history has no links, which anchors and depths are computed from")
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
    """The book after daily visits of every page until a time (one per site)."""
    book = Book.blank(len(history), now=float(at.max(initial=0.0)))
    book.site[:], book.folder[:] = history.site, history.folder
    book.depth[:] = history.folders.level[history.folder]
    # Each site has its own clock; all are shifted to end now.
    shift = book.now - at[history.site]
    page, first_seen = history.page_of, history.time[history.first[:-1]]
    past = history.time <= at[history.site[page]]
    is_change = np.append(True, (page[1:] != page[:-1]) | (history.version[1:] != history.version[:-1]))
    span = int(history.span // DAY) + 1
    days = np.unique((page * span + (history.time // DAY).astype(np.int64))[is_change & past])
    book.found[:] = first_seen + shift
    book.changes[:] = np.bincount(days // span, minlength=len(history))
    book.visits[:] = np.maximum(np.floor((at[history.site] - first_seen) / DAY) + 1, 0)
    book.changes[:] = np.minimum(book.changes, book.visits)
    row = row_at(history, np.arange(len(history)), at[history.site])
    visited = row >= 0
    np.maximum.at(book.last_change, page[is_change & past], (history.time + shift[page])[is_change & past])
    book.last_visit[visited] = book.last_try[visited] = book.now
    book.known[:] = visited & (history.version[np.maximum(row, 0)] != ABSENT)
    if history.links is not None:
        book.links = history.links.at(np.where(book.known, history.links.of_row[np.maximum(row, 0)], -1))
    return book


def row_at(history: History, pages: Ints, at: Floats) -> Ints:
    """The current row of each page at its time, -1 before its first."""
    until = np.full(len(history), -np.inf)
    until[pages] = at
    started = np.add.reduceat((history.time <= until[history.page_of]).astype(np.int64), history.first[:-1])
    row: Ints = np.where(started[pages] > 0, history.first[pages] + started[pages] - 1, -1)
    return row


def version_at(history: History, pages: Ints, at: Floats) -> Ints:
    """The current version of each page at its time."""
    row = row_at(history, pages, at)
    version: Ints = np.where(row >= 0, history.version[np.maximum(row, 0)], ABSENT)
    return version


# -- figure 2 and table 1 --------------------------------------------------------------------------------------


def figure_2(scope: SiteScope, days: int = b.DAYS, max_depth: int = 4) -> list[Row]:
    """The share of pages at each depth that differ from the day before: mean, minimum and maximum over the days.

    `changed_by_site` is the mean over sites, each with the same weight.
    """
    rows: list[Row] = []
    for depth in range(1, max_depth + 1):
        pages = scope.pages[scope.depth[scope.pages] == depth]
        changed = [scope.changed(pages, day * DAY, (day + 1) * DAY) for day in range(days)]
        site, sites = scope.history.site[pages], len(scope.history.sites)
        count = np.bincount(site, minlength=sites)
        changes_per_day = np.bincount(site, np.sum(changed, axis=0), sites) / days
        by_site = changes_per_day[count > 0] / count[count > 0]
        row = {"depth": depth, "pages": len(pages), "sites": len(by_site), **_spread("changed", changed)}
        rows.append({**row, "changed_by_site": float(by_site.mean()) if len(by_site) else None})
    return rows


def table_1(scope: SiteScope, every: float = b.EVERY_HOURS * HOUR, visits: int = 8) -> list[Row]:
    """For n = 1, 2, 3: pages, and the share of visits that find a change when all are visited every `every` seconds."""
    rows: list[Row] = []
    for group in b.TABLE_1:
        pages = _group(scope, group.n)
        changed = [scope.changed(pages, k * every, (k + 1) * every) for k in range(visits)]
        row = {"n": group.n, "pages": len(pages), **_spread("success", changed)}
        rows.append({**row, "published_success": group.success, "published_pages": group.pages})
    return rows


def recommended(scope: SiteScope, every: float = b.EVERY_HOURS * HOUR) -> Row:
    """The n that `recrawl anchor` would recommend at B's pace, with all pages as one scope, as in B."""
    book = book_at(scope.history, _clock(scope))
    book.site = np.zeros(len(book), np.int32)
    table = layers(book, scope.depth, every, room=_pace(scope) * every)
    n = int(recommend(table)[0])
    return {
        "n": n,
        "pages": int(table.pages[0, : n + 1].sum()),
        "expected_by_depth": [None if np.isnan(share) else float(share) for share in table.expected[0, :5]],
        "uniform": float(table.uniform[0]),
        "published_n": b.CHOSEN_N,
    }


# -- the case study --------------------------------------------------------------------------------------------


def case_study(scope: SiteScope, n: int = b.CHOSEN_N, every: float = b.EVERY_HOURS * HOUR, seed: int = 1) -> list[Row]:
    """Uniform visits against the dynamic group every six hours, at B's pace scaled to the number of pages.

    Uniform visits run for as long as in B, each a whole pass after the page's last visit. `hours` is the time to visit
    all pages in question once. `delay_hours` is the mean time from a change to the visit that finds it, over the
    changes of a pass, for all pages; `delay_hours_of_group` for the dynamic group. For all pages, the pace that
    `non-uniform` does not use goes to the other pages in turn; the delay is None when the group uses all of it.
    """
    rng = np.random.default_rng(seed)
    pages, group, pace = scope.pages, _group(scope, n), _pace(scope)
    pass_seconds = len(pages) / pace
    sample = rng.permutation(pages)[: max(1, round(pace * every))]
    visit_time = np.sort(rng.uniform(0, every, len(sample)))
    uniform = _spread("success", [scope.changed(sample, visit_time - pass_seconds, visit_time)])["success"]
    visit_times = np.arange(len(group)) / pace
    changed = [scope.changed(group, visit_times + k * every, visit_times + (k + 1) * every) for k in range(4)]
    group_success = _spread("success", changed)["success"]
    remaining_pace = pace - len(group) / every
    rest = np.setdiff1d(pages, group)
    interval = np.full((2, len(scope.history)), pass_seconds)
    interval[1, rest] = len(rest) / remaining_pace if remaining_pace > 0 else np.inf
    interval[1, group] = every
    phase = rng.random(len(scope.history))
    rows: list[Row] = [
        {"policy": "uniform", "pages": len(pages), "success": uniform, "requests_a_day": pace * DAY},
        {
            "policy": "non-uniform",
            "pages": len(group),
            "success": group_success,
            "requests_a_day": len(group) * DAY / every,
        },
    ]
    printed = (
        (b.UNIFORM_SUCCESS, b.UNIFORM_HOURS["from its figures"]),
        (b.GROUP_SUCCESS["text"], b.GROUP_HOURS["printed"]),
    )
    for row, wait, (success, hours) in zip(rows, interval, printed, strict=True):
        row["hours"] = row["pages"] / pace / HOUR
        row["delay_hours_of_group"] = _delay(scope, group, wait, phase, pass_seconds)
        row["delay_hours"] = _delay(scope, pages, wait, phase, pass_seconds)
        row["published_success"], row["published_hours"] = success, hours
    return rows


def replayed(scope: SiteScope, n: int = b.CHOSEN_N, passes: float = 1.0, seed: int = 1) -> list[Row]:
    """The same by the policies: cycles of six hours, each with the visits that B's pace allows.

    The history is replayed from its start, and the anchors are named. The first whole pass is left out, since uniform
    visits then reach pages that were in the repository for less than a pass.
    """
    every = b.EVERY_HOURS * HOUR
    budget = max(1, round(_pace(scope) * every))
    first = int(np.ceil(len(scope.pages) / budget))
    cycles = first + max(1, round(first * passes))
    rows: list[Row] = []
    anchored = f"anchor-depth(n={n}, every={b.EVERY_HOURS:g}, "
    by_reading = {name: text.replace("anchor-depth(", anchored) for name, text in replayed_by("slow").items()}
    for reading, text in {"": "round-robin", **by_reading}.items():
        setup = Setup(budget=budget, cycle=every, cycles=cycles, seed=seed, samples=1)
        outcome = replay(scope.history, Named(make_policy(text), scope.anchor[scope.anchor >= 0]), setup)
        visits, found = int(outcome.visits[first:].sum()), int(outcome.found[first:].sum())
        fresh = float(np.mean(outcome.freshness[first:]))
        row = {"policy": text, "reading": reading, "visits": visits, "found": found, "success": found / max(1, visits)}
        days = (cycles - first) * every / DAY
        row |= {"requests_a_day": visits / days, "age_days": float(np.mean(outcome.age[first:]))}
        rows.append({**row, "freshness": fresh, "delay_hours": outcome.delay * 24})
    return rows


class Named:
    """A policy that is told the anchors, as B's crawler was by its users; the others do not ask for them."""

    name: ClassVar[str] = "named"
    source: ClassVar[str] = "Barbosa et al. 2003 §3"
    needs: frozenset[str]  # not a ClassVar: it depends on the policy

    def __init__(self, policy: Policy, anchors: Ints) -> None:
        self.needs = policy.needs
        self._policy, self._anchors = policy, anchors

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Name the anchors, and let the policy choose."""
        book.memory[NAMED] = self._anchors
        return self._policy.cycle(book, budget, rng)

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Let the policy learn, if it does."""
        if isinstance(self._policy, Learner):
            self._policy.learn(book, seen, at)


def _delay(
    scope: SiteScope,
    pages: Ints,
    interval: Floats,
    phase: Floats,
    span: float,
) -> float | None:
    """Mean hours from a change of these pages to their next visit, for the changes within `span` seconds.

    Each page is visited at its interval, from a random phase; None where a page with changes is never visited.
    """
    history = scope.history
    page = history.page_of
    selected = np.zeros(len(history), bool)
    selected[pages] = True
    since = history.time - scope.at[page]
    rows = np.flatnonzero(selected[page] & (since > 0) & (since <= span))
    wait = interval[page[rows]]
    if not len(rows) or not np.isfinite(wait).all():
        return None
    return float(np.mean(np.mod(phase[page[rows]] * wait - since[rows], wait))) / HOUR


def _group(scope: SiteScope, n: int) -> Ints:
    depth = scope.depth[scope.pages]
    return scope.pages[(depth >= 0) & (depth <= n)]


def _pace(scope: SiteScope) -> float:
    """Pages per second: B's pace for the same share of the pages."""
    return b.PER_MINUTE / 60 * len(scope.pages) / b.PAGES


def _clock(scope: SiteScope) -> Floats:
    """The scope's time by site."""
    at = np.zeros(len(scope.history.sites))
    at[scope.history.site] = scope.at
    return at


def _spread(name: str, changed: list[Flags]) -> Row:
    """Mean, minimum and maximum share; None where there are no pages."""
    if not changed or not len(changed[0]):
        return {name: None, "low": None, "high": None}
    shares = [float(found.mean()) for found in changed]
    return {name: float(np.mean(shares)), "low": min(shares), "high": max(shares)}
