"""The default: pages change together, in bursts; what a visit finds says something of all pages like it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.shock.plan import FEW, Objective, Plan, cycle_length, last_visits, weigh_hints
from recrawl.errors import UsageError
from recrawl.learn.hints.trust import Signals
from recrawl.learn.shocks.mixture import EXPERTS, NEEDS, Mixture, told
from recrawl.learn.value.objectives import OBJECTIVES
from recrawl.model import Outcomes, Pages, Picks

PARTS = 6
"""A cycle's visits are judged in so many parts ..."""
LEAST = 16
"""... of no fewer visits than this."""


class Shock:
    """Visits what has most likely changed, believing that pages like one another change together (the default).

    Each page has a rate of change, and each group of pages (those of one site whose addresses have one form) a history
    of shocks: times when far more happened to it than usual. A visit moves the belief of the page, of its group and of
    its site, so one changed page of a site that was rebuilt brings the others to the front within the same cycle. A
    small network that has learnt how far to trust this belief, and what visits to pages of the same form, directory and
    site say, is averaged with it. Other experts are heard beside it, and a site believes them where they have foretold
    its visits better. Of a group of which it is not sure, a few pages are tried first, the sooner the more there is to
    be learnt from them. Hints of servers are believed as far as they proved right. Pages that were never downloaded
    come first. No site is left alone for long, and some batches are drawn by chance from the belief, so that nothing is
    taken for granted.

    Parameters
    ----------
    objective
        What a visit is for: `changes` found, `freshness` of the repository, `harmonic` staleness, `age`, or new
        `links`. Harmonic staleness and age leave no page alone for long.
    batches
        How many batches a cycle is cut into: what one finds decides on the next.
    curiosity
        How much the first visit to a group in a cycle is worth for what it tells of the group's other pages. 0 is
        nothing: only what it will likely find counts.
    explore
        The share of batches that are drawn from the belief instead of taking what is best by it.
    probe
        The share of the budget that belongs to sites by their number of pages: one that has had no visit for as long as
        its part of this share is worth a visit gets one, however little is expected of it. A site whose sources of
        hints tell of its changes is owed the fewer, down to a fifth.
    experts
        Who else is heard, joined by `+`: `alone` (each page changes on its own), `directory`, `links`, `clusters`
        (shocks shared along these instead of forms of addresses), `pooled` (a model fitted here); or `none`.
    patience
        After how many rounds (the time that the budget takes for all pages) a page is visited in any case; such pages
        get a tenth of the budget at most. 0 is never.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.learn.shocks.model import DAY
    >>> from recrawl.loop import drive
    >>> book = Book.blank(4, now=10 * DAY)
    >>> book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, [9 * DAY, 2 * DAY, 5 * DAY, 8 * DAY]
    >>> [seen.pages.tolist() for seen in drive(Shock(explore=0), Still(), book, budget=2, seed=1)]
    [[1], [2]]

    Source: common-shock frailty with nested Gamma priors, Thompson batches, a stacked network; recrawl's own.
    """

    name: ClassVar[str] = "shock"
    source: ClassVar[str] = "recrawl's own: common shocks shared between pages alike, hints, and a learnt opinion"
    needs: frozenset[str] = frozenset({"forms", "hints"})

    def __init__(
        self,
        *,
        objective: Objective = "changes",
        batches: int = 24,
        curiosity: float = 4.0,
        explore: float = 0.02,
        probe: float = 0.04,
        patience: float = 20.0,
        experts: str = "alone",
    ) -> None:
        if objective not in OBJECTIVES:
            raise UsageError(f"shock's objective is {', '.join(OBJECTIVES)}, not '{objective}'")
        if not (1 <= batches <= 1000 and batches == int(batches)):
            raise UsageError(f"shock's batches is a whole number from 1 to 1000, not {batches}")
        for name, share in (("explore", explore), ("probe", probe)):
            if not 0 <= share <= 1:
                raise UsageError(f"shock's {name} is a share from 0 to 1, not {share}")
        if not 0 <= curiosity < float("inf"):
            raise UsageError(f"shock's curiosity is a number, 0 for none, not {curiosity}")
        if not 0 <= patience < float("inf"):
            raise UsageError(f"shock's patience is a number of rounds, 0 for never, not {patience}")
        self.objective: Objective = objective
        self.batches = batches
        self.curiosity = curiosity
        self.explore = explore
        self.probe = probe
        self.patience = patience
        self.experts = experts
        self._heard = _experts(experts)
        self.needs = frozenset({"forms", "hints"}).union(*(NEEDS.get(name, ()) for name in self._heard))

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Never downloaded pages, pages that waited too long, then batches."""
        open_ = book.known & (book.visits > 0)
        new = np.flatnonzero(book.known & (book.visits == 0))[:budget]
        if len(new):
            yield Picks(new, np.ones(len(new)), "was never downloaded")
        left = budget - len(new)
        waited = _overdue(book, open_, self.patience, budget)[: min(left, budget // 10)]
        if left <= 0 or not open_.any():
            return
        plan = self.plan(book, open_, budget)
        if len(waited):
            plan.take((yield Picks(waited, np.ones(len(waited)), "has waited as long as any page may")))
            left -= len(waited)
        probes = plan.probes(self.probe * budget)[:left]
        if len(probes):
            plan.take((yield Picks(probes, plan.chance[probes].astype(np.float64), "its site was left alone for long")))
            left -= len(probes)
        step = -(-budget // int(self.batches))
        while left > 0 and plan.left:
            picks = self._batch(plan, min(step, left), left, rng)
            seen = yield picks
            left -= len(picks)
            if left > 0:
                plan.take(seen)

    def _batch(self, plan: Plan, many: int, left: int, rng: np.random.Generator) -> Picks:
        """The pages worth most, or those that a draw says are; so many of the visits that are left."""
        drawn = rng.random() < self.explore
        worth = plan.worth(plan.drawn(rng) if drawn else plan.chance)
        if not drawn:
            after = left - many  # what is learnt is for these visits
            plan.raise_telling(worth, self.curiosity * after / left, after)
        best = plan.best(worth, many, each=1 if drawn else FEW)
        reason = "may have changed: drawn by its chances" if drawn else "has most likely changed"
        return Picks(best, worth[best].astype(np.float64), reason)

    def plan(self, book: Book, open_: NDArray[np.bool_], budget: int) -> Plan:
        """What the cycle goes by."""
        return Plan(book, open_, budget, objective=self.objective, experts=self._heard)

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Take in a cycle: what the cycle went by, moved by all its visits."""
        lead = self._judged(book, *told(book, seen))
        Mixture.of(book, self._heard).learn(seen, at, lead)
        visited = last_visits(book)
        np.maximum.at(visited, book.site[seen.pages], at)
        book.memory["shock.visited"] = visited

    def _judged(self, book: Book, pages: Pages, changed: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What visits say of the sources of hints, which is saved, and of experts, which is given.

        Much of what a cycle finds it was led to by what it had found already, and would be a surprise to who knew only
        what was known when it began. So the visits are gone through in parts, by a council that hears of one after the
        other.
        """
        if not self._heard and book.hints is None:
            return np.zeros((0, book.sites))
        council, signals = Mixture.of(book, self._heard), Signals.of(book)
        parts = np.array_split(np.arange(len(pages)), min(PARTS, 1 + len(pages) // LEAST))
        for number, part in enumerate(parts, 1):
            weigh_hints(council, signals, pages[part], changed[part])
            council.judge(pages[part], changed[part])
            if number < len(parts):  # nobody would hear of the last
                council.observe(pages[part], changed[part])
        signals.keep(book)
        return council.lead


def _experts(text: str) -> tuple[str, ...]:
    """The experts that a text names."""
    names = () if text == "none" else tuple(text.split("+"))
    if not set(names) <= EXPERTS.keys() or len(set(names)) < len(names):
        raise UsageError(f"shock's experts are {', '.join(EXPERTS)}, joined by +, or none, not '{text}'")
    return names


def _overdue(book: Book, open_: NDArray[np.bool_], patience: float, budget: int) -> NDArray[np.int64]:
    """Pages that have waited longer than any page may, the longest first."""
    length = cycle_length(book)
    if not patience or budget <= 0 or not length:
        return np.zeros(0, np.int64)
    round_ = np.count_nonzero(book.known) / budget * length
    waited = book.now - book.last_try
    late = np.flatnonzero(open_ & (waited > patience * round_))
    return late[np.argsort(-waited[late], kind="stable")]
