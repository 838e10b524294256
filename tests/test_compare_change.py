"""How much, and does it matter: divergence, the chi-squared test, the diff."""

from __future__ import annotations

import difflib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from recrawl.compare.diff import DiffRow, Hunk, diff, unified
from recrawl.compare.divergence import divergence
from recrawl.compare.edits import matches
from recrawl.compare.significance import significant, significant_many
from recrawl.compare.terms import Vocabulary, counts
from recrawl.words import words

TEXTS = st.lists(st.sampled_from("abcde"), max_size=40).map(" ".join)
LONG = st.lists(st.sampled_from("aaabbcdef"), max_size=200).map(" ".join)
LINES = st.lists(st.sampled_from(["a", "b", "c", "one two", "one three", ""]), max_size=25)


def bag(text: str) -> Counter[str]:
    return Counter(words(text))


@given(TEXTS, TEXTS)
def test_divergence_laws(a, b):
    d = divergence(a, b)
    assert 0.0 <= d <= 1.0
    assert d == divergence(b, a)
    assert (d == 0.0) == (bag(a) == bag(b))
    if a or b:
        assert (d == 1.0) == (not bag(a) & bag(b))
        common = sum((bag(a) & bag(b)).values())
        assert d == pytest.approx(1 - 2 * common / (bag(a).total() + bag(b).total()))


def test_divergence_of_nothing():
    assert divergence("", "") == 0.0
    assert divergence("", "a") == 1.0


def test_words_of_several_scripts():
    assert words("A-b_c 1.5") == ["a", "b_c", "1", "5"]
    assert words("Ünï, ÇA") == ["ünï", "ça"]
    assert words("日本a語") == ["日", "本", "a", "語"]


@given(st.text(max_size=80) | st.text(st.characters(max_codepoint=0x2100), max_size=80))
def test_the_fast_road_agrees_with_the_other(text):
    assert words(text) == words(text + " 日")[:-1]


def test_divergence_of_texts_without_spaces():
    old = "これは日本語の文章です。文字コードの判定を試みる。" * 3
    assert 0.0 < divergence(old, old.replace("日本", "英国", 1)) < 0.1


def plainly(old: str, new: str) -> bool:
    """Spec C2 word by word, with scipy's own test."""
    if old == new:
        return False
    a, b = bag(old), bag(new)
    n, m = a.total(), b.total()
    own: list[tuple[int, ...]] = []
    rest = [0, 0]
    for word in a | b:
        share = (a[word] + b[word]) / (n + m)
        if min(n, m) * share >= 5:
            own.append((a[word], b[word]))
        else:
            rest = [rest[0] + a[word], rest[1] + b[word]]
    if any(rest):
        own.append(tuple(rest))
    if len(own) < 2:
        return True
    return bool(chi2_contingency(np.array(own).T, correction=False).pvalue < 0.05)


@given(LONG, LONG)
def test_significance_is_the_spec(old, new):
    assert significant(old, new) == plainly(old, new)


@given(st.lists(st.tuples(LONG, LONG), max_size=8))
def test_many_at_once_say_the_same(pairs):
    vocabulary = Vocabulary()
    old = counts([a for a, _ in pairs], vocabulary)
    new = counts([b for _, b in pairs], vocabulary)
    changed = np.array([a != b for a, b in pairs], np.bool_)
    got = significant_many(old, new, changed)
    assert got.tolist() == [significant(a, b) for a, b in pairs]


def test_batches_do_not_change_the_answer(monkeypatch):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcdefgh"), 60, p=rng.dirichlet(np.ones(8)))) for _ in range(80)]
    vocabulary = Vocabulary()
    old, new = counts(texts[:40], vocabulary), counts(texts[40:], vocabulary)
    changed = np.ones(40, np.bool_)
    whole = significant_many(old, new, changed)
    monkeypatch.setattr("recrawl.compare.significance._BATCH_COUNTS", 50)
    assert significant_many(old, new, changed).tolist() == whole.tolist()
    assert 0 < whole.sum() < 40


def test_short_texts_fall_back_to_exact_change():
    assert significant("one", "two")
    assert significant("", "word " * 100)
    assert not significant("one", "one")


