"""Patterns that people give: the same as Python's where both can, and never slow."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.noise.filters import Noise
from recrawl.discover.scope import Patterns
from recrawl.errors import UsageError
from recrawl.patterns import compiled
from recrawl.repository.alerts.rules import check_rule
from recrawl.settings import Alert

HOSTILE = "a" * 50_000 + "!"
SLOW = ("(a+)+$", "(a|aa)+$", "(a|a)*b", "([a-z]+)*1", "(.*)*q", "(?:a?){30}a{30}b")
PIECES = st.sampled_from(
    [
        "a", "ü", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "[a-c]", "[^a]", r"[\d,]", r"[\w-]", r"[\s.]", "[]x]",
        "[^]x]", r"[\[x]", "a{,2}", "x{2}", "(?:ab|ü)", "(a)", "b?", "c*?", "x+", r"\.", r"\u00fc", "^", " ",
    ]
)  # fmt: skip
TEXTS = st.text(st.sampled_from("abcxü1٣ _-.,[]\t\u00a0\u2003ß"), max_size=30)


@given(st.lists(PIECES, max_size=6).map("".join), TEXTS)
def test_they_find_what_python_finds(pattern: str, text: str) -> None:
    ours, theirs = compiled(pattern).search(text), re.compile(pattern).search(text)
    assert (ours and (ours.start(), ours.end())) == (theirs and theirs.span())


@given(st.lists(PIECES, min_size=1, max_size=4).map("".join), TEXTS)
def test_case_is_ignored_where_it_is_to_be(pattern: str, text: str) -> None:
    found = compiled(pattern, ignore_case=True).search(text.upper())
    if re.compile(pattern).search(text.upper()):
        assert found is not None


@pytest.mark.parametrize("pattern", SLOW)
def test_no_text_makes_them_slow(pattern: str) -> None:
    """With Python's engine each of these would not end while anybody waits."""
    assert compiled(pattern).search(HOSTILE) is None
    assert Noise((), (pattern,)).erase(HOSTILE) == HOSTILE
    assert not Patterns([f"re:{pattern}"]).match(f"https://a.example/{HOSTILE}")


@pytest.mark.parametrize(
    "pattern", ["(", "[[a]", "(?=a)", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)", "a{5000}", "x" * 5000, "\ud800"]
)
def test_what_cannot_be_done_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        compiled(pattern)
    for rule in (Alert("x", "feed", text=f"re:{pattern}"), Alert("x", "feed", path=f"re:{pattern}")):
        with pytest.raises(UsageError):
            check_rule(rule)


def test_looking_ahead_is_named_in_the_refusal() -> None:
    with pytest.raises(UsageError, match="lookahead"):
        compiled("(?=a)")


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert compiled("x").erase(text + "\ud800x").endswith(" ")


@given(st.text())
def test_any_pattern_is_taken_or_refused(pattern: str) -> None:
    with contextlib.suppress(UsageError):
        compiled(pattern).search("some text")
