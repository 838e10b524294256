"""A policy kept within an allowance.

Policies know no limits. Pages that do not fit are not visited, and the policy receives the outcome `SKIPPED` for them,
or `HELD` if their site gets no more visits. `known` of the policy's book then loses all pages that may not be visited
any more, so that a policy that looks there does not pick them one after the other.

Two steps make sure that the budget is spent all the same:

    before the first visit   nothing was found yet, so the policy starts again with the refused pages removed from the
                             book, until its first batch fits;
    after it has ended       the policy starts again with the rest of the budget and the pages that still fit.

`Rechecks` are pages that the policy does not know: some before its first visit, the others with what it leaves.

Visits under way count against the limits until their outcomes are known. A policy starts again only when none is left.

The result depends only on the book, the seed and the outcomes, so a crashed cycle makes the same choices again. Without
limits, and if no server is held, the policy runs once, unchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.book import Book
from recrawl.choose.budget.allowance import Allowance, Balance
from recrawl.choose.budget.fair import Commons
from recrawl.choose.protocol import Choice, Chooser
from recrawl.columns import Flags, Floats, Ints
from recrawl.model import NOTHING, WAIT, Outcomes, Pages, Picks, Unvisited

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
        reserved: Ints | None = None,
        hope: Floats | None = None,
        commons: Commons | None = None,
        rechecks: Rechecks | None = None,
    ) -> None:
        """`commons` is what a shard of a cluster knows of the others: it finds the claims when the cycle begins."""
        self._policy = policy
        self._allowance = allowance
        self._expected = expected
        self._pushed = pushed
        self._reserved, self._hope = reserved, hope
        self._commons = commons
        self.held: dict[int, tuple[int, int]] = {}
        """The sites of a shard that are held to their share (see `Claims.held`), once the cycle has begun."""
        self.rechecks = rechecks or Rechecks(np.zeros(0, np.int64), 0)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Run the policy in rounds, until the budget is spent or no page that it picks fits."""
        book = self.without_rechecks(book)
        reserved, hope = self._reserved, self._hope
        if self._commons is not None:
            found = self._commons.claims(book, budget)
            reserved, hope, self.held = found.reserved, found.hope, found.held()
        balance = Balance(
            self._allowance,
            book,
            budget,
            expected=self._expected,
            pushed=self._pushed,
            reserved=reserved,
            hope=hope,
            commons=self._commons,
        )
        account = _Account(balance)
        first, others = np.split(self.rechecks.pages, [self.rechecks.reserved])
        yield from self._recheck(first, account)
        factor = 1
        while account.available.left > 0:
            known = account.available.open()
            available, before = int(np.count_nonzero(known)), account.available.left
            round_budget, refused = before * factor, False
            if available:
                refused = yield from self._round(replace(book, known=known), account, round_budget, rng)
            if refused and (account.settled.left < before or round_budget < available):
                factor *= 2  # so that a few rounds suffice, however many picks are refused
            elif not account.release():
                break
        yield from self._recheck(others, account)

    def without_rechecks(self, book: Book) -> Book:
        """The book as the policy sees it."""
        known = book.known.copy()
        known[self.rechecks.pages] = False
        return replace(book, known=known)

    def _recheck(self, pages: Pages, account: _Account) -> Generator[Picks, Outcomes, None]:
        if len(pages) and account.available.left > 0:
            yield from self._batch(Picks(pages, np.zeros(len(pages)), RECHECK, awaits=0.0), account)

    def _round(
        self, book: Book, account: _Account, budget: int, rng: np.random.Generator
    ) -> Generator[Picks, Outcomes, bool]:
        """Run the policy once and wait for all of its visits; return whether any of its picks was not visited."""
        choice, picks, view = self._start(book, account.available, budget, rng)
        refused = view is not book
        chosen = np.zeros(len(book), bool)
        try:
            while picks is not None:
                chosen[picks.pages] = True
                seen, left_out = yield from self._batch(picks, account)
                refused |= len(left_out) > 0 or not seen.visited.all()
                if account.available.left <= 0:
                    break
                if account.available.used_up(left_out).any():
                    view.known &= account.available.open()
                picks = choice.send(_with_refused(picks, seen.take(chosen[seen.pages]), left_out, account.available))
        except StopIteration:
            pass
        finally:
            choice.close()
        if len(account.under_way):
            seen = account.pay((yield WAIT))
            refused |= not seen.visited.all()
        return refused

    def _batch(self, picks: Picks, account: _Account) -> Generator[Picks, Outcomes, tuple[Outcomes, Pages]]:
        """Visit the pages of a batch that fit; if some were not visited after all, their room goes to the next.

        Returns the outcomes that are there, and the pages that did not fit.
        """
        rest, seen = picks, NOTHING
        for _ in range(_MAX_REFILLS):
            fits = account.available.fit(rest.pages)
            if len(rest) and not fits.any():
                break
            part = account.pay((yield account.take(rest.where(fits))))
            seen += part
            rest = rest.where(~fits)
            if not len(rest) or account.available.left <= 0 or part.visited.all():
                break
        return seen, rest.pages

    def _start(
        self, book: Book, balance: Balance, budget: int, rng: np.random.Generator
    ) -> tuple[Choice, Picks | None, Book]:
        """Start the policy, again while more of its first batch can fit; return also the book that it sees."""
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
        return choice, picks, view


class _Account:
    """The balance of a cycle whose batches overlap: visits under way count as made, until their outcomes say more."""

    def __init__(self, balance: Balance) -> None:
        self.settled = balance
        """After the visits whose outcomes are known."""
        self.available = balance
        """After all visits, those under way included."""
        balance.tell()
        self.under_way: Pages = np.zeros(0, np.int64)

    def take(self, picks: Picks) -> Picks:
        """These pages are to be visited."""
        self.under_way = np.concatenate((self.under_way, picks.pages))
        return picks

    def pay(self, seen: Outcomes) -> Outcomes:
        """Deduct visits whose outcomes are known now."""
        self.settled.pay(seen)
        self.under_way = self.under_way[~np.isin(self.under_way, seen.pages)]
        self._update()
        return seen

    def release(self) -> bool:
        """Make reserved visits that nothing uses available to all pages; return False if none were reserved."""
        had = self.settled.release()
        self._update()
        return had

    def _update(self) -> None:
        self.settled.tell()
        self.available = self.settled.after(self.under_way) if len(self.under_way) else self.settled


def _with_refused(picks: Picks, seen: Outcomes, left_out: Pages, balance: Balance) -> Outcomes:
    """Return also the pages of the batch that were left out, as `SKIPPED`, or `HELD` if nothing is left for their site.

    Outcomes of earlier batches come first.
    """
    if not len(left_out):
        return seen
    held = balance.used_up(left_out)
    both = seen + Outcomes(left_out, np.where(held, Unvisited.HELD, Unvisited.SKIPPED).astype(np.int8))
    place = np.full(len(both), -1)
    _, in_picks, in_both = np.intersect1d(picks.pages, both.pages, assume_unique=True, return_indices=True)
    place[in_both] = in_picks
    return both.take(np.argsort(place, kind="stable"))
