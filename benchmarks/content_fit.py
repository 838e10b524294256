"""Fit the weights of `recrawl.compare.content.judge` to labelled changes, and judge sites that they were not fitted on.

A change is news if one of its lines is, and the labels do not say which: the score of a change is a soft maximum over
its lines, and a logistic regression of that score gives the weights of a line (multiple-instance learning). Mechanical
lines are left out, since they are frame whatever they score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.content_labels import Sample
from recrawl.columns import Floats, Ints
from recrawl.compare.content.judge import FEATURES, MEASURES, change_measures

TEMPERATURE = 0.3
PENALTY = 0.01
NEWS_WEIGHT = 1.6
"""A lost piece of news is worse than noise that is shown."""
BORDER_WEIGHT = 0.5
FOLDS = 8


def scores(sample: Sample, line_weights: Floats) -> Floats:
    """The score of each changed line."""
    found: Floats = sample.features @ line_weights
    found[[change.mechanical for change in sample.changes]] = -np.inf
    return found


def is_content(sample: Sample, line_weights: Floats) -> bool:
    return bool(scores(sample, line_weights).max(initial=-np.inf) > 0)


def significance(sample: Sample, line_weights: Floats, change_weights: Floats) -> float:
    if not sample.changes:
        return 0.0
    return float(expit(change_measures(sample.changes, scores(sample, line_weights)) @ change_weights))


def fit_lines(samples: Sequence[Sample]) -> Floats:
    """`LINE_WEIGHTS`, from the changes that are labelled news or noise."""
    groups, news = [], []
    for sample in samples:
        own = sample.features[[not change.mechanical for change in sample.changes]] if sample.changes else ()
        if len(own) and sample.label != "border":
            groups.append(own)
            news.append(sample.label == "news")
    lines, is_news = np.concatenate(groups), np.array(news, float)
    spread = np.where(np.arange(len(FEATURES)) == 0, 1.0, lines.std(axis=0) + 1e-9)
    lines /= spread
    starts = np.cumsum([0, *map(len, groups[:-1])])
    of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    cost = np.where(is_news, NEWS_WEIGHT, 1.0) / len(groups)
    penalty = np.where(np.arange(len(FEATURES)) == 0, 0.0, PENALTY)

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, part = soft_maximum(lines @ weights, starts, of)
        error = np.logaddexp(0, value) - is_news * value
        slope = cost * (expit(value) - is_news)
        return float(cost @ error + penalty @ weights**2), (slope[of] * part) @ lines + 2 * penalty * weights

    fitted: Floats = minimize(loss, np.eye(len(FEATURES))[0], jac=True, method="L-BFGS-B").x
    return fitted / spread


def soft_maximum(score: Floats, starts: Ints, of: Ints) -> tuple[Floats, Floats]:
    """The soft maximum of each group of scores, and its derivative by each score.

    >>> value, part = soft_maximum(np.array([1.0, 1.0, 5.0]), np.array([0, 2]), np.array([0, 0, 1]))
    >>> value.round(3).tolist(), part.tolist()
    ([1.208, 5.0], [0.5, 0.5, 1.0])
    """
    top = np.maximum.reduceat(score, starts)
    power = np.exp((score - top[of]) / TEMPERATURE)
    total = np.add.reduceat(power, starts)
    return top + TEMPERATURE * np.log(total), power / total[of]


def fit_changes(samples: Sequence[Sample], line_weights: Floats) -> Floats:
    """`CHANGE_WEIGHTS`, with border changes at half weight as no news."""
    known = [sample for sample in samples if sample.changes]
    measures = np.array([change_measures(sample.changes, scores(sample, line_weights)) for sample in known])
    is_news = np.array([sample.label == "news" for sample in known])
    weight = np.where([sample.label == "border" for sample in known], BORDER_WEIGHT, 1.0)
    bias = MEASURES.index("bias")
    model = LogisticRegression(C=1.0).fit(np.delete(measures, bias, axis=1), is_news, sample_weight=weight)
    return np.insert(model.coef_[0], bias, model.intercept_[0])


def folds(sites: Sequence[str], seed: int, count: int = FOLDS) -> Ints:
    """The fold of each sample: all samples of a site are in the same."""
    names, of = np.unique(np.array(sites), return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % count)[of]


def cross_validated(samples: Sequence[Sample], seed: int) -> tuple[Floats, Floats]:
    """For each sample whether it is content, and its significance, by weights fitted on other sites."""
    fold = folds([sample.site for sample in samples], seed)
    content, meaning = np.zeros(len(samples)), np.zeros(len(samples))
    for one in np.unique(fold):
        others = [sample for sample, where in zip(samples, fold, strict=True) if where != one]
        by_line = fit_lines(others)
        by_change = fit_changes(others, by_line)
        for place in np.flatnonzero(fold == one).tolist():
            content[place] = is_content(samples[place], by_line)
            meaning[place] = significance(samples[place], by_line, by_change)
    return content, meaning