def test_counts():
    vocabulary = Vocabulary()
    assert counts(["b a b"], vocabulary).toarray().tolist() == [[2, 1]]
    assert counts([], vocabulary).shape == (0, 2)
    assert counts(["c"], vocabulary).toarray().tolist() == [[0, 0, 1]]


def rebuilt(old: list[str], hunks: list[Hunk], kinds: tuple[str, ...]) -> list[str]:
    """Both sides of a diff with whole context, read back from its rows."""
    return [row.text for hunk in hunks for row in hunk.rows if row.kind in kinds] if hunks else old


@given(LINES, LINES)
def test_diff_leads_from_old_to_new(old, new):
    hunks = diff(old, new, context=1000)
    assert rebuilt(old, hunks, ("same", "out")) == old
    assert rebuilt(old, hunks, ("same", "in")) == new
    assert (not hunks) == (old == new)


@given(LINES, LINES, st.integers(0, 3))
def test_hunks_stand_where_they_say(old, new, context):
    for hunk in diff(old, new, context):
        was = [r.text for r in hunk.rows if r.kind != "in"]
        now = [r.text for r in hunk.rows if r.kind != "out"]
        assert old[hunk.old_start - 1 :][: len(was)] == was
        assert new[hunk.new_start - 1 :][: len(now)] == now
        assert any(r.kind != "same" for r in hunk.rows)
        ends = (
            [r.kind == "same" for r in hunk.rows[: context + 1]],
            [r.kind == "same" for r in hunk.rows[-context - 1 :]],
        )
        assert not all(ends[0])
        assert not all(ends[1])


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_matches_are_as_many_as_the_longest_common_subsequence_without_fixed_points(a, b):
    runs = matches(a * 2, b * 2)
    at = (0, 0)
    for x, y, n in runs:
        assert x >= at[0]
        assert y >= at[1]
        assert (a * 2)[x : x + n] == (b * 2)[y : y + n]
        at = (x + n, y + n)
    kept = sum(n for _, _, n in runs)
    table = [[0] * (len(b) * 2 + 1) for _ in range(len(a) * 2 + 1)]
    for i, p in enumerate(a * 2):
        for j, q in enumerate(b * 2):
            table[i + 1][j + 1] = table[i][j] + 1 if p == q else max(table[i][j + 1], table[i + 1][j])
    assert kept == table[-1][-1]


def test_marks_are_the_changed_words():
    (hunk,) = diff(["open Monday to Friday"], ["open Monday to Saturday"])
    assert hunk == Hunk(
        1,
        1,
        (DiffRow("out", "open Monday to Friday", ((15, 21),)), DiffRow("in", "open Monday to Saturday", ((15, 23),))),
    )
    assert unified([hunk]) == "@@ -1 +1 @@\n-open Monday to [-Friday-]\n+open Monday to {+Saturday+}"


def test_lines_with_little_in_common_are_not_marked():
    (hunk,) = diff(["entirely other words"], ["something else now"])
    assert {row.marks for row in hunk.rows} == {()}


def test_context_and_separate_hunks():
    old = [str(i) for i in range(30)]
    new = ["x" if i in (5, 20) else line for i, line in enumerate(old)]
    assert [(h.old_start, len(h.rows)) for h in diff(old, new)] == [(4, 6), (19, 6)]
    assert [(h.old_start, len(h.rows)) for h in diff(old, new, context=0)] == [(6, 2), (21, 2)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["a"] * 20_000, ["b", "a"] * 10_000),
        (["a", "b"] * 10_000, ["b", "a", "c"] * 7_000),
        ([str(i) for i in range(20_000)], [str(i) for i in range(20_000, 0, -1)]),
        (["x " * 50_000], ["y x " * 25_000]),
        (["a"] * 3_000_000, ["b"] * 3_000_000),
    ],
)
def test_hostile_input_is_bounded(old, new):
    assert diff(old, new)


def test_diff_reads_like_difflib_on_simple_edits():
    old, new = ["a", "b", "c", "d"], ["a", "c", "d", "e"]
    signs = [f"{' ' if r.kind == 'same' else '-' if r.kind == 'out' else '+'}{r.text}" for r in diff(old, new)[0].rows]
    assert signs == list(difflib.unified_diff(old, new, lineterm="", n=2))[3:]
