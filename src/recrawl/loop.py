"""One cycle: a policy chooses pages, a world visits them, until the budget is spent; then the policy learns.

    run_cycle(policy, chooser, world, book, budget, seed, recorded)

runs live and in the lab. The world is the live web or an archive: one method, `visit`. `drive` is the only code that
touches a policy's generator, `note` the only code by which a policy and a book learn the outcomes.

Batches overlap where the policy allows it (`Picks.awaits`): the next batch is asked for when the outcomes that the
policy needs are there. The others come with a later batch, and the end of the cycle waits for all of them. Live, which
ones come with which batch follows from the choices (`Turns`), not from how fast servers answer.

To resume a crashed cycle, run the same policy again, from the same book and seed, in the world wrapped in `Resumed`:
the policy is told the same with each batch, so it makes the same choices; only missing visits are made.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import compress, islice
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Chooser, Learner, Policy
from recrawl.columns import Flags, Floats, Int32s
from recrawl.errors import PolicyError
from recrawl.model import NOTHING, WAIT, Outcomes, Picks

_MAY_LACK = 10
"""One in this many awaited pages need not have an outcome before the policy chooses again."""
_MAX_EMPTY = 1000
"""Empty batches in a row after which a policy counts as stuck."""


class World(Protocol):
    """Anything that answers visits."""

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages; return when those that the picks await (the first `Picks.needed`) have an outcome, or twice
        the time has passed in which `enough` of them had one.

        The result holds all outcomes that are there, also of earlier picks, each once. Picks that await all of their
        outcomes wait for those of earlier picks too. Fewer outcomes than awaited mean that the world has stopped: the
        cycle ends.
        """
        ...


class Recorded(NamedTuple):
    """Visits to learn from, each page at most once, with the book as it was before them."""

    book: Book
    seen: Outcomes
    at: Floats
    requested: Flags | None = None
    """False for failures without a request; None if all were requested."""


