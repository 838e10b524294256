"""The guard in front of the parser: bombs are refused, real and merely untidy pages are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.nesting import effort
from recrawl.errors import Unreadable

DATA = Path(__file__).parents[1].parent / "shared" / "data"
FONTS = "".join(f"<font size={i}><p>" for i in range(20_000))
ATTRIBUTES = " ".join(f"a{i}=1" for i in range(50_000))

SOUP = re.findall(
    "[^;]+",
    "<div>;</div>;<p>;</p>;<b>;</b>;<i>;</i>;<a>;</a>;<span>;</span>;<table>;</table>;<td>;</td>;<li>;<ul>;</ul>"
    ";x;<object>;</object>;<font size=1>;</font>;<svg>;</svg>;<option>;<!--;-->;<br>;<h1>;</h1>;<button>",
)

BOMBS = {
    "nested": "<div>" * 100_000,
    "nested and closed": "<div>" * 50_000 + "</div>" * 50_000,
    "lists": "<ul><li>" * 50_000,
    "formatting": "<b><i><a>" * 33_000,
    "distinct formatting": FONTS,
    "tables": "<table><td>" * 50_000,
    "foreign": "<svg>" + "<g>" * 100_000,
    "foreign raw text": "<svg><style>" + "<g>" * 100_000,
    "end tags behind a wall": "<div><object></div></object>" * 30_000,
    "end tags in attributes": "<div a='</div>'>" * 50_000,
    "end tags in comments": "<div><!--</div>-->" * 50_000,
    "end tags in raw text": "<div><textarea></div></textarea>" * 30_000,
    "end tags that are ignored": "<span><div></span></div>" * 30_000,
    "adoption": "<b><div></b>" * 40_000,
    "links": "<a><div>" * 40_000,
    "options": "<option><b>" * 40_000,
    "attributes": f"<p {ATTRIBUTES}>x",
    "root attributes": "".join(f"<body a{i}=1>" for i in range(50_000)),
    "upper case": "<DIV>" * 100_000,
}

UNTIDY = {
    "empty": "",
    "text only": "word " * 50_000,
    "paragraphs never closed": "<p>a" * 30_000,
    "items never closed": "<ul>" + "<li>a" * 30_000,
    "cells never closed": "<table>" + "<tr><td>a<td>b" * 20_000,
    "fonts never closed in cells": "<table>" + "<tr><td><font color=red>a" * 20_000,
    "definitions": "<dl>" + "<dt>a<dd>b" * 15_000,
    "drawing": "<svg>" + "<path d='M0 0'/>" * 20_000 + "</svg>",
    "images": "<img src=a>" * 30_000,
    "line breaks": "a<br>" * 30_000,
    "script with tags": "<script>" + "document.write('<div>');" * 30_000 + "</script>",
    "long text without tags": "<p>" + "x" * 200_000,
    "inline image": "<img src='data:image/png;base64," + "A" * 300_000 + "'>",
    "many inline images": ("<img src='data:image/png;base64," + "A" * 9_000 + "'>") * 50,
    "options": "<select>" + "<option>a" * 30_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name):
    with pytest.raises(Unreadable, match=r"at least [\d,]+ levels deep"):
        parse(BOMBS[name])


@pytest.mark.parametrize("name", UNTIDY)
def test_untidy_pages_are_read(name):
    assert parse(UNTIDY[name]).root is not None


def test_the_sentence_names_the_depth():
    with pytest.raises(Unreadable, match=r"100,000 tags, at least 1\d,\d{3} levels deep"):
        parse(BOMBS["nested"])


@pytest.mark.parametrize("html", ["<a " * 50_000, '<a x="' * 50_000, "<!--" * 50_000, "<" * 200_000, "</" * 100_000])
def test_broken_tags_end(html):
    steps, depth = effort(html, 10**7)
    assert depth <= 1
    assert steps >= 0


def test_a_chosen_option_is_not_copied():
    html = "<select><button><selectedcontent></selectedcontent></button><option selected>one</option></select>"
    (copy,) = parse(html).css("selectedcontent")
    assert copy.text() == ""


@given(
    st.lists(
        st.sampled_from(["div", "p", "span", "b", "li", "ul", "table", "td", "a", "object", "h1"]),
        max_size=60,
    )
)
def test_depth_of_well_formed_nesting_is_not_underestimated(tags):
    """What the walk says is at least what the tree has, for plain nesting of elements that may nest."""
    nesting = [tag for tag in tags if tag in ("div", "span", "ul", "object")]
    html = "".join(f"<{tag}>" for tag in nesting) + "x" + "".join(f"</{tag}>" for tag in reversed(nesting))
    assert effort(html, 10**9)[1] == len(nesting)


@given(
    st.lists(
        st.sampled_from(SOUP),
        max_size=80,
    )
)
def test_any_tag_soup_is_walked(parts):
    html = "".join(parts)
    steps, depth = effort(html, 10**9)
    assert steps >= 0
    assert 0 <= depth <= 6 * len(parts)
    parse(html)


@given(st.text(max_size=300))
def test_any_text_is_parsed(text):
    parse(text)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="shared/data is not here")
def test_no_real_page_is_refused():
    import pyarrow.parquet as pq

    seen = 0
    for path in sorted((DATA / "sites").glob("*.parquet"))[::6]:
        table = pq.ParquetFile(path).read_row_group(0, columns=["html"])
        for row in range(0, len(table), max(1, len(table) // 20)):
            body = table["html"][row].as_py()
            if body:
                parse(body.decode("utf-8", "replace"))
                seen += 1
    assert seen > 100
