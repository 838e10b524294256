"""Policy `adaptive-sampling`: sample each site only until it is clear whether to download it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.sample_size import interval, threshold
from recrawl.choose.papers.by_site.site_sampling import (
    Deck,
    Level,
    check_level,
    check_whole,
    draw,
    evidence,
    fill_in_order,
    level_needs,
    order_by_rate,
    sampled_rates,
)
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks


class AdaptiveSampling:
    """Samples sites in rounds; drops a site once its rate is surely low, downloads it once surely high.

    Each round visits κ more pages of every undecided site. The threshold is the change rate of the site at which the
    budget runs out when the sites with the highest rates are downloaded whole. A site whose confidence interval lies
    below the threshold is dropped, a site whose interval lies above it is downloaded whole at once. A site without any
    answer is dropped too. A round takes at most a quarter of the budget; if that is less than κ pages of each
    undecided site, the sites get fewer. When no site is undecided, or after `rounds` rounds, the rest of the budget
    goes to the sites by their rate, as in `greedy`.

    Parameters
    ----------
    kappa
        Pages to sample of each undecided site per round.
    confidence
        Confidence of a decision, above 0 and below 1.
    rounds
        Maximum number of rounds; sites that are still undecided then have nearly equal rates.
    level
        What is sampled and downloaded: `site`, `directory`, or `cluster` of similar pages of all sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> sum(map(len, batches(AdaptiveSampling(rounds=3), book, budget=100)))
    100

    Source: Al-Qaaideh 2009 §2.7 and figure 2.3, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "adaptive-sampling"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.7, figure 2.3, Cho and Ntoulas 2002 (spec P5)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "it divides the budget among all sites at once"

    def __init__(self, *, kappa: int = 10, confidence: float = 0.95, rounds: int = 50, level: Level = "site") -> None:
        self.kappa = check_whole(kappa, f"{self.name}'s kappa")
        self.confidence = check_confidence(confidence, self.name)
        self.rounds = check_whole(rounds, f"{self.name}'s rounds")
        self.level = check_level(level, self.name)
        self.needs = level_needs(self.level)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield rounds of samples, each followed by the sites that it decided to download."""
        deck = Deck(book, self.level, rng)
        yield from sample_adaptively(deck, budget, rng, self.kappa, self.confidence, self.rounds)


def check_confidence(confidence: float, policy: str) -> float:
    """Return the confidence, or raise an error if it is out of range."""
    if not 0 < confidence < 1:
        raise UsageError(f"{policy}'s confidence must lie between 0 and 1, such as 0.95, not {confidence}")
    return confidence


def sample_adaptively(
    deck: Deck,
    budget: int,
    rng: np.random.Generator,
    kappa: int,
    confidence: float,
    rounds: int,
    value: Callable[[Outcomes], Floats] | None = None,
) -> Choice:
    """Run the algorithm of figure 2.3; `value` is what each outcome counts as, 0 to 1 (see `evidence`)."""
    undecided = np.ones(len(deck), bool)
    found, answered = np.zeros(len(deck)), np.zeros(len(deck), np.int64)
    rate, left, per_round = found, max(0, budget), max(1, budget // 4)
    for _ in range(rounds):
        pages = deck.deal(draw(np.where(undecided, deck.left, 0), kappa, min(left, per_round), rng))
        if not len(pages):
            break
        left -= len(pages)
        seen = yield Picks(
            pages, np.ones(len(pages)), f"it was drawn as a sample of a {deck.level} that was still undecided"
        )
        more_found, more_answered = evidence(deck, seen, None if value is None else value(seen))
        found, answered = found + more_found, answered + more_answered
        rate = sampled_rates(deck, found, answered)
        low, high = interval(found, answered, confidence)
        limit = threshold(rate, deck.size, budget)
        silent = (answered == 0) & (deck.left < deck.size)
        accepted = undecided & (low > limit) & ~silent
        undecided &= (high >= limit) & ~accepted & ~silent
        order = order_by_rate(rate, rng)
        pages = deck.deal(fill_in_order(order, left, np.where(accepted, deck.left, 0)), order)
        if len(pages):
            left -= len(pages)
            reason = f"the samples of its {deck.level} changed more than the threshold"
            yield Picks(pages, rate[deck.group_of(pages)], reason)
        if np.count_nonzero(undecided) < 2:
            break
    order = order_by_rate(rate, rng)
    pages = deck.deal(fill_in_order(order, left, deck.left), order)
    if len(pages):
        yield Picks(pages, rate[deck.group_of(pages)], f"the samples of its {deck.level} changed most of those left")
