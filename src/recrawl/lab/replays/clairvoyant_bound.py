"""The clairvoyant: the most changes that any policy can find with a budget (spec M11).

Seen at the moments of visits (the cycles' starts, mostly), a page's history is a row of *stretches*, each from one
change to the next. A stretch is found by one visit at most, at any moment from its first to its last: a unit job with
a release and a deadline, and each moment has room for so many. Taking the job with the earliest deadline first does
the most jobs.

A stretch whose content the repository holds already, since the one between was never visited, cannot be found; nor
can the removal of a page that was born and never visited. The bound counts them all the same, so it lies a hair over
the optimum where pages go back to what they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.histories.history import ABSENT, History
from recrawl.model import Pages


@dataclass(frozen=True, slots=True)
class UnitJobs:
    """One per stretch, in order of release: its page, and the first and last moment that can find it."""

    page: NDArray[np.int64]
    release: NDArray[np.int64]
    deadline: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.page)


def jobs_of(history: History, moments: NDArray[np.float64]) -> UnitJobs:
    """The stretches of a history that visits at these moments can find. Moments count from 1; 0 is the start."""
    page, last_moment = history.page_of, len(moments)
    first_seen = np.searchsorted(np.concatenate(([0.0], moments)), history.time)
    # Of the rows between two moments only the last is ever seen.
    seen = np.append((page[1:] != page[:-1]) | (first_seen[1:] != first_seen[:-1]), True)
    page, release, version = page[seen], first_seen[seen], history.version[seen]
    new_page = np.diff(page, prepend=-1) != 0
    before = np.where(new_page, ABSENT, np.concatenate(([ABSENT], version[:-1])))
    steps = (version != before) & (release <= last_moment)
    page, release = page[steps], release[steps]
    last = np.append(page[1:] != page[:-1], True) if len(page) else np.zeros(0, bool)
    deadline = np.where(last, last_moment, np.append(release[1:], last_moment) - 1) if len(page) else release
    later = release >= 1  # what is there at the start is in the repository
    page, release, deadline = page[later], release[later], deadline[later]
    order = np.argsort(release, kind="stable")
    return UnitJobs(page[order], release[order], deadline[order])


def schedule(jobs: UnitJobs, pages: int, room: NDArray[np.int64]) -> list[Pages]:
    """The pages to visit at each moment, at most as many as there is room for: earliest deadline first."""
    due = np.full(pages, -1, np.int64)  # a page has one open job at most: its present stretch
    bounds = np.searchsorted(jobs.release, np.arange(1, len(room) + 2))
    waiting = np.zeros(0, np.int64)
    plan = []
    for k, budget in enumerate(room.tolist(), 1):
        new = slice(bounds[k - 1], bounds[k])
        due[jobs.page[new]] = jobs.deadline[new]
        waiting = np.unique(np.concatenate((waiting, jobs.page[new])))
        waiting = waiting[due[waiting] >= k]
        taken = waiting
        if len(waiting) > budget:
            taken = waiting[np.argsort(due[waiting], kind="stable")[:budget]]
        plan.append(taken)
        due[taken] = -1
        if len(taken):
            waiting = waiting[due[waiting] >= k]
    return plan


def most(history: History, moments: NDArray[np.float64], room: NDArray[np.int64]) -> tuple[int, int]:
    """The most that can be found by so many visits at each moment, and how much there is to find."""
    jobs = jobs_of(history, moments)
    return sum(map(len, schedule(jobs, len(history), room))), len(jobs)
