"""R's ways to predict, on days (spec L1, L3): what each page is likely to do on each test day.

    predict(days, Setting("3d", experts="xcorr", k=20, train=50), range(100, 130))

The prediction for a day rests on the days before it only. Experts are chosen once, from all days before the first test
day. Machines are trained anew for each day on a window that slides along. A machine's answer becomes a probability by
Platt's curve, fitted to its answers of the days before (all pages together).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.predict import online
from recrawl.lab.predict.days import Days
from recrawl.learn.experts import platt
from recrawl.learn.experts.classifiers import (
    Problems,
    bagging,
    boosting,
    margins,
    relational_union,
    select_cost,
    single,
    votes,
)
from recrawl.learn.experts.features import FeatureWindow, Observations, OwnFeatures, own_features, pair_features
from recrawl.learn.experts.selection import Experts, by_content, by_graph, by_time
from recrawl.learn.experts.word_dynamics import WordDynamics, word_dynamics

METHODS = ("frequency", "1d", "2d", "3d", "union", "bagging", "boosting", "online-2d", "online-3d", "pooled")
_ALONE = ("1d", "2d", "online-2d")
"""Methods that look at the page only."""
EXPERTS = ("graph", "content", "xcorr", "dtw")
_TARGETS = 250
"""Targets whose features are in memory together."""
_TRIED = 60
"""Pages by which the machines' parameter is chosen."""
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class PredictionSetting:
    """How predictions are made."""

    method: str = "3d"
    experts: str = "xcorr"
    k: int = 20
    train: int = 50
    window: int = 1
    interval: int = 1
    seed: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.method not in METHODS:
            raise UsageError(f"a method is one of {', '.join(METHODS)}, not '{self.method}'")
        if self.experts not in EXPERTS:
            raise UsageError(f"experts are chosen by one of {', '.join(EXPERTS)}, not '{self.experts}'")
        if min(self.k, self.train, self.window, self.interval) < 1:
            raise UsageError("k, train, window and interval are 1 or more")

    @property
    def first(self) -> int:
        """The earliest day that can be predicted, with one before it to calibrate by."""
        return self.train + self.interval + 1


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Page by test day."""

    chance: Floats
    """How likely a change is; not a number where there is not enough history yet."""
    says: Flags
    """The method's yes or no: by majority for votes, else from a chance of one half."""
    fallback: Flags
    """The machines abstained or knew one class only, so the page's frequency was taken."""


def predict(
    days: Days,
    setting: PredictionSetting,
    test_days: range,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    targets: Ints | None = None,
) -> Predictions:
    """The predictions of a method for the test days: for all pages, or at least for the targets."""
    if not len(test_days) or test_days.step != 1 or test_days.stop > days.seen.shape[1]:
        raise UsageError("test days are days of the history, one after another")
    if setting.method == "pooled":
        from recrawl.lab.predict import pooled_predictor as pooled  # lazy: loads slowly

        chance = pooled.predict(days, setting.train, test_days, setting.seed)
        return Predictions(chance, chance >= 0.5, np.zeros(chance.shape, np.bool_))
    often = frequency(days, setting.train, test_days)
    if setting.method == "frequency":
        return Predictions(often, often >= 0.5, np.zeros(often.shape, np.bool_))
    if test_days.start < setting.first:
        raise UsageError(
            f"{setting.train} training days need {setting.first} days of history before the first prediction, "
            f"and there are {test_days.start}: take fewer with --train"
        )
    asked = range(test_days.start - 1, test_days.stop)  # one day more, to calibrate by
    wanted = np.arange(len(days)) if targets is None else targets
    related = setting.method not in _ALONE
    words = words_before(days, asked.start) if related and setting.experts in ("xcorr", "dtw") else None
    chosen = chosen_experts(days, setting, asked.start, words) if related else None
    if setting.method.startswith("online"):
        shape = FeatureWindow(setting.window, setting.interval)
        return _told(days, setting, asked, *online.scores(days, asked, setting.train, shape, chosen, words, wanted))
    return _told(days, setting, asked, *voted(days, setting, asked, chosen, wanted, progress))


