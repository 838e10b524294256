"""Any policy, kept to an allowance: what it may not visit is given back to it, and the budget goes to its next best.

A policy knows nothing of limits. It is asked as always; those of its pages that do not fit are not visited, and it is
told so (`SKIPPED`). Two things see to it that the budget is spent all the same:

    before a first visit   nothing has been found yet, so the policy can simply be asked again, with the pages that were
                           turned away left out of the book, until what it asks for fits;
    when it has ended      it is asked once more, for what is left of the budget, among the pages that have room.

All of it follows from the book, the seed and what visits found, so a cycle that crashed makes the same choices again.
Without limits, and as long as no server turns us away, the policy is asked once, as if this were not here.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from recrawl.book import Book
from recrawl.choose.budget.allowance import Allowance, Flags, Floats, Purse
from recrawl.choose.protocol import Choice, Chooser
from recrawl.model import Outcomes, Picks, Unvisited

_ASKED_AGAIN = 16
"""How often a policy is asked anew before the first visit."""
_STEPS = 1000
"""How often a batch is filled up with what did not fit at first."""


class Budgeted:
    """A policy under an allowance; to be driven like any policy.

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
    ) -> None:
        self._policy = policy
        self._allowance = allowance
        self._expected = expected
        self._pushed = pushed

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Rounds of the policy, until the budget is spent or nothing that has room is wanted."""
        purse = Purse(self._allowance, book, budget, expected=self._expected, pushed=self._pushed)
        more = 1
        while purse.left > 0:
            known = purse.open()
            there, before, asked = int(np.count_nonzero(known)), purse.left, purse.left * more
            turned_away = False
            if there:
                turned_away = yield from self._round(replace(book, known=known), purse, asked, rng)
            if turned_away and (purse.left < before or asked < there):
                more *= 2  # so that a few rounds will do, however much of what is wanted is turned away
            elif not purse.release():
                return

    def _round(
        self, book: Book, purse: Purse, asked: int, rng: np.random.Generator
    ) -> Generator[Picks, Outcomes, bool]:
        """The policy from its beginning to its end; returns whether anything that it asked for was not visited."""
        choice, picks, turned_away = self._first(book, purse, asked, rng)
        try:
            while picks is not None:
                seen = yield from self._batch(picks, purse)
                turned_away |= int(np.count_nonzero(seen.visited)) < len(picks)
                if purse.left <= 0:
                    break
                picks = choice.send(_told(picks, seen))
        except StopIteration:
            pass
        finally:
            choice.close()
        return turned_away

    def _batch(self, picks: Picks, purse: Purse) -> Generator[Picks, Outcomes, Outcomes]:
        """As much of a batch as fits; where a page was not visited after all, its room goes to the next."""
        rest, parts = picks, [Outcomes(picks.pages[:0], np.zeros(0, np.int8))]
        for _ in range(_STEPS):
            fits = purse.fit(rest.pages)
            if len(rest) and not fits.any():
                break
            seen = yield rest.where(fits)
            purse.pay(seen)
            parts.append(seen)
            rest = rest.where(~fits)
            if not len(rest) or purse.left <= 0 or seen.visited.all():
                break
        pages, what = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pages", "what"))
        return Outcomes(pages, what)

    def _first(
        self, book: Book, purse: Purse, asked: int, rng: np.random.Generator
    ) -> tuple[Choice, Picks | None, bool]:
        """The policy's first batch, of those that it can be brought to ask for one that fits; and whether it had to."""
        view, most = book, -1
        for _ in range(_ASKED_AGAIN):
            choice = self._policy.cycle(view, asked, rng)
            picks = next(choice, None)
            if picks is None:
                break
            fits = purse.fit(picks.pages)
            many = int(np.count_nonzero(fits))
            if many == len(picks) or many >= purse.left or many <= most:
                break
            choice.close()
            most, kept = many, picks.pages[fits]
            known = book.known & purse.after(kept).open()
            known[kept] = True
            view = replace(book, known=known)
        return choice, picks, most >= 0


def _told(picks: Picks, seen: Outcomes) -> Outcomes:
    """What a policy is told of a batch of which a part was visited."""
    what = np.full(len(picks), Unvisited.SKIPPED, np.int8)
    place = np.argsort(picks.pages, kind="stable")
    what[place[np.searchsorted(picks.pages, seen.pages, sorter=place)]] = seen.what
    return Outcomes(picks.pages, what)
