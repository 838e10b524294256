"""R's methods 2d, 3d, union, bagging and boosting while crawling: they learn from the visits of the crawl alone.

    learner.update(book, seen, at)        after a cycle: log the visits, choose experts, fit the machines
    learner.predict(book, pages)          before a cycle: change probabilities

All pages share the machines (see `visit_panels`), which are fitted again after every cycle. They correct the page's own
rate: the log odds of a change are those of the rate plus a Platt curve of the margin (R §8.3 uses the curve alone; a
crawl's visits are days apart, and only the rate knows how many). Where the machines have no answer, or have predicted
worse than the rate so far, the rate alone decides, so that they cost visits nowhere.

The cost is bounded: a machine learns from the newest 500 visits; at most `fits` pages and experts are looked at per
cycle, those with the newest visits; at most `pages` pages are tracked. All state is in the book's memory under a name,
so it follows from the visits alone, in the lab as live.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Floats, Ints, median
from recrawl.errors import UsageError
from recrawl.learn.experts import visit_panels
from recrawl.learn.experts.classifiers import MIN_EXAMPLES
from recrawl.learn.experts.features import FeatureWindow
from recrawl.learn.experts.machine_state import MachineState
from recrawl.learn.experts.panels import SINGLE_PAGE, Machines
from recrawl.learn.experts.svm import PlattCurve, fit_platt_curve
from recrawl.learn.experts.visit_log import VisitLog
from recrawl.learn.pooled.learner import PooledLearner, failure_penalty
from recrawl.model import Outcome, Outcomes, Pages

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
        chosen = visit_panels.choose_experts(
            state.log, self.experts, self.k, lags, state.moments, book.links, self.omega
        )
        return replace(state, machines=state.machines.with_experts(chosen))

    def _fit(self, state: _State, *, tune: bool) -> tuple[_State, int]:
        """Fit the machines, and ask them about the pages with the newest visits; also returns their number."""
        log, machines = state.log, state.machines
        slots = visit_panels.predictable(log)
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
        margin, cost, fitted = visit_panels.margins(log, parameters, machines.panel(log, slots[due]), tune=tune)
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
