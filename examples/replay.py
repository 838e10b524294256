"""Policies compared on a generated web, without any downloads: an archive can answer visits as well as the web can.

    python examples/replay.py

A world is anything with a method `visit`. This one looks up what each page was at a time, and says what a visit at
that time would have found.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.loop import drive
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400
BUDGET = 40


class Replay:
    """The web as the archive has it, at the time `now`."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.now = float(archive.start)
        self._last: dict[int, int] = {}

    def visit(self, picks: Picks) -> Outcomes:
        """What each page would have said."""
        return Outcomes(picks.pages, np.array([self._look(page) for page in picks.pages.tolist()], np.int8))

    def _look(self, page: int) -> Outcome:
        row = self.archive.row_at(page, self.now)
        assert row is not None  # only pages that were born are known
        before, self._last[page] = self._last.get(page), row
        if self.archive.removed[row]:
            return Outcome.GONE
        if before is None:
            return Outcome.NEW
        return Outcome.UNCHANGED if row == before else Outcome.CHANGED


def replay(archive: Archive, name: str, days: int) -> tuple[int, int]:
    """Visits after the first, and how many of them found a change or a removal."""
    world, book, policy = Replay(archive), Book.blank(len(archive)), make_policy(name)
    book.known[:] = False
    visits = found = 0
    for day in range(days):
        book.now = world.now = float(archive.start + day * DAY)
        born = archive.pages_at(world.now)
        book.known[born[book.visits[born] == 0]] = True
        for seen in drive(policy, world, book, BUDGET, seed=day):
            book.note(seen, book.now)
            again = seen.what != Outcome.NEW
            visits += int(again.sum())
            found += int(seen.changed[again].sum())
    return visits, found


def main() -> None:
    """One web of 300 pages, forty days, forty visits a day."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "web.parquet"
        write(SyntheticWorld(sites=3, pages=100, days=40, seed=7), file)
        archive = Archive.open([file])
        for name in ("round-robin", "random", "fixed-interval(days=14)"):
            visits, found = replay(archive, name, days=40)
            print(f"{name:24} {visits:5} visits, {found:4} found something ({found / max(1, visits):.1%})")


if __name__ == "__main__":
    main()
