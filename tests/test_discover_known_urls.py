"""Known addresses: whatever is added, in whatever order, it answers as a plain dict would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recrawl.discover import known_urls as known_module
from recrawl.discover.known_urls import KnownUrls

# Few enough to meet again, with the ends of the range among them.
KEYS = st.one_of(st.integers(-8, 8), st.sampled_from([-(2**63), 2**63 - 1]), st.integers(-(2**63), 2**63 - 1))
PAGES = st.integers(0, 2**31 - 1)


def array(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


@pytest.fixture(autouse=True)
def merge_early(monkeypatch):
    monkeypatch.setattr(known_module, "_MAX_RECENT", 3)
    monkeypatch.setattr(known_module, "_MAX_YOUNG", 9)


class AsDict(RuleBasedStateMachine):
    """The same calls to a dict and to Known."""

    @initialize(pairs=st.lists(st.tuples(KEYS, PAGES), max_size=30))
    def start(self, pairs):
        self.plain = dict(pairs)
        self.known = KnownUrls(array(key for key, _ in pairs), array(page for _, page in pairs))

    @rule(pairs=st.lists(st.tuples(KEYS, PAGES), max_size=10))
    def add(self, pairs):
        for key, page in pairs:
            if key not in self.plain:
                self.plain[key] = page
                self.known.add(key, page)

    @rule(keys=st.lists(KEYS, max_size=10))
    def find(self, keys):
        keys = [*keys, *self.plain]
        expected = [self.plain.get(key, -1) for key in keys]
        assert self.known.find(array(keys)).tolist() == expected
        assert [self.known.get(key) for key in keys] == expected

    @invariant()
    def same_size(self):
        if hasattr(self, "known"):
            assert len(self.known) == len(self.plain)


TestAsDict = AsDict.TestCase


@given(st.lists(KEYS, min_size=1, max_size=50))
def test_the_last_of_equal_keys_counts(keys):
    known = KnownUrls(array(keys), array(range(len(keys))))
    assert known.find(array(keys)).tolist() == [{key: i for i, key in enumerate(keys)}[key] for key in keys]


def test_nothing_is_known_at_first():
    known = KnownUrls(array([]), array([]))
    assert len(known) == 0
    assert known.get(5) == -1
    assert known.find(array([1, 2])).tolist() == [-1, -1]
    assert known.find(array([])).shape == (0,)


def test_the_arrays_given_are_not_changed():
    keys, pages = array([3, 1, 2]), array([0, 1, 2])
    known = KnownUrls(keys, pages)
    known.add(4, 9)
    assert keys.tolist() == [3, 1, 2]
    assert pages.tolist() == [0, 1, 2]
    assert known.get(4) == 9


def test_keys_and_pages_go_together():
    with pytest.raises(ValueError, match="2 keys for 1 pages"):
        KnownUrls(array([1, 2]), array([1]))


def test_a_page_takes_twelve_bytes_once_merged():
    known = KnownUrls(array([]), array([]))
    for i in range(2_000):
        known.add(i * 7919, i)
    keys, pages = known.columns()
    assert len(known) == 2_000
    assert len(keys) >= 2_000 - 9 - 3
    assert keys.nbytes + pages.nbytes == 12 * len(keys)
    assert known.find(array([7919 * 1_234])).tolist() == [1_234]


def test_many_keys_are_added_at_once():
    known = KnownUrls(array([]), array([]))
    for first in (0, 1, 2):
        known.add_all(array(range(first, 30, 3)), np.arange(first, 30, 3, dtype=np.int32))
    known.add_all(array([]), np.zeros(0, np.int32))
    assert known.find(array(range(31))).tolist() == [*range(30), -1]


def test_sorted_keys_are_not_copied():
    keys = array(range(10))
    assert np.shares_memory(KnownUrls(keys, np.arange(10, dtype=np.int32)).columns()[0], keys)
