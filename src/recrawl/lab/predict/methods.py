"""R's prediction methods on days (spec L1, L3): the change probability of each page on each test day.

    predict(days, PredictionSetting("3d", experts="xcorr", k=20, train=50), range(100, 130))

The prediction for a day uses only the days before it. Experts are chosen once, from all days before the first test day.
Machines are retrained for each day on a sliding window. Platt calibration, fitted to the margins of the days before
(all pages together), turns margins into probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.extras import sparse
from recrawl.lab.predict.days import Days
from recrawl.learn.experts.classifiers import (
    MIN_EXAMPLES,
    PlattCurve,
    Problems,
    TrainedSVMs,
    TrainingSet,
    fit_platt_curve,
    polynomial,
    select_cost,
    solve,
    training_set,
    votes,
)
from recrawl.learn.experts.features import (
    FeatureWindow,
    Observations,
    OwnFeatures,
    numeric_features,
    own_features,
    pair_features,
    row_sums,
)
from recrawl.learn.experts.online_learner import IncrementalRelations, OnlineClassifiers
from recrawl.learn.experts.panels import Machines, Panel, day_classifier, expert_problems, own_problems
from recrawl.learn.experts.selection import Experts, by_content, by_graph, by_time
from recrawl.learn.experts.word_dynamics import OMEGAS, WordDynamics, word_dynamics

# --------------------------------------------------------------------------------------------------------------------
# R's single and multiple experts, updated day by day instead of being retrained (spec L5).
#
# Features, experts and the vote are those of `methods`; the classifiers differ (`learn.experts.online_learner`). The
# word distribution is projected with random signs to a few numbers, since a classifier that keeps no old day cannot
# compare with one. Where experts were chosen by cross-correlation, their weights are updated too, from the newest
# snapshot alone.


SKETCH = 4
"""Numbers that represent the word distribution."""
_ONLINE_BATCH = 250
_SEED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The features of all pages on all days."""

    days: Days
    shape: FeatureWindow
    observations: Observations
    values: Float32s
    present: Flags
    words: Float32s
    """Text by number: the word sketch."""

    @classmethod
    def of(cls, days: Days, shape: FeatureWindow) -> Stream:
        """The features of `days`."""
        observations = Observations(days.bags, days.text, days.changed, days.labelled)
        values, _, present = numeric_features(observations, shape)
        return cls(days, shape, observations, values, present, word_sketch(days.bags, observations.known))


def word_sketch(bags: sparse.csr_array, text: Int32s) -> Float32s:
    """Text by number: word shares summed with random signs, for the texts that occur."""
    rng = np.random.default_rng(_SEED)
    width = bags.shape[1]
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=width)
    projection = sparse.csr_array((signs, (np.arange(width), rng.integers(SKETCH, size=width))), shape=(width, SKETCH))
    sketch = np.zeros((bags.shape[0] + 1, SKETCH), np.float32)  # the last row is for a page that was never observed
    used = np.unique(text[text >= 0])
    counts = bags[used].astype(np.float32)
    sketch[used] = (counts @ projection).toarray() / np.maximum(row_sums(counts), 1.0)[:, None]
    return sketch


def scores(
    days: Days,
    scored_days: range,
    train: int,
    shape: FeatureWindow,
    experts: Experts | None,
    words: WordDynamics | None,
    targets: Ints,
) -> tuple[Flags, Floats]:
    """Page by scored day: decision and margin. Learning begins `train` days before the first scored day.

    `words` are the dynamics by which the experts were chosen, from the days before the first scored day.
    """
    first_day = max(0, scored_days.start - train - 2 * shape.interval - shape.window)
    stream = Stream.of(days.between(first_day, scored_days.stop), shape)
    decision = np.zeros((len(days), len(scored_days)), np.bool_)
    score = np.full((len(days), len(scored_days)), np.nan)
    weight = None if experts is None else vote_weights_by_day(days, scored_days, experts, words, targets)
    first = max(shape.interval, scored_days.start - train - first_day)
    for start, stop in pairwise([*range(0, len(targets), _ONLINE_BATCH), len(targets)]):
        batch = targets[start:stop]
        for day, margin in _margins(stream, range(first, scored_days.stop - first_day), experts, batch):
            column = day + first_day - scored_days.start
            if column >= 0 and weight is None:
                decision[batch, column], score[batch, column] = margin[:, 0] > 0, margin[:, 0]
            elif column >= 0 and weight is not None:
                decision[batch, column], score[batch, column] = votes(margin, weight[column, start:stop])
    return decision, score


