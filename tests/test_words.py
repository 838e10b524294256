"""Words in every language: what is one, how many there are, and what a diff marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.diff import diff, unified
from recrawl.compare.divergence import distance, divergence
from recrawl.words import count_words, cut_words, has_spaceless, mostly_spaceless, tokens, words

pytestmark = pytest.mark.quick

_ANY = st.text(st.sampled_from("ab 9.,。是天ひカกี่ခ္မក្ហि्नع\u064e\u00ad\u200d\n"), max_size=60)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),  # vowel signs and the virama belong to their word
        ("ที่นี่", ["ที่", "นี่"]),  # Thai: a letter with its marks is one
        ("كِتَاب جديد", ["كِتَاب", "جديد"]),
        ("می\u200cخواهم", ["میخواهم"]),  # joined without a space
        ("Uni\u00adversität", ["universität"]),  # a soft hyphen
        ("ქართული ენა", ["ქართული", "ენა"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("東京タワー、2026年", ["東", "京", "タ", "ワ", "ー", "2026", "年"]),
        ("พ.ศ. ๒๕๖๙", ["พ", "ศ", "๒๕๖๙"]),
        ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្មែ", "រ"]),  # a letter beneath another one
        ("cafe\u0301", ["cafe\u0301"]),
        ("🇩🇪 flag ✅", ["flag"]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("Every page is kept up to date", 7, 7),
        ("今天北京的天气很好，明天会下雨。", 7, 10),  # 今天 北京 的 天气 很 好 明天 会 下雨
        ("新しい図書館は来月開館します", 6, 9),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", 5, 11),
        ("सभी मनुष्यों को गौरव", 4, 4),
    ],
)
def test_a_reader_counts_words(text: str, low: int, high: int) -> None:
    assert low <= count_words(text) <= high


def test_a_digit_that_changes_is_marked_alone() -> None:
    assert unified(diff(["今天气温100度"], ["今天气温105度"])) == (
        "@@ -1 +1 @@\n-今天气温[-100-]度\n+今天气温{+105+}度"
    )
    assert unified(diff(["ราคา ๑๐๐ บาทเท่านั้น"], ["ราคา ๑๐๕ บาทเท่านั้น"])) == (
        "@@ -1 +1 @@\n-ราคา [-๑๐๐-] บาทเท่านั้น\n+ราคา {+๑๐๕+} บาทเท่านั้น"
    )


def test_marks_of_a_diff_do_not_cut_words() -> None:
    assert unified(diff(["यह हिन्दी है"], ["यह हिन्दू है"])) == "@@ -1 +1 @@\n-यह [-हिन्दी-] है\n+यह {+हिन्दू+} है"


def test_chinese_between_spaces_is_compared_by_letters() -> None:
    old = "今天北京的天气很好 Python 3 明天会下雨 新闻 网站 首页"
    new = "今天北京的天气很差 Python 3 明天会下雨 新闻 网站 首页"
    assert 0 < divergence(old, new) < 0.1  # by spaces it was 0.14: a whole sentence
    assert distance(old, new)[0] == 2  # one letter out, one in: about one word


@given(_ANY)
def test_no_letter_is_lost(text: str) -> None:
    assert "".join(tokens(text)) == text
    for most in (1, 3, 10):
        assert "".join("".join(cut_words(text, most)).split()) == "".join(text.split())


@given(_ANY, st.integers(3, 20))
def test_pieces_have_no_more_words_than_asked(text: str, most: int) -> None:
    assert all(count_words(piece) <= most for piece in cut_words(text, most))


@given(_ANY, _ANY)
def test_divergence_is_a_share(old: str, new: str) -> None:
    old, new = " ".join(old.split()), " ".join(new.split())
    assert divergence(old, new) == divergence(new, old)
    assert 0 <= divergence(old, new) <= 1


def test_scripts() -> None:
    assert not has_spaceless("Ελληνικά, русский, עברית, हिन्दी, 한국어, ქართული")
    assert mostly_spaceless("本文")
    assert not mostly_spaceless("")
