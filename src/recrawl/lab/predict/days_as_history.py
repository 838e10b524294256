"""Days as a history, so that a policy can crawl what R's methods are evaluated on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.columns import DAY
from recrawl.lab.histories.history import History, VersionWords, assemble
from recrawl.lab.predict.days import Days
from recrawl.learn.experts.word_dynamics import carry_forward


def as_history(days: Days) -> History:
    """One row where a page's version or text differs from the day before; a page not observed stays as it was.

    Day 0 is the start of the history: the repository holds the pages that were observed on it.
    """
    text = carry_forward(days.text)
    numbers = np.unique(days.version, return_inverse=True)[1].reshape(days.version.shape)  # versions may be digests
    version = carry_forward(np.where(days.seen, numbers, -1).astype(np.int32))
    known = text >= 0
    before = np.concatenate((np.full((len(days), 1), -1), version[:, :-1]), axis=1)
    text_before = np.concatenate((np.full((len(days), 1), -1), text[:, :-1]), axis=1)
    page, day = np.nonzero(known & ((version != before) | (text != text_before)))
    number = np.flatnonzero(known.any(axis=1))
    history = assemble(
        [days.urls[row] for row in number.tolist()],
        np.searchsorted(number, page),
        np.asarray(day * DAY, np.float64),
        version[page, day].astype(np.int64),
        change=days.label,
        carries=frozenset({"text", "words"}),
    )
    return replace(history, words=VersionWords(text[page, day].astype(np.int32), days.bags))
