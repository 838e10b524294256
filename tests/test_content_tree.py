"""The content tree of a page, and what is rendered from it: text, Markdown, chunks; `recrawl lab extract`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from datetime import date
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import turbohtml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from recrawl.compare.content.lines import Line, lines
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.tree.blocks import (
    CODE,
    EMPHASIS,
    STRONG,
    STRUCK,
    BlockKind,
    Container,
    ContainerKind,
    ContentBlock,
    ContentTree,
    Span,
)
from recrawl.compare.tree.builder import html_tree
from recrawl.compare.tree.chunks import chunks_of
from recrawl.compare.tree.documents import parse_html
from recrawl.compare.tree.renderers import markdown, plain_text, text_lines
from recrawl.lab.extraction import extract
from recrawl.words import count_words
from tests.world import command

TODAY = date(2026, 1, 1)
URL = "https://site.example/docs/page"
ARTICLE = """<html lang="en-GB"><head><title>Tides - Sea News</title>
<meta property="article:published_time" content="2024-05-01T10:00:00Z"><meta name="author" content="Ada Pool"></head>
<body><nav><ul><li><a href=/>Home</a><li><a href=/news>News</a><li><a href=/shop>Shop</a></ul></nav>
<main><article><h1>Tides</h1><p>The sea rises and falls <b>twice a day</b>, as the <a href="../moon">moon</a> goes round
the earth.</p>
<p>At the coast of Brittany the water rises by as much as fourteen metres, more than elsewhere in Europe.</p>
<h2>Tables</h2><table><tr><th>Port<th>Metres</tr><tr><td>Brest<td>7</tr><tr><td>St Malo<td>12</tr></table>
<ul><li>Spring tide<ol><li>new moon<li>full moon</ol><li>Neap tide</ul>
<pre><code class="language-python">def tide(hour):
    return 7 * cos(hour)
