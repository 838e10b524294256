"""Histories that begin later: at any time they show what the whole history shows so much later."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Clusters
from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History, without_start
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.timeline import Timeline
from tests.test_lab_replay import Page, Plain, Row, history_of, plains

Shown = dict[str, tuple[int, int, frozenset[str]]]


def shown(history: History, at: float) -> Shown:
    """What is there at a time: version, size and links, by address."""
    tape = Timeline(history)
    tape.advance(at)
    assert history.links is not None
    there = np.flatnonzero(tape.there & (tape.row >= 0) & (tape.version >= 0))
    links = history.links.at(history.links.of_row[tape.row[there]])
    return {
        history.urls[page]: (
            int(tape.version[page]),
            int(history.size[tape.row[page]]),
            frozenset(history.urls[target] for target in links.of(place)),
        )
        for place, page in enumerate(there.tolist())
    }


@given(plain=plains(), skip=st.integers(0, 40), after=st.integers(0, 40))
def test_a_cut_history_equals_the_whole_history_later(plain: Plain, skip: int, after: int) -> None:
    history = history_of(plain)
    if skip >= history.span or not any(shown(history, at) for at in range(skip, 62)):
        with pytest.raises(UsageError, match="cannot skip"):
            without_start(history, skip)
        return
    rest = without_start(history, skip)
    # What leads to a page that is never seen again is left out.
    known = {
        url: (version, size, links & set(rest.urls))
        for url, (version, size, links) in shown(history, skip + after).items()
    }
    assert shown(rest, after) == known


@given(plain=plains(), skip=st.integers(0, 40))
def test_every_page_exists_at_some_time(plain: Plain, skip: int) -> None:
    try:
        rest = without_start(history_of(plain), skip)
    except UsageError:
        return
    assert set(rest.urls) == set().union(*(shown(rest, at) for at in range(62)))
    np.testing.assert_array_equal(rest.begins, history_of(plain).begins + skip)


def test_page_columns_keep_their_pages() -> None:
    gone = Page(0, (Row(0, 1), Row(3, None)))
    stays, born = Page(0, (Row(0, 1), Row(4, 2), Row(9, 3))), Page(1, (Row(0, 7),))
    clusters = Clusters(np.array([0, 1, 0], np.int32), np.array([[0, 1], [1, 0]], np.int32))
    history = history_of([gone, stays, born], clusters=clusters, weight=np.array([1.0, 2.0, 3.0]))
    rest = without_start(history, 5)
    assert rest.urls == [history.urls[1], history.urls[2]]
    assert rest.time.tolist() == [0, 4, 0]
    assert rest.clusters is not None
    assert rest.clusters.of.tolist() == [1, 0]
    assert rest.weight is not None
    assert rest.weight.tolist() == [2, 3]


def test_a_cut_history_is_replayed_from_its_start() -> None:
    history = history_of([Page(0, (Row(0, 1), Row(4, 2), Row(9, 3)))])
    setup = Setup(budget=1, cycle=1.0, cycles=9)
    assert replay(history, make_policy("round-robin"), setup).found.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert replay(without_start(history, 5), make_policy("round-robin"), setup).found.tolist() == [
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
    ]