def _told(days: Days, setting: PredictionSetting, asked: range, says: Flags, score: Floats) -> Predictions:
    """Chances from what machines said of the days asked; the first is only there to calibrate by."""
    often, one_class = _shrunk(days, setting.train, asked)
    # Where all examples have the same label there is nothing to learn: how many they are says how sure it is.
    chance = _calibrated(np.where(one_class, np.nan, score), days, asked)
    return _with_fallback(chance, says[:, 1:], often[:, 1:])


def frequency(days: Days, train: int, test_days: range) -> Floats:
    """The baseline (R §5.1): the share of days with a change among those of the window that have a label."""
    known = _window_sums(days.labelled, train, test_days)
    changes = _window_sums(days.changed & days.labelled, train, test_days)
    share: Floats = np.divide(changes, known, out=np.full(known.shape, np.nan), where=known > 0)
    return share


def _shrunk(days: Days, train: int, asked: range) -> tuple[Floats, Flags]:
    """The frequency drawn a little to the middle (Laplace's rule), and where the window has one class only."""
    known = _window_sums(days.labelled, train, asked)
    changes = _window_sums(days.changed & days.labelled, train, asked)
    often = np.where(known > 0, (changes + 1) / (known + 2), np.nan)
    return often, (changes == 0) | (changes == known)


def _window_sums(flags: Flags, train: int, test_days: range) -> Floats:
    total = np.zeros((len(flags), flags.shape[1] + 1))
    np.cumsum(flags, axis=1, out=total[:, 1:])
    at = np.array(test_days)
    return total[:, at] - total[:, np.maximum(at - train, 0)]


def chosen_experts(days: Days, setting: PredictionSetting, before: int, words: WordDynamics | None = None) -> Experts:
    """The experts of every page, from the days before a day (spec L4)."""
    last = before - 1
    if setting.experts == "graph":
        return by_graph(days.links_on(last), setting.k)
    if setting.experts == "content":
        return by_content(days.counts(last), setting.k)
    return by_time(words or words_before(days, before), setting.k, setting.experts, seed=setting.seed)


def words_before(days: Days, before: int) -> WordDynamics:
    """How the words of pages came and went until a day."""
    known = days.between(0, before)
    return word_dynamics(known.bags, known.text)


