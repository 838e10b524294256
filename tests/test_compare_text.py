"""Visible text, lines, titles, digests and the filter value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare import digest
from recrawl.compare.noise.filters import PATTERN_CHARACTERS
from recrawl.compare.noise.proposals import NO_NOISE, Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.text import plain, title, visible
from recrawl.compare.tree.documents import parse_html
from recrawl.compare.tree.renderers import text_lines
from recrawl.compare.unframed import page_texts
from recrawl.errors import UsageError

PAGE = """<!doctype html><head><title> A
 title </title><style>p {}</style></head><body><!-- no --><h1>Head</h1><p>one <b>two</b>, three</p>
<script>bad()</script><noscript>bad</noscript><template><p>bad</p></template><ul><li>a</li><li>b</li></ul></body>"""


def lines(page: str, noise: Noise = NO_NOISE) -> list[str]:
    return [line.text for line in text_lines(parse_html(page, noise=Noise(noise.selectors)).tree, noise)]


def test_visible_is_text_without_markup():
    assert visible(parse(PAGE)) == "Head one two , three a b"


def test_the_own_text_is_what_no_element_of_the_frame_holds():
    menu = "<header role=banner>A <nav><a>b</a> <div role=search>c</div></nav></header>"
    page = parse(f"{menu}<p>one<p>two<aside>d<footer>e</footer></aside>three<footer></footer><p>A b c d")
    before = page.html
    assert page_texts(page) == ("A b c one two d e three A b c d", "one two three A b c d")
    assert page.html == before
    assert page_texts(parse("<nav>a</nav>")) == ("a", "")
    assert page_texts(parse("<frameset><frame src=a></frameset>")) == ("", "")


@given(
    st.lists(
        st.sampled_from(["<nav>", "</nav>", "<p role=search>", "</p>", "<b>", "a b", "\0", "\n", "<aside>", "é\xa0"])
    )
)
def test_the_visible_text_is_the_same_beside_the_own_text(parts: list[str]):
    html = "".join(parts)
    assert page_texts(parse(html)).visible == visible(parse(html))


def test_lines_follow_blocks_and_do_not_part_words():
    assert lines(PAGE) == ["Head", "one two, three", "a", "b"]
    assert lines("un<i>believ</i>able<br>x<div>y</div>z") == ["unbelievable", "x", "y", "z"]


def test_lines_keep_the_lines_of_preformatted_text():
    assert lines("<p>a<pre>x = <b>1</b>\n  y\n</pre>c") == ["a", "x = 1", "  y", "c"]
    assert lines("<pre>a\nb<pre>c\nd</pre></pre>e") == ["a", "b", "c", "d", "e"]


def test_markup_and_white_space_alone_are_no_change():
    old = "<div class=a>One\n\n two</div><p>three</p>"
    new = "<section>  One two\t</section>\n<div><div>three</div></div><script>1</script>"
    assert visible(parse(old)) == visible(parse(new))


@pytest.mark.parametrize(
    ("html", "want"),
    [
        ("", ""),
        ("just text", "just text"),
        ("<frameset><frame src=x><noframes>old</noframes></frameset>", "old"),
        ("a&nbsp;&nbsp;b", "a b"),
        ("<p>x<textarea>y</textarea>", "x y"),
    ],
)
def test_odd_documents(html, want):
    assert visible(parse(html)) == want


def test_title():
    assert title(parse(PAGE)) == "A title"
    assert title(parse("<svg><title>drawing</title></svg>")) == ""
    assert title(parse("<p>x")) == ""
    assert len(title(parse(f"<title>{'word ' * 5000}</title>"))) <= 300


def test_noise_selectors_and_patterns():
    html = "<p id=clock>12:30</p><div class=ad>buy <div class=ad>more</div></div><p>visit 7 of 2024</p>"
    noise = Noise(("#clock", "div.ad"), (r"\d+",))
    assert visible(parse(html), noise) == "visit of"
    assert lines(html, noise) == ["visit of"]
    assert visible(parse(html), NO_NOISE) == "12:30 buy more visit 7 of 2024"


def test_noise_that_selects_the_page_leaves_nothing():
    assert visible(parse("<p>a"), Noise(("body",))) == ""
    assert visible(parse("<p>a"), Noise(("html",))) == ""


def test_unchecked_bad_filters_filter_nothing():
    assert visible(parse("<p>a(b"), Noise(("p[",), ("(",))) == "a(b"


def test_patterns_see_only_the_start_of_a_long_text():
    text = "1 " + "x" * PATTERN_CHARACTERS + " 1"
    assert plain(text, Noise(patterns=("1",))) == "x" * PATTERN_CHARACTERS + " 1"


@pytest.mark.parametrize(
    ("noise", "word"),
    [
        (Noise(("div[",)), "selector"),
        (Noise(("",)), "selector"),
        (Noise((":nope",)), "selector"),
        (Noise((), ("(",)), "pattern"),
        (Noise((), ("a{99999999999999999999}",)), "pattern"),
        (Noise((), ("(?<!a)b",)), "pattern"),
    ],
)
def test_check_names_the_fault(noise, word):
    with pytest.raises(UsageError, match=f"noise {word}"):
        noise.check()


def test_check_passes_what_is_right():
    Noise(("#a", "div.b > p:first-child", "a[href^='x']"), (r"\d+", "(?i)foo")).check()


def test_fingerprint_is_stable_and_tells_filters_apart():
    assert NO_NOISE.fingerprint.hex() == Noise().fingerprint.hex() == "e4a6a0577479b2b4"
    prints = [
        n.fingerprint
        for n in (
            NO_NOISE,
            Noise(("a",)),
            Noise((), ("a",)),
            Noise(("a", "b")),
            Noise(("ab",)),
            Noise(("b", "a")),
        )
    ]
    assert len(set(prints)) == len(prints)
    assert {len(p) for p in prints} == {8}


def test_plain_text():
    assert plain('{"a":\n  1}') == '{"a": 1}'


def test_digests():
    assert len(digest.of_text("a\ud800")) == 16
    assert len(digest.of_payload(b"a")) == 20
    assert digest.of_text("a") != digest.of_text("b")


@given(st.text(max_size=200))
def test_lines_hold_the_same_letters_as_visible(html):
    assert "".join("".join(lines(html)).split()) == visible(parse(html)).replace(" ", "")


@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<b>",
                "</b>",
                "<pre>",
                "</pre>",
                "a",
                " ",
                "\n",
                "<br>",
                "<i></i>",
                "<td>",
                "<table>",
                "<a>",
            ]
        ),
        max_size=60,
    )
)
def test_lines_and_visible_agree_on_tag_soup(parts):
    html = "".join(parts)
    assert "".join("".join(lines(html)).split()) == visible(parse(html)).replace(" ", "")


@given(st.text(max_size=200))
def test_plain_is_folded_once_and_for_all(text):
    assert plain(plain(text)) == plain(text)