def run_cycle(
    policy: Policy,
    chooser: Chooser,
    world: World,
    book: Book,
    budget: int,
    seed: int,
    recorded: Callable[[], Iterable[Recorded]],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """One whole cycle: drive the chooser, then note the recorded visits.

    `chooser` is the policy, or the policy within limits (`Budgeted`). `recorded` gives the visits of the cycle once it
    is over. Returns False if `stop` ended the cycle: then nothing is learned until it is resumed and finished.
    """
    for _ in drive(chooser, world, book, budget, seed):
        if stop():
            return False
    if stop():
        return False
    for visits in recorded():
        note(policy, *visits)
    return True


def drive(policy: Chooser, world: World, book: Book, budget: int, seed: int) -> Iterator[Outcomes]:
    """The visits of one cycle: at most `budget` of them, no page twice, only known pages.

    A page that the world did not visit (`SKIPPED`, `HELD`) costs nothing. To spend the budget on other pages instead,
    or to set limits, drive the policy as `choose.budget.budgeted.Budgeted`.
    """
    choice = policy.cycle(book, budget, np.random.default_rng(seed))
    visits, empty = _Visits(world, book, budget), 0
    try:
        picks = next(choice, None)
        while picks is not None and visits.left > 0:
            seen = visits.make(picks)
            if visits.left <= 0 and not visits.stopped:  # a page that is not visited after all gives its visit back
                seen += visits.make(WAIT)
            yield seen
            empty = 0 if len(picks) else empty + 1
            if empty > _MAX_EMPTY:
                raise PolicyError(f"a policy yielded more than {_MAX_EMPTY} empty batches in a row")
            if visits.stopped:
                return
            try:
                picks = choice.send(seen)
            except StopIteration:
                break
        if visits.under_way:
            yield visits.make(WAIT)
    finally:
        choice.close()


def note(policy: Policy, book: Book, seen: Outcomes, at: Floats, requested: Flags | None = None) -> None:
    """The end of a cycle: the policy learns from the outcomes, then the book records them."""
    if isinstance(policy, Learner):
        policy.learn(book, seen, at)
    book.known[seen.pages] = True  # they were visited; live, the book may be older than their discovery
    book.note(seen, at, requested)


class _Visits:
    """The visits of a cycle: what is left of the budget, and what is under way."""

    def __init__(self, world: World, book: Book, budget: int) -> None:
        self._world = world
        self._book = book
        self.left = budget
        """Visits that may still be asked for."""
        self.under_way = 0
        self.stopped = False
        """Whether the world has returned fewer outcomes than awaited."""
        self._place = np.zeros(len(book), np.int32)  # takes memory where pages were chosen only
        """Of each page: its place in the order of choice, from 1 on; 0 for pages not chosen so far."""
        self._chosen = 0

    def make(self, picks: Picks) -> Outcomes:
        """Visit the pages within the budget; return the outcomes that are there, in the order of choice."""
        picks = picks.first(self.left) if len(picks) > self.left else picks
        self._check(picks)
        begin, self._chosen = self._chosen, self._chosen + len(picks)
        self.under_way += len(picks)
        if not self.under_way:
            return NOTHING
        seen = self._world.visit(picks)
        place = self._place[seen.pages] - 1
        self.under_way -= len(seen)
        self.left += int(np.count_nonzero(~seen.visited)) - len(picks)
        awaited = (place >= begin) & (place < begin + picks.needed)
        self.stopped = falls_short(picks, int(np.count_nonzero(awaited)), self.under_way)
        return seen.take(np.argsort(place, kind="stable"))

    def _check(self, picks: Picks) -> None:
        """Raise on invalid picks, else note their place."""
        pages, book = picks.pages, self._book
        if len(pages) != len(picks.score):
            raise PolicyError(f"a policy chose {len(pages)} pages with {len(picks.score)} scores: one each is needed")
        if not 0 <= picks.awaits <= 1:
            raise PolicyError(f"a policy awaits {picks.awaits} of its picks: use a share from 0 to 1")
        if len(picks) and (pages.min() < 0 or pages.max() >= len(book)):
            raise PolicyError("a policy chose a page that does not exist")
        here = np.arange(self._chosen + 1, self._chosen + 1 + len(picks), dtype=np.int32)
        again = self._place[pages].any()
        self._place[pages] = here
        if again or (len(here) > 1 and not np.array_equal(self._place[pages], here)):
            raise PolicyError("a policy chose a page twice in one cycle")
        if not book.known[pages].all():
            raise PolicyError("a policy chose a page that may not be visited")


def enough(picks: Picks) -> int:
    """How many of the awaited pages must have an outcome: all but a tenth, since servers may hang.

    >>> enough(Picks(np.arange(100), np.ones(100), "it was due", awaits=0.5))
    45
    """
    return picks.needed - (picks.needed // _MAY_LACK if picks.awaits < 1 else 0)


def falls_short(picks: Picks, answered: int, under_way: int) -> bool:
    """Whether an awaited outcome is missing: so many of them came, with so many visits still under way."""
    return under_way > 0 if picks.awaits >= 1 else answered < enough(picks)


class Turns:
    """Which outcomes a policy is told with which batch: those of the pages whose turn comes until it is told.

    All sites are taken to answer at one pace: until the site with the most awaited pages of a batch has answered these,
    each site answers as many, the awaited ones first. So what a policy is told follows from its choices. If it followed
    from how fast servers answer, a cycle that is resumed after a crash would choose other pages.

    >>> turns = Turns(np.array([0, 0, 0, 0, 1, 1]))
    >>> turns.due(Picks(np.array([0, 4, 1, 2]), np.ones(4), "why", awaits=0.5))
    [0, 4]
    >>> turns.told([0, 4])
    >>> turns.due(Picks(np.array([3, 5]), np.ones(2), "why", awaits=0.5)), turns.due(WAIT)
    ([3, 5], [3, 1, 2, 5])
    """

    def __init__(self, site: Int32s | None = None) -> None:
        """`site` is the site of each page; without it, all are of one."""
        self._site = site
        self._queues: dict[int, deque[int]] = {}
        """The pages of each site whose outcome was not told yet."""

    def due(self, picks: Picks) -> list[int]:
        """The pages whose outcome is told when these are chosen; they count as not told until `told` says so."""
        pages, needed, queues = picks.pages.tolist(), picks.needed, self._queues
        sites = [0] * len(pages) if self._site is None else self._site[picks.pages].tolist()
        if picks.awaits >= 1:
            needed = 0
        for page, site in zip(pages[needed:], sites[needed:], strict=True):
            queues.setdefault(site, deque()).append(page)
        for page, site in zip(reversed(pages[:needed]), reversed(sites[:needed]), strict=True):
            queues.setdefault(site, deque()).appendleft(page)
        if picks.awaits >= 1:
            return [page for queue in queues.values() for page in queue]
        most = max(Counter(sites[:needed]).values(), default=0)
        return [page for queue in queues.values() for page in islice(queue, most)]

    def told(self, pages: Iterable[int]) -> None:
        """The policy was told of these pages."""
        gone = set(pages)
        sites = self._queues if self._site is None else set(self._site[np.fromiter(gone, np.int64, len(gone))].tolist())
        for site in list(sites):
            left = deque(page for page in self._queues[site] if page not in gone)
            if left:
                self._queues[site] = left
            else:
                del self._queues[site]


class WaitingWorld(Protocol):
    """A world that can be asked for the outcomes of single pages."""

    def visit(self, picks: Picks, due: Collection[int] = (), /) -> Outcomes:
        """Visit the pages; return when all pages that are `due` have an outcome, also those of earlier picks.

        The result may hold others, too, each once. Picks that await all of their outcomes wait for all that is under
        way. Of the awaited pages a tenth may lack (`enough`), as may others, if their servers take very long for an
        answer. Fewer outcomes than that mean that the world has stopped: the cycle ends.
        """
        ...


class Resumed:
    """The world of a live cycle, where some of its visits may have been made before.

    The policy is told of the pages whose turn it is (`Turns`), so that the same visits lead to the same choices. What
    it was told before is told again, word for word (`sent`). That may be more than was recorded: visits whose outcome
    the policy knows and that a crash has lost are made again; what they find now is recorded, but changes no choice.
    """

    def __init__(
        self,
        world: WaitingWorld,
        recorded: dict[int, int],
        received: dict[int, int] | None = None,
        *,
        site: Int32s | None = None,
        sent: Iterable[Outcomes] = (),
        delivered: Callable[[Outcomes], None] = lambda _: None,
    ) -> None:
        """`recorded` and `received` give outcome and bytes of pages that were visited before, `sent` the outcomes that
        were returned then, call by call; `delivered` gets what later calls return. `site` is the site of each page.
        """
        self._world = world
        self._turns = Turns(site)
        self._sent = deque(sent)
        self._delivered = delivered
        self._recorded = recorded.keys()
        self._known = dict(recorded)
        self._received = None if received is None else dict(received)
        self._told: set[int] = set()
        """Pages of `sent`: whatever the world says of them comes too late."""
        self._again: set[int] = set()
        """Those of them that are visited again."""
        self._waiting: dict[int, None] = {}
        """Chosen pages whose outcome was not returned yet, in the order of choice."""
        for seen in self._sent:
            self._add(seen)
            self._told.update(seen.pages.tolist())

    def visit(self, picks: Picks) -> Outcomes:
        """Answer from the record, or else from the world."""
        chosen = picks.pages.tolist()
        self._waiting.update(dict.fromkeys(chosen))
        due = self._turns.due(picks)
        rest = picks.where(np.array([page not in self._recorded for page in chosen], bool))
        if self._repeats(picks):
            if len(rest):  # these were under way when the cycle was interrupted, or were lost
                self._again.update(self._told.intersection(rest.pages.tolist()))
                self._add(self._world.visit(replace(rest, awaits=0.0)))
            return self._return(self._sent.popleft().pages.tolist())
        lacking = [page for page in due if page not in self._known]
        if len(rest) or lacking:
            self._add(self._world.visit(rest, lacking))
        there = set(due).intersection(self._known)
        seen = self._return([page for page in self._waiting if page in there])
        if not falls_short(picks, int(np.isin(picks.pages[: picks.needed], seen.pages).sum()), len(self._waiting)):
            self._delivered(seen)
        return seen

    def complete(self) -> None:
        """At the end of the cycle: make the visits again that were lost, of which the policy knows."""
        if self._again:
            self._add(self._world.visit(WAIT))

    def _repeats(self, picks: Picks) -> bool:
        """Whether the next batch that was sent fits; not if the policy, a new version of it, has chosen other pages."""
        if not self._sent:
            return False
        pages = set(self._sent[0].pages.tolist())
        answered = len(pages.intersection(picks.pages[: picks.needed].tolist()))
        if not pages <= self._waiting.keys() or falls_short(picks, answered, len(self._waiting) - len(pages)):
            self._sent.clear()
        return bool(self._sent)

    def _add(self, seen: Outcomes) -> None:
        pages = seen.pages.tolist()
        self._again.difference_update(pages)
        new = [page not in self._told for page in pages]
        self._known.update(zip(compress(pages, new), compress(seen.what.tolist(), new), strict=True))
        if self._received is not None and seen.received is not None:
            self._received.update(zip(compress(pages, new), compress(seen.received.tolist(), new), strict=True))

    def _return(self, pages: list[int]) -> Outcomes:
        self._turns.told(pages)
        for page in pages:
            del self._waiting[page]
        what = np.array([self._known[page] for page in pages], np.int8)
        received = self._received
        bytes_ = None if received is None else np.array([received.get(page, 0) for page in pages], np.int64)
        return Outcomes(np.array(pages, np.int64), what, bytes_)
