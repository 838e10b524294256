"""Policy `predicted`: visit the pages that a predictor, learned while crawling, ranks as most likely changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.site_sampling import check_whole
from recrawl.choose.protocol import LIKELY, Choice
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.learn.pooled.learner import PooledLearner, failure_penalty
from recrawl.model import Outcomes, Pages, Picks

if TYPE_CHECKING:
    from recrawl.learn.experts.online_learner import CrawlLearner

Method = Literal["pooled", "1d", "2d", "3d", "union", "bagging", "boosting"]
METHODS = get_args(Method)
Experts = Literal["xcorr", "dtw", "content", "graph"]
EXPERTS = get_args(Experts)
OMEGAS = ("last", "changes", "moves", "even")
Pick = Literal["best", "coin"]
NEW_PAGE_SCORE = 10.0
"""The score of a page that was never downloaded: above all others."""
_MIN_PROBABILITY = 1e-6


class Predicted:
    """Visits the pages with the highest change probability, by a predictor that learns while crawling.

    It learns from its own visits only. With `method=pooled` one model serves all pages: it keeps decayed sums over the
    visits of every page, directory and site (`recrawl.learn.pooled.ledger`), and the features and results of the newest
    visits, from which it fits the model again every few cycles. With `method=1d`, and before the first fit, the page's
    own change rate decides.

    The other methods are R's: support vector machines on the words of the page and of related pages (experts). All
    pages share the machines, which are fitted after every cycle to the newest 500 visits of pages that change; the
    page's own rate is one of the features. They answer from a page's third visit on, and correct the page's own rate.
    Where they have predicted worse than the rate so far (by log loss, on the page, its site and all pages), the rate
    decides. The first use on an old repository reads the words of its last 50,000 visits, about 1 ms for each that
    found a change.

    A share of the visits is drawn at random, so that the predictor does not learn from its own choices alone; the score
    of such a page is its probability of being drawn.

    Parameters
    ----------
    method
        `pooled`: gradient-boosted trees, calibrated. `1d`: the page's own change rate at its last visits. `2d`: a
        machine on the page's own words and changes. `3d`: a second one on those of an expert; the page and its experts
        vote. `union`: one machine on the features of all experts; `bagging` and `boosting`: ten of those.
    experts
        How experts are chosen for `3d`, `union`, `bagging` and `boosting`: `xcorr` and `dtw` by words that come and go
        together (cross-correlation, dynamic time warping), `content` by similar words, `graph` by links.
    k
        Experts per page.
    train
        Visits of a page that are kept to learn from.
    words
        Words kept per version, the most characteristic ones.
    window
        Visits that the features cover (R's l).
    interval
        Visits ahead to predict (R's sigma).
    omega
        The weight of a word, with which `xcorr` and `dtw` compare pages (R's ω): `last` (tf·idf in the last version),
        `changes` (cycles in which its count changed), `moves` (the sum of these changes) or `even`.
    lags
        Cycles by which an expert may lead, for `xcorr`: first-last, such as 1-20, or the last.
    fits
        Pages and experts that the machines are asked about after a cycle, at most, those with the newest visits; the
        others keep their last answer.
    pages
        Pages tracked by the machines, at most.
    retrain
        Cycles after which the model is fitted again, or experts are chosen again.
    explore
        The share of visits that are drawn at random.
    pick
        `best`: the pages with the highest probability, which finds the most changes. `coin`: pages drawn in proportion
        to their probability, as in R §8.3, which finds fewer changes and leaves fewer pages out of date.

    Example
    -------
    >>> from recrawl.columns import DAY
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=20 * DAY)
    >>> book.visits[:], book.changes[:], book.last_try[:], book.last_visit[:] = 10, [1, 9, 3], 18 * DAY, 18 * DAY
    >>> batches(Predicted(explore=0), book, budget=3)
    [[1, 2, 0]]

    Source: Radinsky and Bennett 2013 §8.3; the pooled model is recrawl's own.
    """

    name: ClassVar[str] = "predicted"
    source: ClassVar[str] = "Radinsky and Bennett 2013 §8.3 (spec L7); the pooled model is recrawl's own"
    needs: frozenset[str] = frozenset({"folders"})
    one_shard: ClassVar[str] = "one model is fitted to the visits of all pages"

    def __init__(
        self,
        *,
        method: Method = "pooled",
        experts: Experts = "xcorr",
        k: int = 20,
        train: int = 30,
        words: int = 100,
        window: int = 1,
        interval: int = 1,
        omega: str = "last",
        lags: str = "0-7",
        fits: int = 2000,
        pages: int = 2000,
        retrain: int = 7,
        explore: float = 0.05,
        pick: Pick = "best",
    ) -> None:
        _check_one_of("method", method, METHODS)
        _check_one_of("experts", experts, EXPERTS)
        _check_one_of("pick", pick, get_args(Pick))
        _check_one_of("omega", omega, OMEGAS)
        parse_lags(str(lags))
        if not 0 <= explore <= 1:
            raise UsageError(f"predicted's explore must be a share from 0 to 1, not {explore}")
        self.method, self.experts, self.explore, self.pick = method, experts, explore, pick
        self.k = check_whole(k, "predicted's k")
        self.train = check_whole(train, "predicted's train")
        self.words = check_whole(words, "predicted's words")
        self.window = check_whole(window, "predicted's window")
        self.interval = check_whole(interval, "predicted's interval")
        self.omega, self.lags = omega, str(lags)
        self.fits = check_whole(fits, "predicted's fits")
        self.pages = check_whole(pages, "predicted's pages")
        self.retrain = check_whole(retrain, "predicted's retrain")
        self._learner: PooledLearner | CrawlLearner
        if method == "pooled" or method == "1d":  # noqa: PLR1714  # mypy narrows the type by ==
            self._learner = PooledLearner(self.name, method=method, retrain=self.retrain)
            return
        from recrawl.learn.experts.features import FeatureWindow  # lazy: loads scipy
        from recrawl.learn.experts.online_learner import CrawlLearner  # lazy: loads scipy

        shape = FeatureWindow(self.window, self.interval)
        self._learner = CrawlLearner(
            self.name, method, experts, k, train, words, fits, pages, retrain, shape, omega, parse_lags(self.lags)
        )
        links = {"links"} if experts == "graph" and method != "2d" else set()
        self.needs = self.needs | {"words", *links}

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield new pages, then pages by probability, then pages drawn at random."""
        known = np.flatnonzero(book.known)
        if not len(known) or budget <= 0:
            return
        new = known[(book.visits[known] == 0) & (book.last_try[known] == -np.inf)]
        old = np.setdiff1d(known, new, assume_unique=True)
        probability, how = self._learner.predict(book, old)
        explored = min(len(old), round(self.explore * budget))
        room = max(0, budget - len(new) - explored)
        order = self._order(probability, rng)
        likely = order[:room]
        if len(new):
            score = np.full(min(len(new), budget), NEW_PAGE_SCORE)
            yield Picks(new[:budget], score, "it was never downloaded", awaits=0.0)
        if len(likely):
            yield Picks(old[likely], probability[likely], f"{LIKELY}, as {how}", awaits=0.0)
        rest = order[room:]
        drawn = rng.permutation(rest)[: min(len(rest), budget - len(likely) - min(len(new), budget))]
        if len(drawn):
            score = np.full(len(drawn), len(drawn) / len(rest))
            yield Picks(old[drawn], score, "it was drawn at random, so that the model learns from all pages")

    def _order(self, probability: Floats, rng: np.random.Generator) -> Ints:
        """Return pages by probability, or drawn in proportion to it (Efraimidis and Spirakis 2006)."""
        luck = rng.random(len(probability))
        if self.pick == "coin":
            return np.argsort(np.log(np.maximum(luck, 1e-300)) / np.maximum(probability, _MIN_PROBABILITY))[::-1]
        return np.lexsort((luck, -probability))

    def change_probability(self, book: Book, pages: Pages) -> Floats:
        """Return the probability that each page has changed since its last visit, by the model."""
        return self._learner.predict(book, pages)[0] / failure_penalty(book, pages)  # which is for the ranking only

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Store the features and results of the visits; fit what is due."""
        self._learner.update(book, seen, at)

    def work(self, book: Book) -> dict[str, int]:
        """What the machines have cost; nothing for the other methods."""
        return {} if isinstance(self._learner, PooledLearner) else self._learner.work(book)


def parse_lags(text: str) -> tuple[int, int]:
    """The first and the last lag.

    >>> parse_lags("1-20"), parse_lags("7")
    ((1, 20), (0, 7))
    """
    first, dash, last = text.rpartition("-")
    if not (last.isdecimal() and (first.isdecimal() or not dash) and int(first or 0) <= int(last)):
        raise UsageError(f"invalid lags '{text}': use the first and the last, such as 1-20, or the last, such as 7")
    return int(first or 0), int(last)


def _check_one_of(name: str, value: str, values: tuple[str, ...]) -> None:
    if value not in values:
        raise UsageError(f"predicted's {name} must be one of {', '.join(values)}, not '{value}'")
