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
    monkeypatch.setattr(known_module, "_MIN_MERGE", 3)


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
    for i in range(20_000):
        known.add(i * 7919, i)
    assert len(known._recent) <= max(known_module._MIN_MERGE, len(known._keys) // 8)
    assert known._keys.nbytes + known._pages.nbytes <= 12 * len(known)
    assert known.find(array([7919 * 12_345])).tolist() == [12_345]


def test_the_dict_of_new_pages_stays_small(monkeypatch):
    monkeypatch.setattr(known_module, "_MAX_MERGE", 10)
    known = KnownUrls(array(range(1000)), array(range(1000)))
    for key in range(1000, 1100):
        known.add(key, key)
        assert len(known._recent) <= 10
    assert known.find(array([5, 1050])).tolist() == [5, 1050]


def test_sorted_keys_are_not_copied():
    keys = array(range(10))
    assert np.shares_memory(KnownUrls(keys, np.arange(10, dtype=np.int32))._keys, keys)
