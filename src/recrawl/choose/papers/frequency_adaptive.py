"""Adaptive sampling that judges a sampled page by its history: what Al-Qaaideh's thesis proposes as the next step."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.adaptive_sampling import adaptively, check_confidence
from recrawl.choose.papers.site_sampling import Deck, check_whole
from recrawl.choose.papers.version_history import MOST, page_rates, remember
from recrawl.choose.protocol import Choice
from recrawl.model import Outcomes


class FrequencyAdaptive:
    """Adaptive sampling in which a page counts with the share of its last versions that changed (spec P7, P5).

    The rounds, the threshold and the decisions are those of `adaptive-sampling`, which also take the place of sample
    sizes by rate; the evidence is that of `frequency-greedy`, C = D/V. The interval of a mean of such shares is taken
    as that of as many yes-or-no answers, which is on the safe side.

    Parameters
    ----------
    kappa
        Pages to sample of each undecided site and round.
    confidence
        How sure a decision must be, over 0 and under 1.
    rounds
        The most rounds.
    versions
        V: the comparisons over which a page's rate is taken, at most 60.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> sum(len(seen) for seen in drive(FrequencyAdaptive(), Still(), book, budget=100, seed=1))
    100

    Source: Al-Qaaideh 2009 §5.2, which asks for it.
    """

    name: ClassVar[str] = "frequency-adaptive"
    source: ClassVar[str] = "Al-Qaaideh 2009 §5.2 (spec P7)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, kappa: int = 10, confidence: float = 0.95, rounds: int = 50, versions: int = 5) -> None:
        self.kappa = check_whole(kappa, f"{self.name}'s kappa")
        self.confidence = check_confidence(confidence, self.name)
        self.rounds = check_whole(rounds, f"{self.name}'s rounds")
        self.versions = check_whole(versions, f"{self.name}'s versions", MOST)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Rounds of samples, each followed by the sites that it decided for."""

        def worth(seen: Outcomes) -> NDArray[np.float64]:
            return page_rates(book, self.name, self.versions, seen)

        deck = Deck(book, "site", rng)
        yield from adaptively(deck, budget, rng, self.kappa, self.confidence, self.rounds, worth)

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Keep which comparisons found a change."""
        remember(book, self.name, self.versions, seen)
