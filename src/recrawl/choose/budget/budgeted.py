"""A policy kept within an allowance.

Policies know no limits. Pages that do not fit are not visited, and the policy receives the outcome `SKIPPED` for them.
Two steps make sure that the budget is spent all the same:

    before the first visit   nothing was found yet, so the policy starts again with the refused pages removed from the
                             book, until its first batch fits;
    after it has ended       the policy starts again with the rest of the budget and the pages that still fit.

`Rechecks` are pages that the policy does not know: some before its first visit, the others with what it leaves.

The result depends only on the book, the seed and the outcomes, so a crashed cycle makes the same choices again. Without
limits, and if no server is held, the policy runs once, unchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.book import Book
from recrawl.choose.budget.allowance import Allowance, Balance
from recrawl.choose.protocol import Choice, Chooser
from recrawl.columns import Flags, Floats
from recrawl.model import Outcomes, Pages, Picks, Unvisited

_MAX_RESTARTS = 16
"""How often a policy is started again before the first visit."""
_MAX_REFILLS = 1000
"""How often a batch is filled up with pages that did not fit before."""


RECHECK = "it was gone or had moved, and is checked again from time to time"


@dataclass(frozen=True, slots=True)
class Rechecks:
    """Pages that are known to nobody but this: gone ones and ones that have moved, the most urgent first."""

    pages: Pages
    reserved: int
    """Visits for them before the policy gets the rest of the budget."""


class Budgeted:
    """A policy within an allowance; `recrawl.loop.drive` runs it like any policy.

    >>> from recrawl.choose.papers.round_robin import RoundRobin
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(6)
    >>> book.site[4:] = 1
    >>> batches(Budgeted(RoundRobin(), Allowance(site_most=2)), book, budget=4)
    [[0, 1, 4, 5]]
    """

    def __init__(
        self,
        policy: Chooser,
        allowance: Allowance,
        *,
        expected: Floats | None = None,
        pushed: Flags | None = None,
        rechecks: Rechecks | None = None,
    ) -> None:
        self._policy = policy
        self._allowance = allowance
        self._expected = expected
        self._pushed = pushed
        self.rechecks = rechecks or Rechecks(np.zeros(0, np.int64), 0)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Run the policy in rounds, until the budget is spent or no page that it picks fits."""
        book = self.without_rechecks(book)
        balance = Balance(self._allowance, book, budget, expected=self._expected, pushed=self._pushed)
        reserved, others = np.split(self.rechecks.pages, [self.rechecks.reserved])
        yield from self._recheck(reserved, balance)
        factor = 1
        while balance.left > 0:
            known = balance.open()
            available, before, round_budget = int(np.count_nonzero(known)), balance.left, balance.left * factor
            refused = False
            if available:
                refused = yield from self._round(replace(book, known=known), balance, round_budget, rng)
            if refused and (balance.left < before or round_budget < available):
                factor *= 2  # so that a few rounds suffice, however many picks are refused
            elif not balance.release():
                break
        yield from self._recheck(others, balance)

    def without_rechecks(self, book: Book) -> Book:
        """The book as the policy sees it."""
        known = book.known.copy()
        known[self.rechecks.pages] = False
        return replace(book, known=known)

    def _recheck(self, pages: Pages, balance: Balance) -> Generator[Picks, Outcomes, None]:
        if len(pages) and balance.left > 0:
            yield from self._batch(Picks(pages, np.zeros(len(pages)), RECHECK), balance)

    def _round(
        self, book: Book, balance: Balance, budget: int, rng: np.random.Generator
    ) -> Generator[Picks, Outcomes, bool]:
        """Run the policy once; return whether any of its picks was not visited."""
        choice, picks, refused = self._start(book, balance, budget, rng)
        try:
            while picks is not None:
                seen = yield from self._batch(picks, balance)
                refused |= int(np.count_nonzero(seen.visited)) < len(picks)
                if balance.left <= 0:
                    break
                picks = choice.send(_with_skipped(picks, seen))
        except StopIteration:
            pass
        finally:
            choice.close()
        return refused

    def _batch(self, picks: Picks, balance: Balance) -> Generator[Picks, Outcomes, Outcomes]:
        """Visit the pages of a batch that fit; if some were not visited after all, their room goes to the next."""
        rest, parts = picks, [Outcomes(picks.pages[:0], np.zeros(0, np.int8))]
        for _ in range(_MAX_REFILLS):
            fits = balance.fit(rest.pages)
            if len(rest) and not fits.any():
                break
            seen = yield rest.where(fits)
            balance.pay(seen)
            parts.append(seen)
            rest = rest.where(~fits)
            if not len(rest) or balance.left <= 0 or seen.visited.all():
                break
        pages, what = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pages", "what"))
        return Outcomes(pages, what)

    def _start(
        self, book: Book, balance: Balance, budget: int, rng: np.random.Generator
    ) -> tuple[Choice, Picks | None, bool]:
        """Start the policy, again while more of its first batch can fit; return also whether it was started again."""
        view, best = book, -1
        for _ in range(_MAX_RESTARTS):
            choice = self._policy.cycle(view, budget, rng)
            picks = next(choice, None)
            if picks is None:
                break
            fits = balance.fit(picks.pages)
            count = int(np.count_nonzero(fits))
            if count == len(picks) or count >= balance.left or count <= best:
                break
            choice.close()
            best, kept = count, picks.pages[fits]
            known = book.known & balance.after(kept).open()
            known[kept] = True
            view = replace(book, known=known)
        return choice, picks, best >= 0


def _with_skipped(picks: Picks, seen: Outcomes) -> Outcomes:
    """Return an outcome for every pick: `SKIPPED` for the pages that were not visited."""
    what = np.full(len(picks), Unvisited.SKIPPED, np.int8)
    place = np.argsort(picks.pages, kind="stable")
    what[place[np.searchsorted(picks.pages, seen.pages, sorter=place)]] = seen.what
    return Outcomes(picks.pages, what)
