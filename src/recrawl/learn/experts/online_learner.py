"""Classifiers and relation weights updated day by day instead of being fitted again (spec L5; R §9.2).

With few features, the kernel of R's machines, (<x, y> + 1)³, has few dimensions: products of at most three features.
They are computed explicitly, so a classifier is one row of weights and thousands of classifiers are one matrix. An
example inside the margin, or on its wrong side, moves the weights as far as needed but at most by `_MAX_STEP` (the
passive-aggressive update of Crammer et al. 2006, with the hinge loss of a support vector machine). Running means and
variances scale the features to variance 1.

Relation weights are updated from the newest snapshot alone; no old snapshot is stored.

    relations = IncrementalRelations(word_dynamics(bags, text), a, b, lags=7)   # pairs of pages and their words
    relations.add(counts, seen)                                                # every day: page by word counts
    relations.experts(k)                                                       # the experts as of now

Pairs are given candidates, since running sums for all pairs of a large set would not fit in memory. The result equals
`selection.by_time` on all days at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints, median
from recrawl.errors import UsageError
from recrawl.extras import sparse
from recrawl.learn.experts import panels
from recrawl.learn.experts.classifiers import MIN_EXAMPLES, PlattCurve, fit_platt_curve
from recrawl.learn.experts.features import FeatureWindow
from recrawl.learn.experts.panels import SINGLE_PAGE, Machines, Panel, VisitLog
from recrawl.learn.experts.selection import NO_EXPERT, Experts, RunningCorrelation, shared_words, top_experts
from recrawl.learn.experts.word_dynamics import WordDynamics, idf
from recrawl.learn.pooled.learner import PooledLearner, failure_penalty
from recrawl.model import Outcome, Outcomes, Pages

_MAX_STEP = 0.03
_CLIP = 5.0
"""Scaled features are clipped at this many standard deviations."""
_MIN_SPREAD = 1e-6


class PolynomialMap:
    """The explicit feature map of the kernel (<x, y> + 1)^degree.

    >>> both = PolynomialMap(2)(np.array([[0.5, 1.0], [2.0, -1.0]]))
    >>> round(float(both[0] @ both[1]), 4), (0.5 * 2.0 - 1.0 + 1.0) ** 3
    (1.0, 1.0)
    """

    def __init__(self, features: int, degree: int = 3) -> None:
        terms = list(combinations_with_replacement(range(features + 1), degree))
        ways = [factorial(degree) / prod(map(factorial, Counter(term).values())) for term in terms]
        self._terms = np.array(terms).T
        self._scale = np.sqrt(np.array(ways)).astype(np.float32)

    def __len__(self) -> int:
        """The number of dimensions."""
        return len(self._scale)

    def __call__(self, x: NDArray[np.floating]) -> Float32s:
        """Example by dimension."""
        with_one = np.concatenate((np.ones((len(x), 1), np.float32), x.astype(np.float32)), axis=1)
        found: Float32s = np.broadcast_to(self._scale, (len(x), len(self))).copy()
        for place in self._terms:
            found *= with_one[:, place]
        return found


class OnlineClassifiers:
    """Classifiers, one per row, that take one example each at a time: `scale`, then `margin`, later `update`."""

    def __init__(self, problems: int, features: int, grouped: int = 0) -> None:
        """The last `grouped` features count as one feature: their variances are summed."""
        self._grouped = grouped
        self._single = features - grouped
        self._map = PolynomialMap(features)
        self._mean = np.zeros((problems, features))
        self._spread = np.zeros((problems, features))
        self._observed = np.zeros(problems, np.int64)
        self.weight: Float32s = np.zeros((problems, len(self._map)), np.float32)
        self.examples = np.zeros(problems, np.int64)
        """One per classifier: examples it was updated with."""

    def scale(self, x: NDArray[np.floating], present: Flags) -> Float32s:
        """Map a day's features (classifier by feature) to kernel space; where not `present`, only the constant."""
        self._observed += present
        step = (x - self._mean) * present[:, None]
        self._mean += step / np.maximum(self._observed, 1)[:, None]
        self._spread += step * (x - self._mean)
        variance = self._spread / np.maximum(self._observed, 1)[:, None]
        if self._grouped:
            variance[:, self._single :] = variance[:, self._single :].sum(axis=1, keepdims=True)
        spread = np.sqrt(np.maximum(variance, 0.0))
        usable = present[:, None] & (spread > _MIN_SPREAD * np.maximum(np.abs(self._mean), _MIN_SPREAD))
        scaled = np.divide(x - self._mean, spread, out=np.zeros(x.shape), where=usable)
        return self._map(np.clip(scaled, -_CLIP, _CLIP) / np.sqrt(self._single + bool(self._grouped)))

    def margin(self, mapped: Float32s) -> Floats:
        """One per classifier: above 0 for yes."""
        return np.asarray(np.einsum("bd,bd->b", self.weight, mapped), np.float64)

    def update(self, mapped: Float32s, label: Flags, usable: Flags) -> None:
        """Learn the labels of mapped examples; only classifiers in `usable` are updated."""
        sign = np.where(label, 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - sign * self.margin(mapped)) * usable
        norm = np.einsum("bd,bd->b", mapped, mapped)  # at least 1, since the map has a constant
        step = np.minimum(loss / norm, _MAX_STEP) * sign
        self.weight += step.astype(np.float32)[:, None] * mapped
        self.examples += usable