def voted(
    days: Days,
    setting: PredictionSetting,
    asked: range,
    chosen: Experts | None,
    wanted: Ints,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[Flags, Floats]:
    """Page by day asked: the machines' yes or no, and how sure; `chosen` is None for methods that see the page only."""
    begin = max(0, asked.start - setting.train - 2 * setting.interval - setting.window)
    short = days.between(begin, asked.stop)
    shape = FeatureWindow(setting.window, setting.interval)
    observed = Observations(short.bags, short.text, short.changed, short.labelled)
    features = own_features(observed, shape)
    cost = _cost(features, observed, setting, shape, wanted, asked.start - begin)
    says = np.zeros((len(days), len(asked)), np.bool_)
    score = np.full((len(days), len(asked)), np.nan)
    for start, stop in pairwise([*range(0, len(wanted), _TARGETS), len(wanted)]):
        some = wanted[start:stop]
        judge = judge_of(features, observed, setting, shape, chosen, some, cost)
        with ThreadPoolExecutor(setting.workers) as pool:
            found = list(pool.map(judge, [day - begin for day in asked]))
        for place, (yes, sure) in enumerate(found):
            says[some, place], score[some, place] = yes, sure
        progress(stop, len(wanted))
    return says, score


def _cost(
    features: OwnFeatures,
    observed: Observations,
    setting: PredictionSetting,
    shape: FeatureWindow,
    wanted: Ints,
    day: int,
) -> float:
    """The machines' one parameter, from the first window."""
    some = wanted[np.linspace(0, len(wanted) - 1, min(_TRIED, len(wanted))).astype(np.int64)]
    history_only = setting.method == "1d"
    problems = Problems(
        features, observed.changed, observed.labelled, some, some, history_only=history_only, shape=shape
    )
    return select_cost(problems, day, setting.train)


def judge_of(
    features: OwnFeatures,
    observed: Observations,
    setting: PredictionSetting,
    shape: FeatureWindow,
    chosen: Experts | None,
    targets: Ints,
    cost: float,
) -> Callable[[int], tuple[Flags, Floats]]:
    """What answers for a day: yes or no for each target, and how sure."""
    problems = Problems(
        features,
        observed.changed,
        observed.labelled,
        targets,
        targets,
        history_only=setting.method == "1d",
        shape=shape,
    )
    if chosen is None:
        return lambda day: _single(margins(problems, day, setting.train, cost))
    # The page itself is one of its experts, with the full weight of the relation.
    expert = np.concatenate((targets[:, None], chosen.page[targets]), axis=1).astype(np.int64)
    weight = np.concatenate((np.ones((len(targets), 1)), chosen.weight[targets]), axis=1).astype(np.float64)
    safe = np.where(expert >= 0, expert, targets[:, None])
    target = np.broadcast_to(targets[:, None], safe.shape)
    related = pair_features(observed, target.ravel(), safe.ravel(), shape).reshape(
        *safe.shape, observed.text.shape[1], -1
    )
    if setting.method == "3d":
        everyone = replace(
            problems,
            target=target.ravel(),
            expert=safe.ravel(),
            pairs=related.reshape(target.size, *related.shape[2:]),
        )
        return lambda day: votes(margins(everyone, day, setting.train, cost).reshape(safe.shape), weight)
    per_expert = [
        replace(problems, target=targets, expert=safe[:, place], pairs=related[:, place])
        for place in range(safe.shape[1])
    ]
    return lambda day: _single(_united(per_expert, setting, day, cost))


def _single(side: Floats) -> tuple[Flags, Floats]:
    return side > 0, side


def _united(per_expert: list[Problems], setting: PredictionSetting, day: int, cost: float) -> Floats:
    """Relational union, bagging or boosting."""
    found = np.full(len(per_expert[0]), np.nan)
    rng = np.random.default_rng([setting.seed, day])
    for part, taught in relational_union(per_expert, day, setting.train):
        if setting.method == "bagging":
            found[part] = bagging(taught, cost, rng)
        else:
            found[part] = boosting(taught, cost) if setting.method == "boosting" else single(taught, cost)
    return found


def _calibrated(score: Floats, days: Days, asked: range) -> Floats:
    """Chances for all days asked but the first, each by the answers and outcomes of the days before it."""
    truth, known = days.changed[:, asked.start : asked.stop], days.labelled[:, asked.start : asked.stop]
    chance = np.full((len(score), len(asked) - 1), np.nan)
    for place in range(1, len(asked)):
        past = known[:, :place] & np.isfinite(score[:, :place])
        # The newest first, so that what is left out is the oldest.
        old = score[:, :place].T[::-1][past.T[::-1]][:_REMEMBERED]
        came = truth[:, :place].T[::-1][past.T[::-1]][:_REMEMBERED]
        chance[:, place - 1] = platt.fit(old, came)(score[:, place])
    return chance


def _with_fallback(chance: Floats, says: Flags, often: Floats) -> Predictions:
    """Where the machines abstained, the page's frequency; where there is none either, not a number."""
    lacking = ~np.isfinite(chance)
    return Predictions(
        np.where(lacking, often, chance),
        np.where(lacking, np.nan_to_num(often) >= 0.5, says),
        lacking & np.isfinite(often),
    )


def sampled(days: Days, pages: int | None, seed: int) -> Days:
    """A sample of the pages, in their order."""
    if pages is None or pages >= len(days):
        return days
    return days.take(np.sort(np.random.default_rng(seed).choice(len(days), pages, replace=False)))


def observations(days: Days, share: float, seed: int) -> Flags:
    """Page by day: visited by chance with that share (spec L1, partially observed)."""
    return np.random.default_rng([seed, 7]).random(days.seen.shape) < share
