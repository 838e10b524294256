"""Content and frame: which changes of a page a reader would call a change."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.content.census import Census, CensusEvidence
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import ContentChange, LineEvidence, NoEvidence, content_words, judge
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.content.own_history import OwnHistory
from recrawl.compare.parsing.document import parse

_MENU = "<nav><ul><li>Home<li>News<li>About</ul></nav>"
_FOOTER = "<footer>Copyright 2024 Example</footer>"


def _page(body: str, menu: str = _MENU, footer: str = _FOOTER) -> list[Line]:
    return lines(parse(f"<html><body>{menu}<main>{body}</main>{footer}"))


def _verdict(old: list[Line], new: list[Line], known: LineEvidence | None = None) -> ContentChange:
    return judge(changed_lines(old, new), content_words(old, new), known or NoEvidence())


def _site(*pages: list[Line]) -> Census:
    census = Census()
    for page in pages:
        census.add({line.key for line in page})
    return census


def test_a_new_paragraph_is_content():
    change = _verdict(
        _page("<p>Tea is served at four."), _page("<p>Tea is served at four.<p>Scones are back in stock.")
    )
    assert change.content
    assert 0 < change.share < 1
    assert change.significance > 0.5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(("<p>Tea", _MENU), ("<p>Tea", _MENU.replace("<li>News", "<li>News<li>Shop")), id="menu"),
        pytest.param(("<p>Updated: 3 May 2024",), ("<p>Updated: 4 May 2024",), id="date stamp"),
        pytest.param(("<p>Last modified 2024-05-03 10:00",), ("<p>Last modified 2024-05-04 11:30",), id="time stamp"),
        pytest.param(("<p>one<p>two",), ("<p>two<p>one",), id="order of lines"),
        pytest.param(("<p>red, green and blue",), ("<p>blue, red and green",), id="order of words"),
        pytest.param(('<p>"Tea" - now',), ("<p>&ldquo;Tea&rdquo; &ndash; NOW",), id="punctuation"),
        pytest.param(("<p>Tea {% include a.html %}",), ("<p>Tea {% include b.html %}",), id="template directive"),
        pytest.param(("<p>Tea $Id: a 1.2$",), ("<p>Tea $Id: a 1.3$",), id="version control keyword"),
    ],
)
def test_frame_changes_are_not_content(old: tuple[str, ...], new: tuple[str, ...]):
    assert not _verdict(_page(*old), _page(*new)).content


def test_a_line_on_many_pages_of_the_site_is_frame_wherever_it_stands():
    banner = "<div><p>Our summer sale begins</div>"
    others = [_page(f"{banner}<p>Article {n} about topic {n}") for n in range(20)]
    old, new = _page("<p>Own text"), _page(f"{banner}<p>Own text")
    assert _verdict(old, new).content
    assert not _verdict(old, new, CensusEvidence(_site(*others))).content


def test_a_removed_line_is_frame_although_the_other_pages_have_lost_it_before():
    menu = "<p>Old menu entry"
    census = _site(*(_page(f"{menu}<p>{n}") for n in range(20)))
    for n in range(20):
        census.replace((line.key for line in _page(f"{menu}<p>{n}")), (line.key for line in _page(f"<p>{n}")))
    assert not _verdict(_page(f"{menu}<p>Own"), _page("<p>Own"), CensusEvidence(census)).content


def test_the_line_of_a_listing_that_one_other_page_has_as_its_title_is_content():
    others = [_page(f"<h1>Article number {n}</h1><p>Text {n}") for n in range(30)]
    old = _page("<ul><li>Article number 1</ul>")
    new = _page("<ul><li>Article number 1<li>Article number 2</ul>")
    assert _verdict(old, new, CensusEvidence(_site(*others))).content


def test_a_page_that_is_all_frame_by_its_class_names_can_still_change():
    old, new = (lines(parse(f"<body><div class=header><p>{text}</div>")) for text in ("Sold soon", "Sold out today"))
    assert _verdict(old, new).content


def test_changed_lines_are_small_and_travel_between_processes():
    changes = changed_lines(_page("<p>Tea"), _page("<p>Coffee and cake"))
    assert pickle.loads(pickle.dumps(changes)) == changes
    assert len(pickle.dumps(changes)) < 1000


def test_a_page_that_was_counted_with_other_lines_is_judged_all_the_same():
    census = _site(_page("<p>As it was when it was counted"), *(_page(f"<p>Page {n}") for n in range(5)))
    known = CensusEvidence(census, counts_old=True, counts_new=True)
    assert _verdict(_page("<p>Before", menu=""), _page("<p>After the news", menu=""), known).content


_TEXTS = st.lists(st.sampled_from(["alpha one", "beta", "gamma 3", "delta", "updated 4 may 2024"]), max_size=8)


@given(_TEXTS)
def test_a_page_does_not_differ_from_itself_in_another_order(texts: list[str]):
    page = [Line.of(text) for text in texts]
    assert changed_lines(page, page[::-1]) == []


@given(_TEXTS, _TEXTS)
def test_the_way_back_changes_as_many_lines(a: list[str], b: list[str]):
    old, new = ([Line.of(text) for text in texts] for texts in (a, b))
    there, back = changed_lines(old, new), changed_lines(new, old)
    assert sorted((c.key, c.added) for c in there) == sorted((c.key, not c.added) for c in back)
    verdict = judge(there, content_words(old, new), NoEvidence())
    assert 0 <= verdict.share <= 1
    assert 0 <= verdict.significance <= 1


@given(st.lists(st.lists(st.integers(0, 9), unique=True), max_size=12))
def test_a_census_counts_what_its_pages_hold(pages: list[list[int]]):
    census = Census()
    for page in pages:
        census.add(page)
    for key in range(10):
        assert census.count(key) == sum(key in page for page in pages)
    for page in pages:
        census.remove(page)
    assert census.pages == 0
    assert not any(census.count(key) for key in range(10))
    assert all(census.peak(key) >= 2 or sum(key in page for page in pages) < 2 for key in range(10))


@given(st.integers(0, 40), st.integers(0, 40))
def test_more_pages_with_a_line_never_make_it_content(few: int, more: int):
    few, more = sorted((few, more))
    old, new = _page("<p>Own"), _page("<p>Own<p>A line that others have")

    def score(count: int) -> float:
        pages = [_page(f"<p>Page {n}" + ("<p>A line that others have" if n < count else "")) for n in range(40)]
        return max(_verdict(old, new, CensusEvidence(_site(*pages))).scores)

    assert score(more) <= score(few)


# -- the history of one page ----------------------------------------------------------------------------------


def _visit(history: OwnHistory, old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether a change counts as content, by the page's own history; the history learns from it."""
    changes = changed_lines(list(map(Line.of, old)), list(map(Line.of, new)))
    verdict = judge(history.explain(changes), 100, NoEvidence())
    history.note(changes)
    stored = history.pack()
    assert len(stored or b"") <= 120
    assert OwnHistory.unpack(stored) == history
    return verdict.content


