"""The clairvoyant: the most changes that any policy can find with a budget, and the policy that finds them (spec M11).

Seen at the times of visits (mostly the starts of cycles), a page's history is a sequence of *stretches*, each from one
change to the next. One visit at any time within a stretch finds it: a unit job with a release time and a deadline, and
each time has a capacity, its number of visits. Earliest deadline first completes the most jobs.

The bound lies slightly above the optimum where pages revert. It also counts stretches that no visit can find: one whose
content the repository still holds because nothing in between was visited, and the removal of a page that was never
visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats, Ints, unique
from recrawl.lab.histories.history import ABSENT, History
from recrawl.model import Pages, Picks


@dataclass(frozen=True, slots=True)
class UnitJobs:
    """The stretches in order of release: page, and the first and last time (by number) at which a visit finds it."""

    page: Ints
    release: Ints
    deadline: Ints

    def __len__(self) -> int:
        return len(self.page)


def unit_jobs(history: History, moments: Floats) -> UnitJobs:
    """Return the stretches that visits at these times can find. Times are numbered from 1; 0 is the start."""
    page, last_moment = history.page_of, len(moments)
    first_seen = np.searchsorted(np.concatenate(([0.0], moments)), history.time)
    # Of the rows between two times, visits see only the last.
    seen = np.append((page[1:] != page[:-1]) | (first_seen[1:] != first_seen[:-1]), True)
    page, release, version = page[seen], first_seen[seen], history.version[seen]
    new_page = np.diff(page, prepend=-1) != 0
    before = np.where(new_page, ABSENT, np.concatenate(([ABSENT], version[:-1])))
    steps = (version != before) & (release <= last_moment)
    page, release = page[steps], release[steps]
    last = np.append(page[1:] != page[:-1], True) if len(page) else np.zeros(0, bool)
    deadline = np.where(last, last_moment, np.append(release[1:], last_moment) - 1) if len(page) else release
    later = release >= 1  # the repository holds what exists at the start
    page, release, deadline = page[later], release[later], deadline[later]
    order = np.argsort(release, kind="stable")
    return UnitJobs(page[order], release[order], deadline[order])


def schedule(jobs: UnitJobs, pages: int, room: Ints) -> list[Pages]:
    """Return the pages to visit at each time, at most `room` of them: earliest deadline first."""
    due = np.full(pages, -1, np.int64)  # a page has at most one open job: its current stretch
    bounds = np.searchsorted(jobs.release, np.arange(1, len(room) + 2))
    waiting = np.zeros(0, np.int64)
    plan = []
    for k, budget in enumerate(room.tolist(), 1):
        new = slice(bounds[k - 1], bounds[k])
        due[jobs.page[new]] = jobs.deadline[new]
        waiting = unique(np.concatenate((waiting, jobs.page[new])))
        waiting = waiting[due[waiting] >= k]
        taken = waiting
        if len(waiting) > budget:
            taken = waiting[np.argsort(due[waiting], kind="stable")[:budget]]
        plan.append(taken)
        due[taken] = -1
        if len(taken):
            waiting = waiting[due[waiting] >= k]
    return plan


def upper_bound(history: History, moments: Floats, room: Ints) -> tuple[int, int]:
    """Return the most updates that `room` visits at each time can find, and the number of all updates."""
    jobs = unit_jobs(history, moments)
    return sum(map(len, schedule(jobs, len(history), room))), len(jobs)


class Clairvoyant:
    """Visit changed pages, first those whose next change comes soonest (lab only).

    The rest of the budget goes to the pages not visited for longest and finds nothing, so that change ratios are
    comparable.

    Example
    -------
    >>> from recrawl.lab.histories.history import assemble
    >>> from recrawl.lab.replays.replay import Setup, replay
    >>> history = assemble(["http://a.example/1", "http://a.example/2"], np.array([0, 0, 1]),
    ...     np.array([0.0, 90.0, 0.0]), np.array([1, 2, 1]), change="text", carries=frozenset())
    >>> setup = Setup(budget=1, cycle=60.0, cycles=3)
    >>> replay(history, Clairvoyant(history, setup.budget, setup.cycle, setup.cycles), setup).found.tolist()
    [0, 1, 0]

    Source: spec M11; unit jobs with release times and deadlines.
    """

    name: ClassVar[str] = "clairvoyant"
    source: ClassVar[str] = "the exact bound for changes found: earliest deadline first (spec M11); lab only"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, history: History, budget: int, cycle: float, cycles: int) -> None:
        self._cycle = cycle
        moments = np.arange(1, cycles + 1, dtype=np.float64) * cycle
        self._plan = schedule(unit_jobs(history, moments), len(history), np.full(cycles, budget))

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """Yield one batch of changed pages and one of others."""
        pages = self._plan[round(book.now / self._cycle) - 1]
        pages = pages[book.known[pages]][:budget]
        yield Picks(pages, np.ones(len(pages)), "has changed")
        others = np.flatnonzero(book.known)
        others = others[~np.isin(others, pages)]
        others = others[np.argsort(book.last_try[others], kind="stable")][: budget - len(pages)]
        yield Picks(others, np.zeros(len(others)), "nothing else is left to find")
