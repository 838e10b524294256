"""Judge a change: which changed lines are content, how much of the content changed, and what a reader gains.

Every changed line gets a score from `FEATURES`: positive for content, negative for frame. A line that changed without
anybody writing (a date stamp, another order of words) is frame whatever its score. A change is a change of content if
the best line's score is positive.

Significance is the probability that a reader calls the change news, from `MEASURES`: the best score and the amount of
new content. The weights are fitted by `python -m benchmarks.content fit`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from recrawl.columns import Floats

if TYPE_CHECKING:  # the crawler judges changes that a reader process has found: it loads no parser
    from recrawl.compare.content.lines import Line

FEATURES = (
    "bias",
    "pages",  # log of the number of other pages with the line
    "share",  # root of their share
    "framed",  # in a navigation, footer, sidebar ... by the element's name
    "around",  # root of the mean share of pages with the lines around it
)
LINE_WEIGHTS = np.array([2.42, -0.45, -2.22, -3.18, -1.69])
MEASURES = (
    "bias",
    "score",  # the best line's
    "words",  # log of the words of changed content lines
    "facts",  # log of the number of added content lines with a number, or that are headings
)
CHANGE_WEIGHTS = np.array([-1.14, 0.98, 0.05, 0.78])
_MECHANICAL = -10.0
_MAX_SCORE = 4.0


class LineChange(NamedTuple):
    """A line that only one of two versions has. Small, because reader processes send it to the crawler."""

    key: int
    added: bool
    framed: bool
    mechanical: bool
    """Whether it changed without anybody writing: the date of a stamp, or another order of its words."""
    own: bool
    """Whether the user says that it is content."""
    fact: bool
    """Whether it has a number or is a heading."""
    words: int
    near: tuple[int, ...]
    """Keys of the lines around it."""
    instead: int
    """Key of the line that the other version has in its place; 0 without one."""
    slot: int
    """The line up to its numbers and dates, if nothing else of it changed; otherwise 0."""


class ContentChange(NamedTuple):
    """The verdict on a change."""

    content: bool
    share: float
    """Share of the content's words that changed, 0 to 1."""
    significance: float
    """Probability that a reader calls it news, 0 to 1."""
    scores: tuple[float, ...] = ()
    """For each changed line: positive for content."""


NOTHING = ContentChange(content=False, share=0.0, significance=0.0)


class LineEvidence(Protocol):
    """What is known about the other pages of the site."""

    @property
    def pages(self) -> int:
        """The number of other pages that are known."""
        ...

    def pages_with(self, key: int, *, added: bool) -> int:
        """How many of them hold a line, or held it; `added` tells whether it is a line of the new version."""
        ...


class NoEvidence:
    """Nothing is known about other pages: only the names of elements tell the frame."""

    pages = 0

    def pages_with(self, key: int, *, added: bool) -> int:  # noqa: ARG002
        """None."""
        return 0


def content_words(old: Sequence[Line], new: Sequence[Line]) -> int:
    """The number of words of both versions outside the elements of the frame."""
    texts = [line[0] for line in chain(old, new) if not line[2]]
    return "\n".join(texts).count(" ") + len(texts)


def judge(changes: Sequence[LineChange], total_words: int, known: LineEvidence) -> ContentChange:
    """Judge a change by its lines; `total_words` are the `content_words` of both versions."""
    if not changes:
        return NOTHING
    scores = line_scores(changes, known)
    changed = sum(change.words for change, score in zip(changes, scores.tolist(), strict=True) if score > 0)
    logit = float(change_measures(changes, scores) @ CHANGE_WEIGHTS)
    return ContentChange(
        content=bool(scores.max() > 0),
        share=min(1.0, changed / total_words) if total_words else float(changed > 0),
        significance=1.0 / (1.0 + math.exp(-logit)),
        scores=tuple(scores.tolist()),
    )


def line_scores(changes: Sequence[LineChange], known: LineEvidence) -> Floats:
    """The score of each changed line."""
    scores: Floats = feature_matrix(changes, known) @ LINE_WEIGHTS
    scores[[change.mechanical for change in changes]] = _MECHANICAL
    scores[[change.own for change in changes]] = _MAX_SCORE
    return scores


def feature_matrix(changes: Sequence[LineChange], known: LineEvidence) -> Floats:
    """One row for each changed line, one column for each of `FEATURES`."""
    rows = []
    total = max(known.pages, 1)
    for change in changes:
        # A line in the place of a frame line is frame too, even if no other page has been seen with it yet.
        pages = max(
            known.pages_with(change.key, added=change.added),
            known.pages_with(change.instead, added=not change.added) if change.instead else 0,
        )
        near = sum(known.pages_with(key, added=change.added) for key in change.near)
        around = near / (total * len(change.near)) if change.near else 0.0
        rows.append(
            (1.0, math.log1p(pages), math.sqrt(min(1.0, pages / total)), change.framed, math.sqrt(min(1.0, around)))
        )
    return np.array(rows, np.float64)


def change_measures(changes: Sequence[LineChange], scores: Floats) -> Floats:
    """The measures of a change, in the order of `MEASURES`."""
    own = [change for change, score in zip(changes, scores.tolist(), strict=True) if score > 0]
    best = max(-_MAX_SCORE, min(_MAX_SCORE, float(scores.max())))
    words = sum(change.words for change in own)
    facts = sum(1 for change in own if change.added and change.fact)
    return np.array([1.0, best, math.log1p(words), math.log1p(facts)])
