"""Policy `frequency-adaptive`: adaptive sampling that uses the history of each sampled page."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.adaptive_sampling import check_confidence, sample_adaptively
from recrawl.choose.papers.by_site.site_sampling import Deck, Level, check_level, check_whole, labels, level_needs
from recrawl.choose.papers.by_site.version_history import check_versions, page_rates, store_comparisons, versions_of
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats
from recrawl.model import Outcomes


class FrequencyAdaptive:
    """Adaptive sampling in which a page counts with the share of its last versions that changed.

    Rounds, threshold and decisions are those of `adaptive-sampling`; the value of a sampled page is that of
    `frequency-greedy`, C = D/V. The confidence interval of a mean of such shares is computed as for the same number of
    yes-or-no answers, which is never too narrow.

    Parameters
    ----------
    kappa
        Pages to sample of each undecided site per round.
    confidence
        Confidence of a decision, above 0 and below 1.
    rounds
        Maximum number of rounds.
    versions
        V: the number of comparisons that a page's rate covers, at most 60; `auto` for the longest history over which
        the change rate of its group is steady.
    level
        What is sampled and downloaded: `site`, `directory`, or `cluster` of similar pages of all sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> sum(map(len, batches(FrequencyAdaptive(), book, budget=100)))
    100

    Source: Al-Qaaideh 2009 §5.2, which proposes it as future work.
    """

    name: ClassVar[str] = "frequency-adaptive"
    source: ClassVar[str] = "Al-Qaaideh 2009 §5.2 (spec P7)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "it divides the budget among all sites at once"

    def __init__(
        self,
        *,
        kappa: int = 10,
        confidence: float = 0.95,
        rounds: int = 50,
        versions: str | int = "5",
        level: Level = "site",
    ) -> None:
        self.kappa = check_whole(kappa, f"{self.name}'s kappa")
        self.confidence = check_confidence(confidence, self.name)
        self.rounds = check_whole(rounds, f"{self.name}'s rounds")
        self.versions = check_versions(versions, self.name)
        self.level = check_level(level, self.name)
        self.needs = level_needs(self.level)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield rounds of samples, each followed by the sites that it decided to download."""
        versions = versions_of(book, self.name, self.versions, labels(book, self.level))

        def value(seen: Outcomes) -> Floats:
            return page_rates(book, self.name, versions, seen)

        deck = Deck(book, self.level, rng)
        yield from sample_adaptively(deck, budget, rng, self.kappa, self.confidence, self.rounds, value)

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """Store which comparisons found a change."""
        store_comparisons(book, self.name, self.versions, seen)
