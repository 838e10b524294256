"""The change model and the Poisson model, averaged per site by how well they predicted visits.

A model's lead on a site is the log-likelihood of the outcomes of visits there, relative to the change model, each model
having observed the earlier visits. The change model is preferred until the Poisson model has a clear lead: a simple
model is often lucky for a while, and good predictions of single pages do not detect a shock of a group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.book import Book
from recrawl.columns import Flags, Floats
from recrawl.learn.chunks import AnyFloats, map_chunks
from recrawl.learn.shocks.change_model import ChangeModel
from recrawl.learn.shocks.poisson import PoissonRate
from recrawl.model import Outcomes, Pages

INITIAL_LEAD = 15.0
"""The change model's lead before any visit, in log odds."""
FADE = 0.9998
"""The factor by which a site's evidence decays with each visit."""
_MAX_PROBABILITY = 0.98
"""Predictions are limited to this, so that no single visit decides."""
_MIN_WEIGHT = 1e-3
"""Models below this weight are skipped."""


@dataclass(slots=True)
class Mixture:
    """The two models, and their weights per site; without a Poisson model, the change model alone."""

    book: Book
    change_model: ChangeModel
    poisson: PoissonRate | None
    lead: Floats
    """One row (none without a Poisson model), by site: its log-likelihood minus the change model's, decayed."""
    _weight: Floats = field(init=False)
    """Model by site, the change model first: its weight."""

    def __post_init__(self) -> None:
        odds = np.vstack((np.zeros((1, self.lead.shape[1])), self.lead - INITIAL_LEAD))
        likelihood = np.exp(odds - odds.max(axis=0))
        self._weight = likelihood / likelihood.sum(axis=0)

    @classmethod
    def of(cls, book: Book, *, poisson: bool = True) -> Mixture:
        """Load the state from the book's memory."""
        lead = np.zeros((int(poisson), book.sites))
        kept = book.memory.get("shock.lead", lead[:, :0])
        lead[:, : kept.shape[1]] = kept
        return cls(book, ChangeModel.of(book), PoissonRate(book) if poisson else None, lead)

    def shared(self, pages: Pages) -> Flags:
        """Return which pages change with their groups rather than independently, by the models' weights."""
        if self.poisson is None:
            return np.ones(len(pages), bool)
        together: Flags = self._weight[1, self.book.site[pages]] < 1 / 2
        return together

    def predict(self, pages: Pages) -> AnyFloats:
        """Return the probability that each page has changed since its last visit."""
        if self.poisson is None or not (self._weight[1] > _MIN_WEIGHT).any():
            return self.change_model.predict(pages)
        weight = self._weight[:, self.book.site[pages]].astype(np.float32)
        probability = np.zeros(len(pages), np.float32)
        for share, predict in zip(weight, (self.change_model.predict, self._predict_poisson), strict=True):
            rows = np.flatnonzero(share > _MIN_WEIGHT)
            if len(rows):
                probability[rows] += share[rows] * predict(pages[rows])
        return probability

    def observe(self, pages: Pages, changed: Flags) -> None:
        """Update the change model with visits of the current cycle."""
        self.change_model.observe(pages, changed)

    def score(self, pages: Pages, changed: Flags) -> None:
        """Update the lead with visits that no model has observed yet."""
        if self.poisson is None:
            return
        site, sites = self.book.site[pages], self.lead.shape[1]
        base = _log_likelihood(self.change_model.predict(pages), changed)
        self.lead *= FADE ** np.bincount(site, minlength=sites)
        self.lead[0] += np.bincount(site, _log_likelihood(self._predict_poisson(pages), changed) - base, sites)

    def learn(self, seen: Outcomes, at: Floats, lead: Floats) -> None:
        """Learn from a whole cycle, before the book notes it, and store the state; `lead` is the cycle's result."""
        self.change_model.observe(*compared_visits(self.book, seen))
        self.change_model.keep(self.book)
        if self.poisson is not None:
            self.poisson.learn(seen, at)
        self.book.memory["shock.lead"] = lead

    def _predict_poisson(self, pages: Pages) -> AnyFloats:
        assert self.poisson is not None
        return map_chunks(self.poisson.predict, pages)


def _log_likelihood(probability: AnyFloats, changed: Flags) -> Floats:
    """Return the logarithm of the probability that each prediction gave to the outcome."""
    limited = np.clip(probability.astype(np.float64), 1 - _MAX_PROBABILITY, _MAX_PROBABILITY)
    return np.log(np.where(changed, limited, 1 - limited))


def compared_visits(book: Book, seen: Outcomes) -> tuple[Pages, Flags]:
    """Return the pages of visits that could detect a change, and whether they did."""
    compared = seen.answered & (book.visits[seen.pages] > 0)
    return seen.pages[compared], seen.changed[compared]
