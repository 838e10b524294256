"""The change model and the Poisson model, averaged per site by how well they predicted visits.

A model's lead on a site is the log-likelihood of the outcomes of visits there, relative to the change model, each model
having observed the earlier visits. The change model is preferred until the Poisson model has a clear lead: a simple
model is often lucky for a while, and good predictions of single pages do not detect a shock of a group.

The Poisson model takes change probabilities from each page's own visits, at a constant rate; it is right where pages
change independently. Every page has a rate with a Gamma prior whose mean is the rate of its site. The number of changes
is estimated from the number of visits that found one (Cho's bias-reduced estimate), since several changes between two
visits look like one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats
from recrawl.learn.chunks import AnyFloats, AnyPages, chunks, map_chunks
from recrawl.learn.rates import bias_reduced
from recrawl.learn.shocks.change_model import ChangeModel
from recrawl.learn.shocks.model import FIRST_RATE, gamma_probability
from recrawl.learn.shocks.new_pages import NewPages, note_hits
from recrawl.model import Outcomes, Pages

PRIOR_WEIGHT = 1.0
"""The weight of the site's rate, in changes."""


class PoissonRate:
    """Change probabilities from the counts of a book and the times of first downloads."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @cached_property
    def since(self) -> Float32s:
        """One per page: the day of its first download; NaN if it was not stored."""
        return self._book.kept("shock.since", np.nan, np.float32)

    def learn(self, seen: Outcomes, at: Floats) -> None:
        """Store the times of first downloads in the book's memory."""
        first = seen.answered & (self._book.visits[seen.pages] == 0)
        self.since[seen.pages[first]] = at[first] / DAY
        self._book.memory["shock.since"] = self.since

    def predict(self, pages: AnyPages) -> Floats:
        """Return the probability that each page has changed since its last visit.

        >>> book = Book.blank(2, now=20 * DAY)
        >>> book.visits[:], book.changes[:], book.last_visit[:] = 9, [1, 5], 16 * DAY
        >>> PoissonRate(book).predict(np.arange(2)).round(2).tolist()
        [0.12, 0.54]
        """
        book = self._book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        changes, days = self._history(pages)
        return gamma_probability(changes + PRIOR_WEIGHT, days + PRIOR_WEIGHT / self._site_rate[book.site[pages]], gap)

    @cached_property
    def _site_rate(self) -> Floats:
        """One per site: changes per day and page."""
        site, sites = self._book.site, self._book.sites
        changes, days = np.zeros(sites), np.zeros(sites)
        for chunk in chunks(len(site)):
            history = self._history(np.arange(chunk.start, chunk.stop))
            changes += np.bincount(site[chunk], history[0], sites)
            days += np.bincount(site[chunk], history[1], sites)
        rate: Floats = (changes + 1) / (days + 1 / FIRST_RATE)
        return rate

    def _history(self, pages: AnyPages) -> tuple[Floats, Floats]:
        """Return the estimated changes of pages between their first and last visits, and the days in between."""
        book = self._book
        compared = np.maximum(book.visits[pages] - 1.0, 0.0)
        found = np.clip(book.changes[pages] - 1.0, 0.0, compared)
        stored = self.since[pages].astype(np.float64)
        first = np.where(np.isnan(stored), book.found[pages] / DAY, stored)
        days = np.where(compared > 0, np.maximum(book.last_visit[pages] / DAY - first, 0.0), 0.0)
        return compared * bias_reduced(found, compared, 1.0), days


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
    new_pages: NewPages
    lead: Floats
    """One row (none without a Poisson model), by site: its log-likelihood minus the change model's, decayed."""
    _weight: Floats = field(init=False)
    """Model by site, the change model first: its weight."""

    def __post_init__(self) -> None:
        odds = np.vstack((np.zeros((1, self.lead.shape[1])), self.lead - INITIAL_LEAD))
        likelihood = np.exp(odds - odds.max(axis=0))
        self._weight = likelihood / likelihood.sum(axis=0)

    @classmethod
    def of(cls, book: Book, *, poisson: bool = True, prior: bool = True) -> Mixture:
        """Load the state from the book's memory."""
        lead = np.zeros((int(poisson), book.sites))
        kept = book.memory.get("shock.lead", lead[:, :0])
        lead[:, : kept.shape[1]] = kept
        return cls(
            book, ChangeModel.of(book, prior=prior), PoissonRate(book) if poisson else None, NewPages.of(book), lead
        )

    def shared(self, pages: Pages) -> Flags:
        """Return which pages change with their groups rather than independently, by the models' weights."""
        if self.poisson is None:
            return np.ones(len(pages), bool)
        together: Flags = self._weight[1, self.book.site[pages]] < 1 / 2
        return together

    def predict(self, pages: Pages) -> AnyFloats:
        """Return the probability that each page has changed since its last visit."""
        return self.new_pages.predict(pages, self._predict(pages))

    def _predict(self, pages: Pages) -> AnyFloats:
        """Return the same, regardless of new pages."""
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

    def observe_new_pages(self, pages: Pages, changed: Flags) -> None:
        """Update what new pages tell with visits that the change model has not observed yet."""
        self.new_pages.observe(pages, changed, self._predict)

    def score(self, pages: Pages, changed: Flags) -> None:
        """Update the lead, the weights of priors and of new pages, with visits that no model has observed yet."""
        self.change_model.score_prior(pages, changed)
        apart = self.change_model.until_change(pages, changed)
        self.observe_new_pages(pages[apart], changed[apart])
        if self.poisson is None:
            return
        site, sites = self.book.site[pages], self.lead.shape[1]
        base = _log_likelihood(self.change_model.predict(pages), changed)
        self.lead *= FADE ** np.bincount(site, minlength=sites)
        self.lead[0] += np.bincount(site, _log_likelihood(self._predict_poisson(pages), changed) - base, sites)

    def learn(self, seen: Outcomes, at: Floats, scored: Mixture) -> None:
        """Learn from a whole cycle, before the book notes it, and store the state, with what the cycle has scored."""
        pages, changed = compared_visits(self.book, seen)
        self.observe(pages, changed)
        note_hits(self.book.memory, changed, self.book.share)
        self.change_model.keep(self.book)
        scored.new_pages.keep(self.book)
        if self.poisson is not None:
            self.poisson.learn(seen, at)
        self.book.memory["shock.lead"] = scored.lead
        scored.change_model.shocks.prior.keep(self.book)

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