_QUOTES = ("Still waters run deep", "Haste makes waste", "Practice makes perfect", "Time flies like an arrow")
_TEXTS = st.lists(st.text("abcdefgh ", min_size=3, max_size=12).filter(str.strip), min_size=1, max_size=6)


@given(st.lists(st.sampled_from(_QUOTES), min_size=40, max_size=60), st.sets(st.integers(0, 60)))
def test_a_rotating_quote_becomes_frame_and_the_article_stays_content(shown: list[str], edits: set[int]):
    quotes = [*_QUOTES, *_QUOTES, *_QUOTES, *shown]
    history, article = OwnHistory(), "The article"
    before = ["Title", quotes[0], article, "End"]
    for number, quote in enumerate(quotes[1:]):
        edited = number >= 12 and number - 12 in edits
        article += " goes on" if edited else ""
        after = ["Title", quote, article, "End"]
        content = _visit(history, before, after)
        if edited:
            assert content, "a text that the page never had"
        elif number >= 12:
            assert not content, "every quote was there before"
        before = after


@given(st.lists(_TEXTS, min_size=2, max_size=20))
def test_a_line_that_the_page_never_had_is_content_whatever_the_history(versions: list[list[str]]):
    history, seen = OwnHistory(), {Line.of(line).key for line in versions[0]}
    for old, new in pairwise(versions):
        unseen = {Line.of(line).key for line in new} - seen
        changes = changed_lines(list(map(Line.of, old)), list(map(Line.of, new)))
        explained = history.explain(changes)
        for change, before in zip(explained, changes, strict=True):
            if change.added and change.key in unseen and not change.slot:
                assert change == before
        history.note(changes)
        seen |= {Line.of(line).key for line in new}


def test_the_front_page_of_a_newspaper_is_never_silenced():
    history = OwnHistory()
    headlines = ["The mayor opens bridge " + "xy"[n % 2] * (n + 1) for n in range(60)]
    for n in range(50):
        assert _visit(history, headlines[n : n + 8], headlines[n + 1 : n + 9])


def test_a_text_that_is_taken_back_once_is_content():
    history = OwnHistory()
    versions = ["We are open", "We are closed", "We are open", "We are closed"]
    assert [_visit(history, ["Home", old], ["Home", new]) for old, new in pairwise(versions)] == [True, True, True]
