"""What leaves recrawl is rendered from one tree: the sink of Markdown, `show`, the reader's view, diffs, feeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import turbohtml
from markdown_it import MarkdownIt

import recrawl
from recrawl.compare.tree.documents import read_document
from recrawl.compare.tree.renderers import html, plain_text, text_lines
from recrawl.repository.sinks.markdown_files import file_name
from recrawl.serve.context import ServiceLimits
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.test_serve_api import Idle
from tests.world import Reply, Repo, Site

HOSTILE = """<!doctype html><html lang="en-GB"><head><title>Tides &amp; "winds": a --- guide</title>
<meta name="description" content="About
tides"><meta name="author" content="Ada Pool"><meta property="article:published_time" content="2024-05-01T10:00:00Z">
<link rel="canonical" href="/tides"><link rel="license" href="https://creativecommons.org/licenses/by/4.0/">
<meta name="robots" content="noai, noimageai"></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop</a></li></ul></nav><main><h1>Tides</h1>
<p>The sea rises and falls twice a day;
&lt;script&gt;alert(1)&lt;/script&gt; is only the text of this paragraph.</p>
<p>Read <a href="javascript:alert(2)">more</a> of it at the <a href="../coast?a=1&amp;b=2">coast</a>,
which is not far.</p>
<pre><code class="language-python">def tide(hour):
    return "&lt;b&gt;" * hour
</code></pre><table><tr><th>Port<th>Height | m</tr><tr><td>Brest<td>7</tr></table>
<ul><li>Spring tide, which comes with the new moon<ol><li>and with the full moon, twice a month</ol></ul>
<p><img src="/tide.png" alt="A [tide]" onerror="alert(3)">
A tide that was seen from the coast of Brittany last year.</p>
</main><footer><p>Copyright. <a href="/privacy">Privacy</a></p></footer></body></html>"""
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Sea news</title><link>https://sea.example/</link>
<description>All of the sea</description><item><title>Tides</title><link>https://sea.example/tides</link>
<guid>urn:1</guid><pubDate>Mon, 06 May 2024 00:01:00 GMT</pubDate>
<description>&lt;p&gt;They &lt;b&gt;rise&lt;/b&gt;&lt;/p&gt;
&lt;ul&gt;&lt;li&gt;and fall&lt;/li&gt;&lt;/ul&gt;</description>
</item></channel></rss>"""


@pytest.fixture
def tides(tmp_path: Path) -> Iterator[tuple[Repo, Site]]:
    repo = Repo.create(tmp_path / "repo", change="text")
    with Site({"/": Reply(HOSTILE.encode())}) as web:
        repo.crawl(web.url("/"))
        yield repo, web


def test_a_file_of_markdown_has_the_content_and_brings_in_nothing(tides: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = tides
    repo.run("sink", "add", "notes", "markdown", tmp_path / "notes")
    repo.run("sink", "run")
    text = (tmp_path / "notes" / file_name(web.url("/"))).read_text()
    _, head, body = text.split("---\n", 2)
    front = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in head.splitlines())}
    assert front["title"] == "Tides"
    expected = {"description": "About tides", "author": "Ada Pool", "language": "en-gb", "published": "2024-05-01"}
    expected |= {"canonical": web.url("/tides"), "licence": "https://creativecommons.org/licenses/by/4.0/"}
    expected |= {"ai_use": "noai", "url": web.url("/"), "outcome": "new"}
    assert {name: front[name] for name in expected} == expected
    assert {"version", "digest", "time", "change"} <= set(front)
    shown = turbohtml.parse(MarkdownIt("commonmark", {"html": True}).enable("table").render(body))
    counts = {tag: len(shown.find_all(tag)) for tag in ("script", "h1", "table", "pre", "li", "img", "a", "nav")}
    assert counts == {"script": 0, "h1": 1, "table": 1, "pre": 1, "li": 2, "img": 1, "a": 1, "nav": 0}
    assert [node.attr("href") for node in shown.find_all("a")] == [web.url("/coast?a=1&b=2")]
    assert shown.find("pre").text == 'def tide(hour):\n    return "<b>" * hour\n'  # type: ignore[union-attr]
    assert "<script>alert(1)</script> is only the text" in shown.find("body").text  # type: ignore[union-attr]
    assert "Shop" not in body
    assert "Privacy" not in body


def test_show_prints_the_content_or_all_text(tides: tuple[Repo, Site]) -> None:
    repo, web = tides
    shown = repo.run("show", web.url("/")).out
    assert "# Tides" in shown
    assert "```python" in shown
    assert "Shop" not in shown
    assert "Shop" in repo.run("show", web.url("/"), "--text").out
    found = repo.json("show", web.url("/"))
    assert found["markdown"] in shown
    assert "Shop" in found["text"]