</code></pre><blockquote><p>Time and tide wait for no man, as the saying goes.</blockquote></article></main>
<footer><p>Copyright Sea News. All rights reserved. <a href=/privacy>Privacy</a></footer></body></html>"""


def tree_of(html: str) -> ContentTree:
    return html_tree(turbohtml.parse(html), URL)


def blocks_of(html: str) -> list[ContentBlock]:
    return tree_of(html).blocks


def rendered(text: str) -> list[Token]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [inner for token in parser.parse(text) for inner in [token, *(token.children or [])]]


def kinds(tokens: Sequence[Token]) -> set[str]:
    return {token.type for token in tokens}


def test_an_article_gives_its_content_and_fields() -> None:
    found = extract(ARTICLE.encode(), URL, TODAY)
    assert found["text"].splitlines()[0] == "Tides"
    assert "fourteen metres" in found["text"]
    assert "St Malo 12" in found["text"]
    assert "    return 7 * cos(hour)" in found["text"]
    assert "Shop" not in found["text"]
    assert "Copyright" not in found["text"]
    names = ("title", "author", "published", "modified", "language")
    assert [found[name] for name in names] == ["Tides", "Ada Pool", "2024-05-01", None, "en-gb"]
    assert found["chunks"][0]["headings"] == ["Tides"]


def test_markdown_shows_the_page_as_it_reads() -> None:
    found = extract(ARTICLE.encode(), URL, TODAY)["markdown"]
    assert found.split("\n") == [
        "# Tides",
        "",
        "The sea rises and falls **twice a day**, as the [moon](https://site.example/moon) goes round the earth.",
        "",
        "At the coast of Brittany the water rises by as much as fourteen metres, more than elsewhere in Europe.",
        "",
        "## Tables",
        "",
        "| Port | Metres |",
        "| --- | --- |",
        "| Brest | 7 |",
        "| St Malo | 12 |",
        "",
        "- Spring tide",
        "",
        "  1. new moon",
        "  2. full moon",
        "- Neap tide",
        "",
        "```python",
        "def tide(hour):",
        "    return 7 * cos(hour)",
        "```",
        "",
        "> Time and tide wait for no man, as the saying goes.",
    ]


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>&lt;script&gt;alert(1)&lt;/script&gt;", r"\<script\>alert(1)\</script\>"),
        ("<p>wow!<a href=/b>[x]</a>", r"wow\![\[x\]](https://site.example/b)"),
        ('<p><a href="javascript:alert(1)">go</a>', "go"),
        ('<p><img src="data:image/png;base64,AA" alt=x>y', "y"),
        ("<p>1. one<br>- two<br># three", "1\\. one\\\n\\- two\\\n\\# three"),
        ("<p>---", r"\---"),
        ("<ul><li>a</ul><ul><li>b</ul>", "- a\n\n* b"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<p>a<b>b </b>c", "a**b** c"),
        ("<dl><dt>Ebb<dd>Falling water.</dl>", "**Ebb**\n\nFalling water."),
        ("<table><tr><td>1</td><td><p>long</p><p>text</p></td></tr></table>", "1\n\nlong\n\ntext"),
    ],
)
def test_markdown_is_escaped(html: str, shown: str) -> None:
    assert markdown(blocks_of(html)) == shown


_TEXTS = st.text(st.sampled_from(list("ab12 \\`*_{}[]()<>#+-.!|~&;:=/\"'\n\t$@^")), max_size=12) | st.sampled_from(
    ["<script>", "<!--", "&lt;", "&copy;", "![x](y)", "[a]: /b", "<a@b.c>", "***", "1. ", "\\", "    code", "| a | b |"]
)
_SPANS = st.builds(
    Span,
    _TEXTS.map(lambda text: " ".join(text.split(" "))),
    st.sampled_from([0, 0, STRONG, EMPHASIS, CODE, STRUCK, STRONG | EMPHASIS]),
    st.sampled_from(["", "", "https://e.example/a", "https://e.example/(b)?c=&copy;d*_`<"]),
    st.sampled_from(["", "", "", "https://e.example/i.png"]),
)


@st.composite
def _blocks(draw: st.DrawFn) -> list[ContentBlock]:
    made: list[ContentBlock] = []
    within: tuple[Container, ...] = ()
    for _ in range(draw(st.integers(1, 5))):
        keep = draw(st.integers(0, len(within)))
        added = draw(st.lists(st.sampled_from(list(ContainerKind)), max_size=3))
        within = (*within[:keep], *(Container(kind, draw(st.integers(0, 12))) for kind in added))
        kind = draw(st.sampled_from(list(BlockKind)))
        if kind is BlockKind.TABLE:
            row = st.lists(st.lists(_SPANS, max_size=2), min_size=2, max_size=2)
            made.append(ContentBlock(kind, [], within, rows=draw(st.lists(row, min_size=1, max_size=3))))
        elif kind is BlockKind.CODE:
            made.append(ContentBlock(kind, [Span(draw(_TEXTS))], within, language=draw(st.sampled_from(["", "c++"]))))
        else:
            spans = draw(st.lists(_SPANS, min_size=1, max_size=4))
            made.append(ContentBlock(kind, spans, within, level=draw(st.integers(1, 6))))
    return made


@given(_blocks())
@example([ContentBlock(BlockKind.TEXT, [Span("a!"), Span("b", 0, "https://e.example/a")])])
def test_markdown_brings_in_nothing(blocks: list[ContentBlock]) -> None:
    """No HTML, link, image, table, heading, code or quote that is not in the tree."""
    tokens = rendered(markdown(blocks))
    assert not kinds(tokens) & {"html_block", "html_inline"}
    cells = [span for block in blocks for row in block.rows for cell in row for span in cell]
    spans = [*cells, *(span for block in blocks for span in block.spans)]
    links = {str(token.attrs["href"]) for token in tokens if token.type == "link_open"}
    images = {str(token.attrs["src"]) for token in tokens if token.type == "image"}
    assert len(links) <= len({span.link for span in spans} - {""})
    assert all(link.startswith("https://e.example/") for link in links)
    assert images <= {span.image for span in spans}
    counts = {kind: sum(block.kind is kind for block in blocks) for kind in BlockKind}
    shown = [token.type for token in tokens]
    assert shown.count("heading_open") <= counts[BlockKind.HEADING]
    assert shown.count("table_open") <= counts[BlockKind.TABLE]
    assert shown.count("fence") <= counts[BlockKind.CODE]
    assert "code_block" not in shown
    assert "hr" not in shown
    quoted = any(one.kind is ContainerKind.QUOTE for block in blocks for one in block.within)
    assert quoted or "blockquote_open" not in shown
    listed = any(one.kind is ContainerKind.ITEM for block in blocks for one in block.within)
    assert listed or not {"bullet_list_open", "ordered_list_open"} & set(shown)


@given(st.text(st.sampled_from(list("ab<>/&;#!-=\"' ")), max_size=60))
def test_what_stands_in_a_page_stays_text(text: str) -> None:
    """The text of a rendered page is its text."""
    blocks = blocks_of(f"<p>x{text.replace('&', '&amp;').replace('<', '&lt;')}")
    shown = "".join(token.content for token in rendered(markdown(blocks)) if token.type in ("text", "text_special"))
    assert "".join(shown.split()) == "".join(plain_text(blocks).split())


def test_hidden_and_raw_parts() -> None:
    html = "<script>a()</script><style>b</style><p>one<svg><text>two</text></svg><noscript>three</noscript>"
    assert plain_text(blocks_of(html)) == "one"
    words = " ".join(f"word{number}" for number in range(60))
    assert plain_text(blocks_of(f"<p>Loading<noscript><p>{words}</noscript>")).splitlines() == ["Loading", words]


def test_chunks_keep_to_the_maximum_and_carry_their_headings() -> None:
    parts = [f"<h2>Part {n}</h2>" + "".join(f"<p>{'word ' * 30}{n} {m}.</p>" for m in range(6)) for n in range(4)]
    rows = "".join(f"<tr><td>row {n}<td>{'cell ' * 10}</tr>" for n in range(30))
    code = "\n".join(f"line {n}" for n in range(100))
    blocks = blocks_of(f"<h1>All</h1>{''.join(parts)}<h2>Data</h2><table>{rows}</table><pre>{code}</pre>")
    found = chunks_of(blocks, 100)
    assert max(len(chunk.text.split()) for chunk in found) <= 100
    assert all(chunk.headings[0] == "All" for chunk in found)
    assert {chunk.headings[-1] for chunk in found} >= {"Part 0", "Part 1", "Part 2", "Part 3", "Data"}
    assert {chunk.kind for chunk in found} == {"text", "table", "code"}
    assert "".join("\n".join(chunk.text for chunk in found).split()) == "".join(plain_text(blocks).split())
    lines = {line for chunk in found for line in chunk.text.split("\n")}
    assert {f"row {n} {' '.join(['cell'] * 10)}" for n in range(30)} <= lines


def test_an_edit_changes_the_chunks_around_it_alone() -> None:
    paragraphs = [f"<p>{' '.join(f'w{n}x{m}' for m in range(25))}." for n in range(120)]
    before = {chunk.text for chunk in chunks_of(blocks_of("".join(paragraphs)), 120)}
    paragraphs[40] = "<p>Something else stands here now."
    after = {chunk.text for chunk in chunks_of(blocks_of("".join(paragraphs)), 120)}
    assert 0 < len(after - before) <= 4


def test_chunks_overlap_when_asked() -> None:
    blocks = blocks_of("".join(f"<p>{' '.join(f'w{n}x{m}' for m in range(20))}" for n in range(10)))
    found = chunks_of(blocks, 60, overlap=10)
    assert len(found) > 3
    for before, chunk in pairwise(found):
        assert chunk.text.split()[:10] == before.text.split()[-10:]
        assert len(chunk.text.split()) <= 60


META = '<meta property="article:published_time" content="2024-05-01T23:30:00-05:00">'
EDITED = '<meta property="article:modified_time" content="2025-06-30">'


@pytest.mark.parametrize(
    ("head", "body", "published"),
    [
        (META, "<h1>Tides</h1><p>May 2, 2024</p>", "2024-05-01"),  # the same moment elsewhere
        (META + EDITED, "<h1>Tides</h1><p class=date><time>June 30, 2025</time></p>", "2024-05-01"),  # of an edit
        ("", "<h1>Tides</h1><div><span>Dec 17, 2025</span><span>Ada Pool</span></div>", "2025-12-17"),
        ("", "<h1>Tides</h1><p><span>Sea</span><span>DECEMBER 17, 2025</span><span>Updated</span>", "2025-12-17"),
        ("", f"<h1>Tides</h1>{'<p>The sea rises.' * 30}<div>Published August 13, 2025</div>", "2025-08-13"),
        ("", f"<h1>Tides</h1>{'<p>The sea rises.' * 30}<h3>Published</h3><p>August 30, 2024</p>", "2024-08-30"),
        (
            "",
            (
                "<h1>Tides</h1><p>30 Sep 2022</p><p>The sea rises.</p>"
                "<p>This article was originally published on 26 Sep 2019 and has been updated since.</p>"
            ),
            "2019-09-26",
        ),
        (
            "",
            (
                "<ul><li><span class=date>01/31/2025</span> Moon<li><span class=date>01/06/2025</span> Sun</ul>"
                "<h1>Tides</h1><p>03/01/2017 by Ada Pool</p>"
            ),
            "2017-03-01",
        ),
        ("", "<h1>Tides</h1><p>The seminar 12, 2020 of them, came.", None),
    ],
)
def test_the_date_of_publication_is_that_of_the_page_itself(head: str, body: str, published: str | None) -> None:
    page = f"<html lang=en><head><title>Tides</title>{head}</head><body>{body}"
    assert extract(page.encode(), URL, TODAY)["published"] == published


HOSTILE: list[Any] = [
    None,
    b"",
    b"\xff\xfe\x00\x00",
    b"<div>" * 50_000 + b"deep",
    b"<blockquote><ul><li>" * 3_000 + b"deep",
    b"<table><tr><td>" * 2_000 + b"deep",
    b"<b><i>" * 5_000,
    b"<p>x" * 3_000,
    b"<a " + b" ".join(b"a%d=1" % n for n in range(20_000)) + b">x",
    b'<script type="application/ld+json">' + b"[" * 50_000 + b"</script>text",
    b'<script type="application/ld+json">{"@type":"Article","headline":"\\ud83d","datePublished":7}</script>text',
    b"<meta property=article:published_time content=9999-99-99><h1>\x00\x1b[31m</h1>",
    b"<base href='http://[bad'><a href='http://[::1'>x</a><img src='//'>",
    bytes(range(256)) * 20,
]


def test_no_page_makes_it_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One object for each row, in their order, whatever is in it; also where the parser gives up."""
    file = tmp_path / "pages.parquet"
    rows = [*HOSTILE, ARTICLE.encode()]
    names = [f"page-{number}" for number in range(len(rows))]
    urls = [*("not a url" for _ in HOSTILE[:-1]), None, URL]
    table = pa.table({"id": names, "url": urls, "html": pa.array(rows, pa.binary()), "other": names})
    pq.write_table(table, file)
    result = command("lab", "extract", file, "--json")
    assert result.code == 0, result.err
    found = [json.loads(line) for line in result.out.splitlines()]
    assert [one["id"] for one in found] == names
    keys = ["id", "text", "markdown", "title", "author", "published", "modified", "language", "chunks"]
    assert all(list(one) == keys for one in found)
    assert found[3]["text"] == "deep"
    assert found[-1]["title"] == "Tides"

    monkeypatch.setattr("recrawl.lab.extraction.read_html", _no_memory)
    lost = extract(b"<p>one</p><script>x()</script><p>two &amp; three", URL, TODAY)
    assert lost["text"] == "one\ntwo & three"