def vote_weights_by_day(
    days: Days, scored_days: range, experts: Experts, words: WordDynamics | None, targets: Ints
) -> Floats:
    """Scored day by target by expert, the target itself first: the weight of each vote, from the days before."""
    vote_weights = np.ones((len(scored_days), len(targets), experts.page.shape[1] + 1))
    vote_weights[:, :, 1:] = experts.weight[targets]
    known = experts.page[targets] >= 0
    if experts.kind != "xcorr" or words is None or not known.any():
        return vote_weights
    a = np.broadcast_to(targets[:, None], known.shape)[known]
    relations = IncrementalRelations(words, a, experts.page[targets][known].astype(np.int64))
    for day in range(scored_days.stop):
        if day >= scored_days.start:
            vote_weights[day - scored_days.start, :, 1:][known] = relations.weights()
        relations.add(days.counts(day), days.seen[:, day])
    return vote_weights


def _margins(stream: Stream, days: range, experts: Experts | None, targets: Ints) -> Iterator[tuple[int, Floats]]:
    """For each day, target by expert: the margin; NaN where the expert abstains."""
    expert = targets[:, None]
    if experts is not None:
        expert = np.concatenate((expert, experts.page[targets]), axis=1).astype(np.int64)
    shape = expert.shape
    # The target stands in for a missing expert; that vote has weight 0.
    expert = np.where(expert >= 0, expert, targets[:, None]).ravel()
    target = np.repeat(targets, shape[1])
    values, present = stream.values[expert], stream.present[expert]
    if experts is not None:
        values = np.concatenate((values, pair_features(stream.observations, target, expert, stream.shape)), axis=2)
    classifiers = OnlineClassifiers(len(target), values.shape[2] + SKETCH, grouped=SKETCH)
    labelled, changed = stream.days.labelled[target], stream.days.changed[target]
    for day in days:
        feature_day = day - stream.shape.interval
        words = stream.words[stream.observations.known[expert, feature_day]]
        seen = classifiers.scale(np.concatenate((values[:, feature_day], words), axis=1), present[:, feature_day])
        answerable = present[:, feature_day] & (classifiers.examples >= MIN_EXAMPLES)
        yield day, np.where(answerable, classifiers.margin(seen), np.nan).reshape(shape)
        classifiers.update(seen, changed[:, day], present[:, feature_day] & labelled[:, day])


# --------------------------------------------------------------------------------------------------------------------


METHODS = ("frequency", "1d", "2d", "3d", "union", "bagging", "boosting", "online-2d", "online-3d", "pooled")
"""Names of all methods."""
_SINGLE_PAGE = ("1d", "2d", "online-2d")
"""Methods that use only the page's own features."""
EXPERTS = ("graph", "content", "xcorr", "dtw")
"""Ways to choose experts."""
_METHODS_BATCH = 250
"""Targets whose features are in memory together."""
_CALIBRATION_PAGES = 60
"""Pages on which the machines' cost parameter is chosen."""
_MAX_CALIBRATION = 20_000
"""Margins that a Platt fit uses, the newest."""


@dataclass(frozen=True, slots=True)
class PredictionSetting:
    """A method and its parameters; `window`, `interval` and `train` are in days."""

    method: str = "3d"
    experts: str = "xcorr"
    k: int = 20
    train: int = 50
    window: int = 1
    interval: int = 1
    seed: int = 1
    workers: int = 1
    lags: tuple[int, int] = (0, 7)
    """First and last lag of the cross-correlation, in days; R has 1 to N."""
    words: int = 24
    """Words per page whose dynamics are compared."""
    omega: str = "last"
    """The weight of a word (see `word_dynamics.OMEGAS`)."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.method not in METHODS:
            raise UsageError(f"unknown method '{self.method}'; use one of {', '.join(METHODS)}")
        if self.experts not in EXPERTS:
            raise UsageError(f"unknown way to choose experts '{self.experts}'; use one of {', '.join(EXPERTS)}")
        if min(self.k, self.train, self.window, self.interval) < 1:
            raise UsageError("k, train, window and interval must be 1 or more")
        if not 0 <= self.lags[0] <= self.lags[1]:
            raise UsageError(f"invalid lags {self.lags[0]}-{self.lags[1]}: use the first and the last, such as 1-20")
        if self.words < 1:
            raise UsageError(f"invalid number of words {self.words}; use 1 or more")
        if self.omega not in OMEGAS:
            raise UsageError(f"unknown word weight '{self.omega}'; use one of {', '.join(OMEGAS)}")

    @property
    def feature_window(self) -> FeatureWindow:
        """The part that the features depend on."""
        return FeatureWindow(self.window, self.interval)

    def machines(self, cost: float = 1.0) -> Machines:
        """The parameters of the machines."""
        return Machines(self.method, self.train, cost, self.seed, self.feature_window)

    @property
    def first(self) -> int:
        """The earliest day that can be predicted, with one day before it to calibrate on."""
        return self.train + self.interval + 1


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Page by test day."""

    probability: Floats
    """The change probability; NaN where there is not enough history yet."""
    decision: Flags
    """Yes or no: the majority of votes, else a probability of at least 0.5."""
    fallback: Flags
    """The machines abstained or knew one class only, so the page's frequency was used."""


