"""Proposals of noise filters from pages that change at every visit (spec C8)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.compare.content.judge import NoEvidence
from recrawl.compare.noise.news import NewsJudge
from recrawl.compare.noise.proposals import Noise, Proposal, propose, readable
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.text import visible

STORY = "<p>" + "The story of the day goes on and on without an end. " * 12 + "</p>"


def page(extra: str, story: str = STORY) -> str:
    return f"<html><body><div id=top>Site</div><div id=content>{story}</div>{extra}</body></html>"


def all_proposed(versions: list[str]) -> list[Proposal]:
    """What is proposed if nothing is news."""
    pages = readable(versions)
    return propose(pages, [False] * len(pages), lambda _: True)


def proposed(versions: list[str]) -> list[Proposal]:
    """What is proposed for a page that is watched alone."""
    pages = readable(versions)
    judge = NewsJudge(pages, NoEvidence())
    found = propose(pages, judge.news, lambda noise: not judge.hidden(noise))
    assert not any(judge.hidden(noise_of([proposal])) for proposal in found)
    assert not judge.hidden(noise_of(found))
    return found


def noise_of(proposals: list[Proposal]) -> Noise:
    return Noise(
        tuple(p.value for p in proposals if p.kind == "selector"),
        tuple(p.value for p in proposals if p.kind == "pattern"),
    )


def applied(versions: list[str], proposals: list[Proposal]) -> list[str]:
    noise = noise_of(proposals)
    noise.check()
    return [visible(parse(html), noise) for html in versions]


NOISES = {
    "date": [f"<p>Printed on 2024-03-0{i}</p>" for i in range(1, 7)],
    "long date": [f"<p>Today is Monday, {i} March 2024</p>" for i in range(1, 7)],
    "clock": [f"<p>It is 1{i}:0{i}:33</p>" for i in range(1, 7)],
    "counter": [f"<p>{i * 731} visitors</p>" for i in range(1, 7)],
    "ago": [f"<p>{i} minutes ago</p>" for i in range(1, 7)],
    "session": [f"<p>sid=x{i}f{i}q</p>" for i in range(1, 7)],
    "hex": [f"<p>build {'%032x' % (i * 10**30 + 7)}</p>" for i in range(1, 7)],
    "advertisement by id": [
        f"<div id=ad>{w}</div>" for w in ("buy shoes", "eat cake", "fly south", "see Rome", "go now")
    ],
    "advertisement by class": [
        f"<div class='box promo'>{w}</div>" for w in ("buy shoes", "eat cake", "fly south", "see Rome")
    ],
    "date and advertisement": [
        f"<p>2024-03-0{i}</p><div id=ad>{w}</div>"
        for i, w in enumerate(("buy shoes", "eat cake", "fly south", "see Rome"), 1)
    ],
    "bare numbers": [f"<p>room {i}</p>" for i in range(1, 7)],
}


@pytest.mark.parametrize("name", NOISES)
def test_proposals_make_versions_equal(name):
    versions = [page(extra) for extra in NOISES[name]]
    proposals = all_proposed(versions)
    assert proposals
    assert len(set(applied(versions, proposals))) == 1
    for p in proposals:
        assert p.of == len(versions) - 1
        assert 0 < p.hides <= p.of
        assert p.example


def test_the_example_shows_what_goes():
    (proposal,) = all_proposed([page(extra) for extra in NOISES["advertisement by id"]])
    assert (proposal.kind, proposal.value, proposal.hides, proposal.of) == ("selector", "#ad", 4, 4)
    assert proposal.example == "go now"


def test_a_particular_pattern_comes_before_any_number():
    (proposal,) = all_proposed([page(extra) for extra in NOISES["date"]])
    assert proposal.value != r"\d+"


def test_news_is_not_noise():
    """Most of the text changes: nothing may hide it."""
    versions = [
        page(
            "",
            f"<p>{' '.join(f'w{chr(97 + i)}{chr(97 + j // 10)}{chr(97 + j % 10)}' for j in range(80))}</p>",
        )
        for i in range(5)
    ]
    assert all_proposed(versions) == []


def test_the_whole_page_is_never_proposed():
    versions = [f"<body id=b><main id=m>{STORY}<p>{w}</p></main>" for w in ("one", "two", "three", "four")]
    assert [p for p in all_proposed(versions) if p.value in ("#b", "#m", "body", "main")] == []


def test_what_hides_one_change_of_many_is_not_proposed():
    versions = [page(f"<div id=ad>{'x' if i < 9 else 'y'}</div><div id=n>word{chr(97 + i)}</div>") for i in range(10)]
    assert [p.value for p in all_proposed(versions)] == ["#n"]


def test_unstable_names_are_not_proposed():
    versions = [
        page(f"<div id='ad-{i}83921'>offer {w}</div>") for i, w in enumerate(("shoes", "cake", "south", "Rome"))
    ]
    assert all("8392" not in p.value for p in all_proposed(versions))


@pytest.mark.parametrize("versions", [[], [page("")], [page(""), page("")], ["", "<p>"], ["<div>" * 100_000, page("")]])
def test_nothing_to_all_proposed(versions):
    assert all_proposed(versions) == []


# -- news -----------------------------------------------------------------------------------------------------

NEWS = {
    "release number": [f"<p>Latest release: 4.{i}.0</p>" for i in range(1, 9)],
    "release by id": [f"<p id=release>Latest release: 4.{i}.0</p>" for i in range(1, 9)],
    "bare release": [f"<h2>{i}.{i + 1}</h2>" for i in range(1, 9)],
    "date of an event": [f"<p>The next meeting is on 2024-03-0{i}, in the town hall</p>" for i in range(1, 9)],
    "price": [f"<p class=price>{i * 7},99 Euro</p>" for i in range(1, 9)],
    "headline": [f"<h3>{w} wins the election of the year</h3>" for w in ("Ann", "Bob", "Carl", "Dora", "Emil")],
}


@pytest.mark.parametrize("name", NEWS)
def test_no_filter_hides_news(name):
    assert proposed([page(extra) for extra in NEWS[name]]) == []


@pytest.mark.parametrize("name", ["counter", "ago", "session"])
def test_what_is_about_the_visit_is_no_news(name):
    versions = [page(extra) for extra in NOISES[name]]
    found = proposed(versions)
    assert found
    assert len(set(applied(versions, found))) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(NEWS)),
    st.sampled_from(["counter", "ago", "session", "clock", "date", "bare numbers", "advertisement by id"]),
    st.lists(st.booleans(), min_size=5, max_size=9),
)
def test_a_filter_for_noise_leaves_the_news_beside_it(name, noise, fresh):
    """The noise changes at each visit, the news at some."""
    news, pages, happened = 0, [], []
    for place, new in enumerate(fresh):
        before, news = news, min(news + (new and place > 0), len(NEWS[name]) - 1)
        happened.append(news != before)
        pages.append(page(NEWS[name][news] + NOISES[noise][place % len(NOISES[noise])]))
    texts = applied(pages, proposed(pages))
    assert all(old != new for (old, new), change in zip(itertools.pairwise(texts), happened[1:], strict=True) if change)