class IncrementalRelations:
    """Correlations of the words that the pages of each pair share; starts with no days."""

    def __init__(self, words: WordDynamics, a: Ints, b: Ints, lags: int = 7) -> None:
        """Track the words of `words`; its days are not used."""
        self._pages, self._page, self._word = words.pages, words.page, words.word
        self._a, self._b = a, b
        self._pair, self._own, theirs = shared_words(words, a, b)
        self._correlation = RunningCorrelation(len(words.page), self._own, theirs, lags)
        self._now = np.zeros(len(words.page))
        self._rarity = np.ones(len(words.page))

    def add(self, counts: sparse.csr_array, seen: Flags | None = None) -> None:
        """Add a day's word counts (page by word); an unobserved page keeps its last counts."""
        counted = np.asarray(counts[self._page, self._word], np.float64).ravel() if len(self._page) else self._now
        self._now = counted if seen is None else np.where(seen[self._page], counted, self._now)
        carried = np.bincount(counts.indices, minlength=counts.shape[1])
        self._rarity = idf(carried[self._word], self._pages)
        self._correlation.add(self._now)

    def experts(self, k: int) -> Experts:
        """The k most similar candidates of each page, by R's distance."""
        similarity, lag = self._similarity()
        kept = similarity > 0
        a, b, weight = self._a[kept], self._b[kept], similarity[kept]
        return top_experts("xcorr", self._pages, k, a, b, weight, lag[kept], -weight)

    def weights(self) -> Floats:
        """One per pair: the current weight of the relation, at least 0."""
        return np.maximum(self._similarity()[0], 0.0)

    def _similarity(self) -> tuple[Floats, Ints]:
        """One per pair: the similarity of its word dynamics, and the lag with the highest weighted correlation."""
        weight = self._rarity * self._now
        total = np.bincount(self._page, weight, self._pages)[self._page]
        share = np.divide(weight, total, out=np.zeros(len(weight)), where=total > 0)[self._own]
        by_lag = self._correlation.correlations() * share[:, None]
        lags = range(by_lag.shape[1])
        summed = np.stack([np.bincount(self._pair, by_lag[:, lag], len(self._a)) for lag in lags], axis=1)
        similarity = np.bincount(self._pair, by_lag.max(axis=1), len(self._a)).astype(np.float64, copy=False)
        return similarity, summed.argmax(axis=1)


# --------------------------------------------------------------------------------------------------------------------
# What a crawl keeps of R's machines between cycles: the last margin of each tracked page, its experts, and its record.
#
# The machines themselves are not kept: fitting one takes milliseconds, and its training examples follow from the
# visits.