@dataclass(slots=True)
class DayPasses:
    """Passes over the days of one world, each made once for all settings that need the same.

    Without it every prediction makes its own, as it must where its cost is measured.
    """

    _words: dict[tuple[int, int, str], WordDynamics] = field(default_factory=dict)
    _features: dict[tuple[range, FeatureWindow], tuple[Observations, OwnFeatures]] = field(default_factory=dict)

    def words(self, days: Days, before: int, setting: PredictionSetting) -> WordDynamics:
        """The word dynamics of pages up to a day."""
        key = (before, setting.words, setting.omega)
        if key not in self._words:
            known = days.between(0, before)
            self._words[key] = word_dynamics(known.bags, known.text, setting.words, setting.omega)
        return self._words[key]

    def features(self, days: Days, span: range, window: FeatureWindow) -> tuple[Observations, OwnFeatures]:
        """The pages on a span of days and their own features; those of the last span are kept."""
        key = (span, window)
        if key not in self._features:
            part = days.between(span.start, span.stop)
            observed = Observations(part.bags, part.text, part.changed, part.labelled)
            self._features = {key: (observed, own_features(observed, window))}
        return self._features[key]


def predict(
    days: Days,
    setting: PredictionSetting,
    test_days: range,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    targets: Ints | None = None,
    passes: DayPasses | None = None,
) -> Predictions:
    """The predictions of a method for the test days: for all pages, or at least for the targets."""
    passes = passes or DayPasses()
    if not len(test_days) or test_days.step != 1 or test_days.stop > days.seen.shape[1]:
        raise UsageError("test days must be consecutive days of the history")
    if setting.method == "pooled":
        from recrawl.lab.predict import pooled_predictor as pooled  # lazy: loads slowly

        probability = pooled.predict(days, setting.train, test_days, setting.seed)
        return Predictions(probability, probability >= 0.5, np.zeros(probability.shape, np.bool_))
    frequencies = frequency(days, setting.train, test_days)
    if setting.method == "frequency":
        return Predictions(frequencies, frequencies >= 0.5, np.zeros(frequencies.shape, np.bool_))
    if test_days.start < setting.first:
        raise UsageError(
            f"{setting.train} training days need {setting.first} days of history before the first prediction, "
            f"but there are {test_days.start}; use a smaller --train"
        )
    scored_days = range(test_days.start - 1, test_days.stop)  # one day more, to calibrate on
    pages = np.arange(len(days)) if targets is None else targets
    related = setting.method not in _SINGLE_PAGE
    timed = related and setting.experts in ("xcorr", "dtw")
    words = passes.words(days, scored_days.start, setting) if timed else None
    experts = chosen_experts(days, setting, scored_days.start, words) if related else None
    if setting.method.startswith("online"):
        window = setting.feature_window
        updated = words if setting.omega == "last" and setting.lags == (0, 7) else None
        decision, score = scores(days, scored_days, setting.train, window, experts, updated, pages)
    else:
        decision, score = margins_by_day(days, setting, scored_days, experts, pages, progress, passes)
    return _as_predictions(days, setting, scored_days, decision, score)


def _as_predictions(
    days: Days, setting: PredictionSetting, scored_days: range, decision: Flags, score: Floats
) -> Predictions:
    """Probabilities from the margins of the scored days; the first day only serves calibration."""
    frequencies, one_class = _smoothed_frequency(days, setting.train, scored_days)
    # With one class only there is nothing to learn; the smoothed frequency reflects the number of examples.
    probability = _methods_calibrated(np.where(one_class, np.nan, score), days, scored_days)
    return _with_fallback(probability, decision[:, 1:], frequencies[:, 1:])