def _no_memory(*_: object) -> None:
    raise MemoryError


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "pages.parquet"
    file.write_bytes(b"no parquet")
    assert "cannot read" in command("lab", "extract", file).err
    pq.write_table(pa.table({"id": [1], "html": ["<p>x"]}), file)
    assert "has no column 'url'" in command("lab", "extract", file).err
    pq.write_table(pa.table({"id": [1], "url": [URL], "html": [7]}), file)
    assert "column 'html'" in (refused := command("lab", "extract", file).err)
    assert "holds int64" in refused
    pq.write_table(pa.table({"id": [float("nan")], "url": [URL], "html": ["<p>x\ud7ff text"]}), file)
    assert json.loads(command("lab", "extract", file, "--json").out)["id"] == "nan"


def test_columns_that_hold_no_utf8_are_read(tmp_path: Path) -> None:
    """A column of text may hold any bytes; one that is text is not read by the encoding that the page names."""
    file = tmp_path / "pages.parquet"
    wrong = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    page = pa.array([b"<p>caf\xe9 \xed\xa0\x80"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": wrong, "url": wrong, "html": page}), file)
    found = json.loads(command("lab", "extract", file, "--json").out)
    assert found["text"].startswith("caf\u00e9")
    pq.write_table(pa.table({"id": [None], "url": [None], "html": ["<meta charset=iso-8859-1><p>größer"]}), file)
    found = json.loads(command("lab", "extract", file, "--json").out)
    assert [found["id"], found["text"]] == [None, "größer"]


def test_an_item_after_text_of_its_list_begins_a_list() -> None:
    """A list that begins with 7 does not interrupt a paragraph."""
    tokens = rendered(markdown(blocks_of("<ol start=7>before<li>seven<li>eight</ol>")))
    assert sum(token.type == "list_item_open" for token in tokens) == 2


def test_a_line_end_of_the_source_is_a_space() -> None:
    assert [block.text for block in blocks_of("<p><a href=/a>one</a>\n<a href=/b>two</a>\n<br>\nthree")] == [
        "one two\nthree"
    ]


DATA = Path(__file__).parents[2] / "shared" / "data" / "extraction" / "pages.parquet"
MARKUP = (
    "<pre>a  b\nc", "<b>", "</p>", "<br>", "<table><tr><td>x", "<noscript>n</noscript>", "<textarea>t\nu</textarea>",
    "<iframe>x</iframe>", "<svg><text>y", "{{ x }}", "<ul><li>q", "<button>z", "<select><option>o", "<h2>h", "<nav>",
    "</div>", "<img alt=i>", "<template>t", "<math><mi>m", "<xmp><b>x</xmp>", "<details><summary>s", "&lt;p&gt;",
    "\u3000", "<ruby>a<rt>b", "<b class=menu>m</b>",
)  # fmt: skip


def cut(texts: Sequence[str]) -> tuple[str, set[int]]:
    """Letters without spaces, and after how many of them a line ends."""
    sizes = [len(text.replace(" ", "")) for text in texts]
    return "".join(texts).replace(" ", ""), set(accumulate(sizes))


def assert_the_same_lines(page: str) -> None:
    """What a visit reads of a page is what its tree shows; a visit also cuts lines where the frame begins."""
    visited = [line.text for line in lines(parse(page))]
    shown = [line.text for one in text_lines(parse_html(page).tree) for line in map(Line.of, one.parts)]
    (letters, ends), (tree_letters, tree_ends) = cut(visited), cut([text for text in shown if text])
    assert letters == tree_letters
    assert tree_ends <= ends


@given(st.lists(st.sampled_from((*MARKUP, "one ", "two\n", " three")), max_size=40))
@example(["<svg><text>y", "<noscript>n</noscript>", "<template>t", "one "])
def test_a_visit_reads_the_lines_of_the_tree(parts: list[str]) -> None:
    assert_the_same_lines("".join(parts))


@pytest.mark.skipif(not DATA.is_file(), reason="shared/data is not here")
def test_a_visit_reads_the_lines_of_the_tree_of_real_pages() -> None:
    rng = random.Random(1)
    for html in pq.read_table(DATA, columns=["html"])["html"].to_pylist()[::10]:
        page = re.sub("<input", "<i", decode(html).text)  # a button that sends a form ends a line, and has no text
        assert_the_same_lines(page)
        place = rng.randrange(max(1, len(page) - 40_000))
        page = page[place : place + 40_000]
        for _ in range(8):
            at = rng.randrange(len(page) + 1)
            page = page[:at] + rng.choice(MARKUP) + page[at:]
        assert_the_same_lines(page)


def test_code_keeps_the_spaces_at_the_ends_of_its_lines() -> None:
    code = "one  \n    \ntwo\t"
    for around in ("", "<ul><li>", "<blockquote>"):
        tokens = rendered(markdown(blocks_of(f"{around}<pre>{code}<b>.</b></pre>")))
        assert [token.content for token in tokens if token.type == "fence"] == [f"{code}.\n"]


def test_chunks_of_scripts_without_spaces_have_as_many_words() -> None:
    text = "今天北京的天气很好。明天也好，后天下雨。" * 60
    found = chunks_of(blocks_of(f"<p>{text}"), 100)
    assert all(count_words(chunk.text) <= 105 for chunk in found)  # words without spaces are counted by letters
    assert 5 <= len(found) <= count_words(text) // 60
    assert "".join(chunk.text for chunk in found) == text
    assert all(count_words(chunk.text) <= 110 for chunk in chunks_of(blocks_of(f"<p>{text}"), 100, 20))
