"""Experts heard side by side: each site believes those that have foretold its visits best.

The first expert is the `opinion`, with its shocks shared along the forms of addresses. The others, by name:

    alone        every page changes on its own, at a steady rate        (`steady`)
    directory    shocks shared within directories                       (`shocks`)
    links        shocks shared between pages that one page lists        (`shocks`, `hubs`)
    clusters     shocks shared between pages of like content            (`shocks`; T's clusters)
    pooled       one model over all pages, fitted as visits come in     (`pooling`)

What an expert is worth on a site is how likely it made what visits there found, against the first, each having been
told of the visits before them. The first is believed until another has done better by far: a simple expert is often
lucky for a while, and good guesses alone do not find out what has become of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.chunks import AnyFloats, Floats, by_parts
from recrawl.learn.chunks import Pages as AnyPages
from recrawl.learn.pooled.learner import PooledLearner
from recrawl.learn.rates.poisson import PoissonRate
from recrawl.learn.shocks.change_model import ChangeModel
from recrawl.learn.shocks.hubs import hubs
from recrawl.learn.shocks.model import DAY, Shocks
from recrawl.model import Outcomes, Pages

CAUTION = 15.0
"""How far, in log odds, the first expert is ahead of each other one before anything was seen."""
FADE = 0.9998
"""How much of the evidence stays when one more visit is taken in."""
_SUREST = 0.98
"""No expert is taken to be surer than this, so that no single visit can settle the matter."""
_HEARD = 1e-3
"""An expert that is believed less is not asked."""


class Expert(Protocol):
    """Somebody with chances of his own."""

    def chance(self, pages: Pages) -> AnyFloats:
        """The chances of pages of having changed since their last visits."""
        ...

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """What visits of the cycle that is going on have found."""
        ...

    def learn(self, seen: Outcomes, at: Floats) -> None:
        """Take in a whole cycle, before the book does, and save what is to stay."""
        ...


class Alone:
    """Pages that change on their own."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._steady = PoissonRate(book)

    def chance(self, pages: Pages) -> AnyFloats:
        """As it sees them."""
        return by_parts(self._steady.chance, pages)

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """One page says nothing of another."""

    def learn(self, seen: Outcomes, at: Floats) -> None:
        """A whole cycle."""
        first = seen.answered & (self._book.visits[seen.pages] == 0)
        self._steady.begin(seen.pages[first], at[first])
        self._book.memory["shock.since"] = self._steady.since