def frequency(days: Days, train: int, test_days: range) -> Floats:
    """The baseline (R §5.1): the share of labelled days in the window that have a change."""
    known = _window_sums(days.labelled, train, test_days)
    changes = _window_sums(days.changed & days.labelled, train, test_days)
    share: Floats = np.divide(changes, known, out=np.full(known.shape, np.nan), where=known > 0)
    return share


def _smoothed_frequency(days: Days, train: int, scored_days: range) -> tuple[Floats, Flags]:
    """The frequency with Laplace smoothing, and where the window has one class only."""
    known = _window_sums(days.labelled, train, scored_days)
    changes = _window_sums(days.changed & days.labelled, train, scored_days)
    frequencies = np.where(known > 0, (changes + 1) / (known + 2), np.nan)
    return frequencies, (changes == 0) | (changes == known)


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
    dynamics = words or DayPasses().words(days, before, setting)
    first, last_lag = setting.lags
    return by_time(dynamics, setting.k, setting.experts, last_lag, setting.seed, first_lag=first)


def margins_by_day(
    days: Days,
    setting: PredictionSetting,
    scored_days: range,
    experts: Experts | None,
    pages: Ints,
    progress: Callable[[int, int], None] = lambda *_: None,
    passes: DayPasses | None = None,
) -> tuple[Flags, Floats]:
    """Page by scored day: decisions and margins; `experts` is None for methods that use only the page itself."""
    first_day = max(0, scored_days.start - setting.train - 2 * setting.interval - setting.window)
    span = range(first_day, scored_days.stop)
    observed, features = (passes or DayPasses()).features(days, span, setting.feature_window)
    cost = _cost(features, observed, setting, pages, scored_days.start - first_day)
    decision = np.zeros((len(days), len(scored_days)), np.bool_)
    score = np.full((len(days), len(scored_days)), np.nan)
    for start, stop in pairwise([*range(0, len(pages), _METHODS_BATCH), len(pages)]):
        batch = pages[start:stop]
        classify = day_classifier(features, observed, setting.machines(cost), Panel.of(batch, experts))
        with ThreadPoolExecutor(setting.workers) as pool:
            margin = list(pool.map(classify, [day - first_day for day in scored_days]))
        for column, (yes, sure) in enumerate(margin):
            decision[batch, column], score[batch, column] = yes, sure
        progress(stop, len(pages))
    return decision, score


def _cost(features: OwnFeatures, observed: Observations, setting: PredictionSetting, pages: Ints, day: int) -> float:
    """The machines' cost parameter, chosen on the first window."""
    count = min(_CALIBRATION_PAGES, len(pages))
    sample = pages[np.linspace(0, len(pages) - 1, count).astype(np.int64)]
    return select_cost(own_problems(features, observed, setting.machines(), sample), day, setting.train)


def _methods_calibrated(score: Floats, days: Days, scored_days: range) -> Floats:
    """Probabilities for all scored days but the first, each calibrated on margins and outcomes of earlier days."""
    span = slice(scored_days.start, scored_days.stop)
    truth, known = days.changed[:, span], days.labelled[:, span]
    probability = np.full((len(score), len(scored_days) - 1), np.nan)
    for column in range(1, len(scored_days)):
        past = known[:, :column] & np.isfinite(score[:, :column])
        # Newest first, so that the limit drops the oldest.
        past_score = score[:, :column].T[::-1][past.T[::-1]][:_MAX_CALIBRATION]
        outcome = truth[:, :column].T[::-1][past.T[::-1]][:_MAX_CALIBRATION]
        probability[:, column - 1] = fit_platt_curve(past_score, outcome)(score[:, column])
    return probability


def _with_fallback(probability: Floats, decision: Flags, frequencies: Floats) -> Predictions:
    """Where the machines abstained, the page's frequency; NaN where it has none either."""
    abstained = ~np.isfinite(probability)
    return Predictions(
        np.where(abstained, frequencies, probability),
        np.where(abstained, np.nan_to_num(frequencies) >= 0.5, decision),
        abstained & np.isfinite(frequencies),
    )