_DECAY = 0.95
"""Factor applied to a page's record at each new prediction that is judged."""
_PRIOR_VISITS = 10.0
"""A page's record is shrunk towards that of its site, and a site's towards that of all, as by this many visits."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineState:
    """One row per tracked page."""

    page: Ints
    margin: Floats
    """The margin of the last fit; NaN without one, or where the machines abstained."""
    fitted: Floats
    """The time of the last fit; -inf without one."""
    expert: Ints
    """Row by rank: the page that is its expert, -1 for none."""
    weight: Floats
    gain: Floats
    """The log loss of the page's own rate minus that of the machines, summed over judged predictions."""
    judged: Floats
    """Judged predictions; both sums decay."""

    @classmethod
    def blank(cls, pages: Ints, k: int = 0) -> Self:
        """Pages without machines."""
        count, shape = len(pages), (len(pages), k)
        return cls(
            page=pages,
            margin=np.full(count, np.nan),
            fitted=np.full(count, -np.inf),
            expert=np.full(shape, NO_EXPERT, np.int64),
            weight=np.zeros(shape),
            gain=np.zeros(count),
            judged=np.zeros(count),
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state from its arrays, as a copy."""
        return cls(**{item.name: arrays[item.name].copy() for item in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def of(self, pages: Ints) -> Self:
        """The state of other pages, in ascending order: what is known of them, blank rows for new ones."""
        moved = type(self).blank(pages, self.expert.shape[1])
        _, new, old = np.intersect1d(pages, self.page, assume_unique=True, return_indices=True)
        for name, column in moved.arrays().items():
            column[new] = getattr(self, name)[old]
        return moved

    def with_experts(self, experts: Experts) -> Self:
        """The state with other experts; `experts` has slots, the state keeps pages."""
        chosen = experts.page >= 0
        expert = np.where(chosen, self.page[np.maximum(experts.page, 0)], NO_EXPERT).astype(np.int64)
        columns = self.arrays() | {"expert": expert, "weight": experts.weight.astype(np.float64)}
        return type(self)(**columns)

    def panel(self, log: VisitLog, slots: Ints) -> Panel:
        """The panel of these slots; an expert that is not tracked any more is left out."""
        expert = log.slots(self.expert[slots].ravel()).reshape(len(slots), self.expert.shape[1])
        weight = np.where(expert >= 0, self.weight[slots], 0.0)
        own = np.ones((len(slots), 1))
        return Panel(slots, np.concatenate((slots[:, None], expert), axis=1), np.concatenate((own, weight), axis=1))

    def judge(self, slots: Ints, machine: Floats, rate: Floats, changed: Flags) -> None:
        """Compare two predictions that were made before visits with what the visits found."""
        self.gain[slots] = self.gain[slots] * _DECAY + log_loss(rate, changed) - log_loss(machine, changed)
        self.judged[slots] = self.judged[slots] * _DECAY + 1.0

    def trusted(self, site: Int32s) -> Flags:
        """Where the machines have predicted better than the page's own rate so far, by page, site and all together.

        A page without a record of its own follows its site; without any record, the rate decides.
        """
        overall = self.gain.sum() / (self.judged.sum() + _PRIOR_VISITS)
        gain, judged = np.bincount(site, self.gain), np.bincount(site, self.judged)
        by_site = (gain + _PRIOR_VISITS * overall) / (judged + _PRIOR_VISITS)
        by_page = (self.gain + _PRIOR_VISITS * by_site[site]) / (self.judged + _PRIOR_VISITS)
        return np.asarray(np.isfinite(self.margin) & (by_page > 0))


def log_loss(probability: Floats, label: Flags) -> Floats:
    """The negative log-likelihood of each label.

    >>> log_loss(np.array([0.5, 0.9]), np.array([True, False])).round(3).tolist()
    [0.693, 2.303]
    """
    safe = np.clip(np.where(label, probability, 1.0 - probability), 1e-6, 1.0)
    return np.asarray(-np.log(safe), np.float64)


# --------------------------------------------------------------------------------------------------------------------
# R's methods 2d, 3d, union, bagging and boosting while crawling: they learn from the visits of the crawl alone.
#
#     learner.update(book, seen, at)        after a cycle: log the visits, choose experts, fit the machines
#     learner.predict(book, pages)          before a cycle: change probabilities
#
# All pages share the machines (see `visit_panels`), which are fitted again after every cycle. They correct the page's
# own rate: the log odds of a change are those of the rate plus a Platt curve of the margin (R §8.3 uses the curve
# alone; a crawl's visits are days apart, and only the rate knows how many). Where the machines have no answer, or have
# predicted worse than the rate so far, the rate alone decides, so that they cost visits nowhere.
#
# The cost is bounded: a machine learns from the newest 500 visits; at most `fits` pages and experts are looked at per
# cycle, those with the newest visits; at most `pages` pages are tracked. All state is in the book's memory under a
# name, so it follows from the visits alone, in the lab as live.


_MAX_MARGIN = 2.0
"""Margins are clipped, as in votes: far outside the examples a polynomial grows without meaning."""
_MAX_CALIBRATION = 5_000
"""Predictions that the Platt curve is fitted to, the newest."""
_MIN_CALIBRATION = 20
"""With fewer the machines are not used."""


@dataclass(frozen=True, slots=True)
class _State:
    """The memory of the learner, unpacked."""

    log: VisitLog
    machines: MachineState
    moments: Floats
    """The ends of the last cycles."""
    calibration: Floats
    """Judged prediction by column: margin, log odds of the rate, label."""
    cost: float

    @property
    def curve(self) -> PlattCurve:
        """From margins to corrections of the log odds."""
        margin, odds, label = self.calibration.T
        return fit_platt_curve(margin, label > 0, odds)


@dataclass(frozen=True, slots=True)
class CrawlLearner:
    """State stored under a name in the book's memory; the parameters are those of the policy `predicted`."""

    name: str
    method: str
    experts: str
    k: int
    train: int
    words: int
    fits: int
    pages: int
    retrain: int
    shape: FeatureWindow = field(default_factory=FeatureWindow)
    omega: str = "last"
    lags: tuple[int, int] = (0, 7)

    def __post_init__(self) -> None:
        """Refuse a number of visits with which all machines would abstain."""
        if self.train < MIN_EXAMPLES:
            raise UsageError(f"{self.name}'s train must be {MIN_EXAMPLES} visits or more, not {self.train}")

    @property
    def rate(self) -> PooledLearner:
        """The page's own rate."""
        return PooledLearner(self.name, method="1d")

    def predict(self, book: Book, pages: Pages) -> tuple[Floats, str]:
        """The probability that each page has changed by now, and a phrase for what it rests on."""
        rate = self.rate.own_rate(book, pages, book.now)
        state = self._restored(book)
        if len(state.calibration) >= _MIN_CALIBRATION:
            trusted = np.append(state.machines.trusted(book.site[state.log.page]), False)
            slot = state.log.slots(pages)
            by_machine = trusted[slot]
            margin = np.append(state.machines.margin, np.nan)[slot]
            rate = np.where(by_machine, state.curve(margin, log_odds(rate)), rate)
        basis = f"its own history and the method {self.method} say" if len(state.log) else "its own history says"
        return rate * failure_penalty(book, pages), basis

    def update(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Judge the last predictions, log the visits, choose experts every `retrain` cycles, and fit machines."""
        ok = seen.answered
        pages, changed, when = seen.pages[ok], seen.changed[ok], at[ok]
        state = self._judged(self._restored(book), book, pages, changed, when)
        self.rate.update(book, seen, at)
        if not len(pages):
            return
        found = pages[seen.what[ok] == Outcome.CHANGED]
        candidates = found[np.argsort(-book.changes[found], kind="stable")]
        log = state.log.renewed(candidates, book.known, self.pages)
        moments = np.append(state.moments, when.max())[-self.train :]
        steps = np.diff(moments)
        cycle = median(steps[steps > 0]) if (steps > 0).any() else DAY
        odds = log_odds(self.rate.own_rate(book, pages, when + cycle))
        log = log.noted(pages, when, changed, odds, book.words, self.words)
        state = _State(log, state.machines.of(log.page), moments, state.calibration, state.cost)
        due = int(book.memory[f"{self.name}.cycles"][0]) % self.retrain == 0
        if due:
            state = self._with_experts(state, book)
        self._store(book, *self._fit(state, tune=due))

    def work(self, book: Book) -> dict[str, int]:
        """What the method has computed: machines fitted in the last cycle and in all, and for how many pages."""
        fitted = book.memory.get(f"{self.name}.fitted", np.zeros(2, np.int64)).tolist()
        state = self._restored(book)
        trusted = state.machines.trusted(book.site[state.log.page])
        return {
            "machines": fitted[0],
            "machines_in_all": fitted[1],
            "pages_tracked": len(state.log),
            "pages_with_machines": int(np.isfinite(state.machines.margin).sum()),
            "pages_by_machines": int(trusted.sum()) if len(state.calibration) >= _MIN_CALIBRATION else 0,
        }

    def _judged(self, state: _State, book: Book, pages: Ints, changed: Flags, when: Floats) -> _State:
        """Compare the predictions of the last margins with what the visits found."""
        slot = state.log.slots(pages)
        margin = np.append(state.machines.margin, np.nan)[slot]
        judged = np.isfinite(margin)
        slot, margin, changed = slot[judged], margin[judged], changed[judged]
        rate = self.rate.own_rate(book, pages[judged], when[judged])
        if len(state.calibration) >= _MIN_CALIBRATION and len(slot):
            state.machines.judge(slot, state.curve(margin, log_odds(rate)), rate, changed)
        rows = np.column_stack((margin, log_odds(rate), changed))
        calibration = np.concatenate((state.calibration, rows))[-_MAX_CALIBRATION:]
        return _State(state.log, state.machines, state.moments, calibration, state.cost)

    def _with_experts(self, state: _State, book: Book) -> _State:
        if self.method in SINGLE_PAGE or len(state.log) < 2:  # a page alone has no experts
            return state
        last = min(self.lags[1], max(1, len(state.moments) - 1))
        lags = (min(self.lags[0], last), last)
        chosen = panels.choose_experts(state.log, self.experts, self.k, lags, state.moments, book.links, self.omega)
        return replace(state, machines=state.machines.with_experts(chosen))

    def _fit(self, state: _State, *, tune: bool) -> tuple[_State, int]:
        """Fit the machines, and ask them about the pages with the newest visits; also returns their number."""
        log, machines = state.log, state.machines
        slots = panels.predictable(log)
        panel = machines.panel(log, slots)
        last = np.append(log.last, -np.inf)
        newest = last[panel.expert].max(axis=1, initial=-np.inf)
        due = np.flatnonzero(newest > machines.fitted[slots])
        due = due[np.lexsort((slots[due], -newest[due]))]
        looked_at = 1 if self.method in SINGLE_PAGE else (panel.expert[due] >= 0).sum(axis=1)
        due = due[np.cumsum(np.broadcast_to(looked_at, len(due))) <= self.fits]
        if not len(due):
            return state, 0
        parameters = Machines(self.method, self.train, state.cost, shape=self.shape)
        margin, cost, fitted = panels.margins(log, parameters, machines.panel(log, slots[due]), tune=tune)
        machines.margin[slots[due]] = np.clip(margin, -_MAX_MARGIN, _MAX_MARGIN)
        machines.fitted[slots[due]] = newest[due]
        return replace(state, cost=cost), fitted

    # -- the memory ---------------------------------------------------------------------------------------------

    def _restored(self, book: Book) -> _State:
        stored = {part: self._arrays(book, part) for part in ("log", "machine")}
        visits = self.train + self.shape.window + self.shape.interval + 1
        known = "odds" in stored["log"]  # an older version did not keep them: it starts anew
        log = VisitLog.restored(stored["log"]).with_visits(visits) if known else VisitLog.blank(visits)
        machines = MachineState.restored(stored["machine"]) if known else MachineState.blank(log.page)
        memory = book.memory
        return _State(
            log,
            machines,
            memory.get(f"{self.name}.moments", np.zeros(0)),
            memory.get(f"{self.name}.calibration", np.zeros((0, 3))),
            float(memory.get(f"{self.name}.cost", np.ones(1))[0]),
        )

    def _arrays(self, book: Book, part: str) -> dict[str, NDArray[Any]]:
        prefix = f"{self.name}.{part}."
        return {name.removeprefix(prefix): column for name, column in book.memory.items() if name.startswith(prefix)}

    def _store(self, book: Book, state: _State, fitted: int) -> None:
        memory = book.memory
        for part, arrays in (("log", state.log.arrays()), ("machine", state.machines.arrays())):
            memory.update({f"{self.name}.{part}.{name}": column for name, column in arrays.items()})
        memory[f"{self.name}.moments"] = state.moments
        memory[f"{self.name}.calibration"] = state.calibration
        memory[f"{self.name}.cost"] = np.array([state.cost])
        before = memory.get(f"{self.name}.fitted", np.zeros(2, np.int64))
        memory[f"{self.name}.fitted"] = np.array([fitted, before[1] + fitted])


def log_odds(probability: Floats) -> Floats:
    """log(p / (1 - p)), with p kept away from 0 and 1."""
    safe = np.clip(probability, 0.005, 0.995)
    return np.asarray(np.log(safe / (1.0 - safe)))
