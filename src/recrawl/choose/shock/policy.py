"""Policy `shock`, the default: pages of a group change together, so a visit updates the probability of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.shards.rounds import Stage, one_shard
from recrawl.choose.shock.plan import LoadedModels, Objective, ShockPlan, last_visits, observe_signals
from recrawl.choose.shock.shard import BATCH, NEW, OVERDUE, PROBES, ShockShard
from recrawl.columns import Flags, Floats
from recrawl.errors import UsageError
from recrawl.learn.hints import Signals
from recrawl.learn.shocks.mixture import Mixture, compared_visits
from recrawl.learn.value import OBJECTIVES
from recrawl.model import Outcomes, Pages

MAX_PARTS = 6
"""The models are scored on a cycle's visits in at most this many parts ..."""
MIN_PART = 16
"""... of at least this many visits."""


class Shock:
    """Visits the pages with the highest expected gain, given that pages of a group change together (the default).

    Each page has a change rate, and each group of pages (those of one site whose URLs have one template) a history of
    shocks: times of far more changes than usual. A visit updates the page, its group and its site, so one changed page
    of a rebuilt site moves the others to the front within the same cycle. The prediction is averaged with that of a
    small network, fitted on many sites, which also uses the outcomes of visits to pages of the same URL template,
    directory and site. On sites whose pages change independently, a Poisson model per page takes over. For an uncertain
    group, a batch samples two pages; it visits the rest only if those changed. A new page makes changes of
    the pages that may list it likelier. Hints count as far as they proved right.
    Pages that were never downloaded come first. Every site is visited now and then, and some batches use rates drawn
    from their posterior, so that no page is excluded for ever.

    Parameters
    ----------
    objective
        What to maximise: `changes` found, `freshness`, `harmonic` staleness (lowest), `age` (lowest), or new `links`.
        With harmonic staleness and age, every page is visited. For age, half of a page's wait counts whatever the
        models say of changes: a belief that nothing has changed costs more the longer it lasts.
    batches
        The number of batches per cycle; the outcomes of a batch decide on the next.
    curiosity
        The extra value of the first visit to a group in a cycle for what it tells of the group's other pages; 0 for
        none.
    explore
        The share of batches that use rates drawn from their posterior.
    probe
        The share of the budget that is divided among sites by their number of pages: a site is visited when its part
        adds up to one visit since its last visit, however low its expected gain is. A site whose sources of hints
        signal its changes gets less, at least a fifth.
    experts
        `alone` to average with a Poisson model, in which every page changes on its own; `none` for the change model
        only.
    patience
        The number of rounds (the time in which the budget could visit all pages) after which a page is visited in any
        case; such pages get at most a tenth of the budget. 0 means never.
    prior
        Whether pages of a group differ by what their first download tells of them (URL, years and numbers in the text)
        and by their age, as far as visits to the site confirm it.

    Example
    -------
    >>> from recrawl.columns import DAY
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(4, now=10 * DAY)
    >>> book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, [9 * DAY, 2 * DAY, 5 * DAY, 8 * DAY]
    >>> batches(Shock(explore=0), book, budget=2)
    [[1], [2]]

    Source: common-shock frailty with nested Gamma priors, Thompson batches, a stacked network; recrawl's own.
    """

    name: ClassVar[str] = "shock"
    source: ClassVar[str] = "recrawl's own: shocks common to groups of pages, hints, and a fitted network"
    needs: ClassVar[frozenset[str]] = frozenset({"folders", "forms", "hints", "prior"})

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
        prior: bool = True,
    ) -> None:
        if objective not in OBJECTIVES:
            raise UsageError(f"shock's objective must be one of {', '.join(OBJECTIVES)}, not '{objective}'")
        if not (1 <= batches <= 1000 and batches == int(batches)):
            raise UsageError(f"shock's batches must be a whole number from 1 to 1000, not {batches}")
        for name, share in (("explore", explore), ("probe", probe)):
            if not 0 <= share <= 1:
                raise UsageError(f"shock's {name} must be a share from 0 to 1, not {share}")
        if not 0 <= curiosity < float("inf"):
            raise UsageError(f"shock's curiosity must be a number, 0 for none, not {curiosity}")
        if not 0 <= patience < float("inf"):
            raise UsageError(f"shock's patience must be a number of rounds, 0 for never, not {patience}")
        if experts not in ("alone", "none"):
            raise UsageError(f"shock's experts must be alone or none, not '{experts}'")
        self.objective: Objective = objective
        self.batches = batches
        self.curiosity = curiosity
        self.explore = explore
        self.probe = probe
        self.patience = patience
        self.experts = experts
        self.prior = prior
        self._poisson = experts == "alone"
        self._loaded: tuple[Book, float, LoadedModels] | None = None
        """What was loaded to estimate change probabilities, of which book and time: a cycle may begin with it."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield pages never downloaded, pages that waited too long, one page of sites due for a probe, then batches."""
        return one_shard(self, book, budget, rng)

    def stages(self, budget: int) -> Iterator[Stage]:
        """The stages of a cycle; the outcomes of each decide on the next, but for pages never downloaded."""
        yield Stage(NEW, budget, pooled=True, awaits=0.0)
        yield Stage(OVERDUE, budget // 10, pooled=True)
        yield Stage(PROBES, max(1, int(2 * self.probe * budget)))
        yield from repeat(Stage(BATCH, -(-budget // int(self.batches))), int(self.batches))

    def begin(self, book: Book, budget: int, rng: np.random.Generator) -> ShockShard:
        """Return the plan of a shard."""
        return ShockShard(self, book, budget, rng)

    def plan(self, book: Book, open_: Flags, budget: int, *, pages: int = 0, weighted: bool = False) -> ShockPlan:
        """Return the state of a new cycle; for `pages` and `weighted` see `ShockPlan`."""
        return ShockPlan(
            book,
            open_,
            budget,
            objective=self.objective,
            poisson=self._poisson,
            prior=self.prior,
            pages=pages,
            weighted=weighted,
            state=self._take_loaded(book),
        )

    def _take_loaded(self, book: Book) -> LoadedModels | None:
        """Return the state that was loaded from this book, as long as nothing was learned and no time has passed."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return None
        before, now, state = loaded
        same = before.memory is book.memory and before.hints is book.hints and before.visits is book.visits
        return state if same and now == book.now else None

    def change_probability(self, book: Book, pages: Pages) -> Floats:
        """Return the probability that each page has changed since its last visit, hints included."""
        state = LoadedModels.of(book, poisson=self._poisson, prior=self.prior)
        self._loaded = book, book.now, state
        return np.asarray(state.signals.predict(pages, state.mixture.predict(pages)), np.float64)

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Update the models with all visits of the cycle."""
        self._loaded = None
        scored = self._score(book, *compared_visits(book, seen))
        Mixture.of(book, poisson=self._poisson, prior=self.prior).learn(seen, at, scored)
        visited = last_visits(book)
        np.maximum.at(visited, book.site[seen.pages], at)
        book.memory["shock.visited"] = visited

    def _score(self, book: Book, pages: Pages, changed: Flags) -> Mixture:
        """Update and store the trust in sources of hints; return the mixture with its updated evidence.

        A cycle finds many changes because of what it found earlier in the cycle; predictions from before the cycle
        would miss them. So the models are scored part by part, each after observing the parts before it.
        """
        mixture = Mixture.of(book, poisson=self._poisson, prior=self.prior)
        signals = Signals.of(book)
        visits = len(pages) / book.share  # of all shards
        number = min(MAX_PARTS, 1 + int(visits) // MIN_PART, max(1, len(pages)))
        parts = np.array_split(np.arange(len(pages)), number)
        for number, part in enumerate(parts, 1):
            observe_signals(mixture, signals, pages[part], changed[part])
            mixture.score(pages[part], changed[part])
            if number < len(parts):  # no prediction follows the last part
                mixture.observe(pages[part], changed[part])
        signals.keep(book)
        return mixture