# --------------------------------------------------------------------------------------------------------------------
# Machines that are trained once and asked on later days (R §8.3: batch crawling, without training in the crawl).
#
#
# The features of a later day come from what is known by then; training examples, experts and calibration stay those of
# the day of the fit. Platt calibration is fitted to margins from cross-validation on the training examples.


_BATCH = 1_000
_FOLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class FrozenMachines:
    """Single or multiple experts of all pages, as of one day."""

    machines: Machines
    panel: Panel
    day: int
    trained: list[TrainedSVMs]
    curve: PlattCurve

    @classmethod
    def fit(cls, known: Days, setting: PredictionSetting, day: int) -> FrozenMachines:
        """Train on the `train` days before a day; the method is 2d or 3d."""
        experts = None if setting.method == "2d" else chosen_experts(known, setting, day)
        panel = Panel.of(np.arange(len(known)), experts)
        own, *_ = _problems(known, replace(setting, method="2d").machines(), Panel.of(panel.target, None), day + 1)
        machines = setting.machines(select_cost(own, day, setting.train))
        problems, *place = _problems(known, machines, panel, day + 1)
        trained: list[TrainedSVMs] = []
        margin = np.full((len(known), panel.expert.shape[1], setting.train), np.nan)
        for part, examples in _examples(problems, day, setting.train):
            kernel = polynomial(examples.inner, 1.0)[:, :-1]
            trained.append(solve(kernel, examples.label, examples.usable * np.float64(machines.cost)))
            enough = examples.answerable[:, None] & examples.usable
            margin[place[0][part], place[1][part]] = np.where(
                enough, _out_of_fold(kernel, examples, machines.cost), np.nan
            )
        label = known.changed[:, day - setting.train : day]
        return cls(machines, panel, day, trained, _calibrated(margin, panel.weight, label))

    def probability(self, known: Days, day: int) -> Floats:
        """One per page: the probability of a change on a day; NaN where the machines abstain."""
        return self.curve(self.margin(known, day))

    def margin(self, known: Days, day: int) -> Floats:
        """One per page: the weighted mean margin of its machines, above 0 for a change."""
        problems, *place = _problems(known, self.machines, self.panel, day + 1)
        margin = np.full(self.panel.expert.shape, np.nan)
        parts = _examples(problems, self.day, self.machines.train, day - self.day)
        for trained, (part, examples) in zip(self.trained, parts, strict=True):
            query = polynomial(examples.inner, 1.0)[:, -1]
            margin[place[0][part], place[1][part]] = np.where(examples.answerable, trained.margin(query), np.nan)
        return margin[:, 0] if self.machines.method == "2d" else votes(margin, self.panel.weight)[1]


def _problems(known: Days, machines: Machines, panel: Panel, stop: int) -> tuple[Problems, Ints, Ints]:
    """The problems of the panel, and their places in it, from the days before `stop`."""
    days = known.between(0, stop)
    observed = Observations(days.bags, days.text, days.changed, days.labelled)
    problems = own_problems(own_features(observed, machines.shape), observed, machines, panel.target)
    if machines.method == "2d":
        return problems, panel.target, np.zeros(len(panel.target), np.int64)
    return expert_problems(problems, observed, machines, panel)


def _examples(problems: Problems, day: int, train: int, ahead: int = 0) -> Iterator[tuple[slice, TrainingSet]]:
    for start in range(0, len(problems), _BATCH):
        part = slice(start, min(start + _BATCH, len(problems)))
        yield part, training_set(problems, part, day, train, ahead)


def _out_of_fold(kernel: Floats, examples: TrainingSet, cost: float) -> Floats:
    """Problem by example: the margin of a machine that was not trained on the example."""
    fold = np.arange(kernel.shape[1]) * _FOLDS // kernel.shape[1]
    side = np.full(examples.label.shape, np.nan)
    for number in range(_FOLDS):
        out = fold == number
        machine = solve(kernel, examples.label, np.where(out, 0.0, cost) * examples.usable)
        side[:, out] = np.einsum("bij,bj->bi", kernel[:, out], machine.weight) + machine.bias[:, None]
    return side


def _calibrated(margin: Floats, weight: Floats, label: Flags) -> PlattCurve:
    """From margins (page by expert by example) and labels (page by example)."""
    by_example = np.stack([votes(margin[:, :, place], weight)[1] for place in range(margin.shape[2])], axis=1)
    known = np.isfinite(by_example)
    return fit_platt_curve(by_example[known], label[known])