class Along:
    """Shocks that are shared along another grouping than that of the opinion; by site where there is none."""

    def __init__(self, book: Book, name: str, label: NDArray[np.int64] | None) -> None:
        self._book = book
        self._belief = Shocks.of(book, f"shock.along_{name}", label)

    def chance(self, pages: Pages) -> AnyFloats:
        """As it sees them."""
        return by_parts(lambda part: self._belief.chance(part, self._place(part)), pages)

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """Every visit says something of the group."""
        self._belief.observe(pages, self._place(pages), changed)

    def learn(self, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """A whole cycle."""
        self.observe(*told(self._book, seen))
        self._belief.keep(self._book)

    def _place(self, pages: AnyPages) -> Floats:
        return self._belief.bins.place(self._book.last_visit[pages] / DAY)


class PooledExpert:
    """A model over all pages that is fitted as visits come in."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._pooled = PooledLearner("shock.pooled")

    def chance(self, pages: Pages) -> AnyFloats:
        """As it sees them."""
        return self._pooled.predict(self._book, pages)[0]

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """It learns between cycles only."""

    def learn(self, seen: Outcomes, at: Floats) -> None:
        """A whole cycle."""
        self._pooled.update(self._book, seen, at)


def _by_links(book: Book) -> Expert:
    return Along(book, "links", None if book.links is None else hubs(book.links, book.site))


def _by_clusters(book: Book) -> Expert:
    return Along(book, "clusters", None if book.clusters is None else book.clusters.of.astype(np.int64))


EXPERTS: dict[str, Callable[[Book], Expert]] = {
    "alone": Alone,
    "directory": lambda book: Along(book, "directory", book.folder),
    "links": _by_links,
    "clusters": _by_clusters,
    "pooled": PooledExpert,
}
"""Those beside the opinion."""
NEEDS = {"links": frozenset({"links"}), "clusters": frozenset({"clusters"}), "pooled": frozenset({"folders"})}
"""What they need of a book beyond what the opinion does."""


@dataclass(slots=True)
class Mixture:
    """The opinion and other experts, and how far each site believes them."""

    book: Book
    opinion: ChangeModel
    others: dict[str, Expert]
    lead: Floats
    """Expert by site: how much likelier than the opinion it made what visits found, a logarithm, the past fading."""
    _weight: Floats = field(init=False)
    """Expert by site, the opinion first: how far it is believed."""

    def __post_init__(self) -> None:
        odds = np.vstack((np.zeros((1, self.lead.shape[1])), self.lead - CAUTION))
        likely = np.exp(odds - odds.max(axis=0))
        self._weight = likely / likely.sum(axis=0)

    @classmethod
    def of(cls, book: Book, names: Sequence[str]) -> Mixture:
        """What the book's memory holds."""
        lead = np.zeros((len(names), book.sites))
        kept = book.memory.get("shock.lead", lead[:, :0])
        lead[:, : kept.shape[1]] = kept
        return cls(book, ChangeModel.of(book), {name: EXPERTS[name](book) for name in names}, lead)

    def shared(self, pages: Pages) -> NDArray[np.bool_]:
        """Whether pages are thought to change with others, rather than on their own."""
        if "alone" not in self.others:
            return np.ones(len(pages), bool)
        row = 1 + list(self.others).index("alone")
        together: NDArray[np.bool_] = self._weight[row, self.book.site[pages]] < 1 / 2
        return together

    def chance(self, pages: Pages) -> AnyFloats:
        """The chances of pages of having changed since their last visits."""
        if not self.others or not (self._weight[1:] > _HEARD).any():
            return self.opinion.chance(pages)
        weight = self._weight[:, self.book.site[pages]].astype(np.float32)
        chance = np.zeros(len(pages), np.float32)
        experts: list[ChangeModel | Expert] = [self.opinion, *self.others.values()]
        for expert, believed in zip(experts, weight, strict=True):
            heard = np.flatnonzero(believed > _HEARD)
            if len(heard):
                chance[heard] += believed[heard] * expert.chance(pages[heard])
        return chance

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """What visits of the cycle that is going on have found."""
        self.opinion.observe(pages, changed)
        for expert in self.others.values():
            expert.observe(pages, changed)

    def judge(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """Note how likely each expert made what visits found that nobody has heard of yet."""
        if not self.others:
            return
        site, sites = self.book.site[pages], self.lead.shape[1]
        usual = _likely(self.opinion.chance(pages), changed)
        self.lead *= FADE ** np.bincount(site, minlength=sites)
        for row, expert in enumerate(self.others.values()):
            self.lead[row] += np.bincount(site, _likely(expert.chance(pages), changed) - usual, sites)

    def learn(self, seen: Outcomes, at: Floats, lead: Floats) -> None:
        """Take in a whole cycle, before the book does, and save what is to stay; `lead` is what judging it came to."""
        self.opinion.observe(*told(self.book, seen))
        self.opinion.keep(self.book)
        for expert in self.others.values():
            expert.learn(seen, at)
        self.book.memory["shock.lead"] = lead


def _likely(chance: AnyFloats, changed: NDArray[np.bool_]) -> Floats:
    """How likely chances made what was found, as logarithms."""
    held = np.clip(chance.astype(np.float64), 1 - _SUREST, _SUREST)
    return np.log(np.where(changed, held, 1 - held))


def told(book: Book, seen: Outcomes) -> tuple[Pages, NDArray[np.bool_]]:
    """The visits that say whether a page has changed: which, and what."""
    again = seen.answered & (book.visits[seen.pages] > 0)
    return seen.pages[again], seen.changed[again]