def test_a_reader_sees_text_and_links_alone(tides: tuple[Repo, Site]) -> None:
    repo, web = tides
    with recrawl.open(repo.folder) as opened:
        text = opened.page(web.url("/")).version().main_content.html
    shown = turbohtml.parse(text)
    assert {node.tag for node in shown.find("body").iter_elements()} <= {  # type: ignore[union-attr]
        *("h2", "p", "a", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "em"),
    }
    assert [dict(node.attrs) for node in shown.find_all("a")] == [
        {"href": web.url("/coast?a=1&b=2"), "rel": ["noopener", "noreferrer", "nofollow"]}
    ]
    assert "A [tide]" in shown.find("body").text  # type: ignore[union-attr]


def test_the_dashboard_shows_the_content_to_a_reader(tides: tuple[Repo, Site]) -> None:
    repo, _ = tides
    limits = ServiceLimits(per_minute=1e9, burst=1e9, streams=2)
    with Service(repo.folder, ServiceConfig(schedule=False, runner=Idle(), limits=limits)) as service:
        shown = turbohtml.parse(Asker(service).get("/pages/0/read").text)
    reader = shown.select_one("article .reader")
    assert reader is not None
    assert reader.find("h2").text == "Tides"  # type: ignore[union-attr]
    assert not reader.select("script, img, style, [onerror], nav")
    assert "only the text of this paragraph" in reader.text
    assert "Author: Ada Pool" in shown.find("body").text  # type: ignore[union-attr]


def test_a_difference_shows_rows_and_code_as_they_read(tides: tuple[Repo, Site]) -> None:
    repo, web = tides
    changed = HOSTILE.replace("<td>7", "<td>8").replace("    return", "    return 2 *").replace(">Shop<", ">Sale<")
    web["/"] = Reply(changed.encode())
    repo.later(days=3)
    repo.cycle()
    found = repo.json("diff", web.url("/"))
    assert "Brest {+8+}" in found["diff"]
    assert "\n+    return {+2 * +}" in found["diff"] or "\n+    return" in found["diff"]
    assert "Sale" in found["diff"]
    assert "Sale" not in found["content_diff"]


def blocks_of(body: bytes, mime: str) -> list[tuple[Any, ...]]:
    tree = read_document(body, mime, mime, "https://sea.example/feed").tree
    return [(block.kind.value, block.text, block.level) for block in tree.blocks]


def test_feeds_are_headings_and_the_content_of_entries() -> None:
    expected = [
        ("heading", "Sea news", 1),
        ("text", "All of the sea", 0),
        ("heading", "Tides", 2),
        ("text", "Mon, 06 May 2024 00:01:00 GMT", 0),
        ("text", "They rise", 0),
        ("text", "and fall", 0),
    ]
    found = blocks_of(FEED.encode(), "application/rss+xml")
    assert found[:6] == expected
    assert ("other", "urn:1", 0) in found
    assert "urn:1" not in plain_text(read_document(FEED.encode(), "", "application/rss+xml").tree.blocks)
    items = [
        {"url": "https://sea.example/tides", "title": "Tides", "content_html": "<p>They <b>rise</b>", "authors": 7}
    ]
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "Sea news", "items": items}
    found = blocks_of(json.dumps(feed).encode(), "application/feed+json")
    assert found == [("heading", "Sea news", 1), ("heading", "Tides", 2), ("text", "They rise", 0)]
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><rss><channel><title>&b;</title></channel></rss>'
    assert read_document(bomb, "", "application/rss+xml").tree.blocks


def test_other_types_make_trees_too() -> None:
    assert blocks_of(b"One\ntwo\n\n    code\n      deeper\n\nthree", "text/plain") == [
        ("text", "One\ntwo", 0),
        ("code", "code\n      deeper", 0),
        ("text", "three", 0),
    ]
    assert blocks_of(b'{"title": "T", "a": {"b": [1]}}', "application/json") == [
        ("text", "title: T", 0),
        ("text", "a.b: 1", 0),
    ]
    assert blocks_of(b"# Tides\n\n- rise\n\n```py\nx = 1\n```", "text/markdown") == [
        ("heading", "Tides", 1),
        ("text", "rise", 0),
        ("code", "x = 1", 0),
    ]
    assert blocks_of(b"\0\1\2", "application/zip") == []
    tree = read_document(FEED.encode(), "", "application/rss+xml").tree
    assert [line.text for line in text_lines(tree)][:3] == ["Sea news", "All of the sea", "Tides"]
    assert "<li" in html(tree.blocks)
