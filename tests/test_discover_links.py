"""What a page points to: every kind of link, words for robots, and a cache that never changes an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.parsing.document import parse
from recrawl.discover import links as links_module
from recrawl.discover.links import MAX_LINKS, LinkReader, PageLinks
from recrawl.discover.urls import UrlRules, canonical

SITES = Path(__file__).parents[1].parent / "shared" / "data" / "sites"
PAGE = "https://a.example/dir/page.html"


def read(html: str, url: str = PAGE, reader: LinkReader | None = None) -> PageLinks:
    return (reader or LinkReader()).read(parse(html), url)


def urls(html: str, url: str = PAGE) -> list[str]:
    return read(html, url).urls


def test_every_kind_of_link_in_document_order():
    html = """
    <head><link rel="Next" href="p2"><link rel=prev href=p0><link rel=stylesheet href=s.css>
    <link rel="preload" href="x"><meta http-equiv=Refresh content="5; URL='moved'"></head>
    <body><a href="one">1</a><map><area href="two"></map><iframe src="/three"></iframe>
    <A HREF=four>4</A></body>"""
    start = "https://a.example/dir/"
    assert urls(html) == [
        *(start + name for name in ("p2", "p0", "moved", "one", "two")),
        "https://a.example/three",
        start + "four",
    ]


def test_framesets_are_read():
    html = '<frameset><frame src="menu.html"><frame src="https://b.example/ad"><frame></frameset>'
    assert urls(html) == ["https://a.example/dir/menu.html"]


def test_frames_of_other_origins_are_left_out():
    html = """<iframe src="//ads.example/x"></iframe><iframe src="http://a.example/y"></iframe><iframe></iframe>
    <iframe src="https://a.example.evil.example/"></iframe><iframe src="in"></iframe><a src="no">x</a>"""
    assert urls(html) == ["https://a.example/dir/in"]


def test_each_address_once_and_never_the_page_itself():
    html = """<a href="b#1"></a><a href="b#2"></a><a href="./b"></a><a href="page.html"></a><a href=""></a>
    <a></a><a href="#x"></a><a href="?"></a><a href="  #y "></a><a href="page.html?utm_source=x">x</a>
    <a href="c">"""
    assert urls(html) == ["https://a.example/dir/b", "https://a.example/dir/c"]


NO_PAGES = """
    javascript:void(0) JavaScript:x mailto:a@b tel:1 data:,x ftp://a.example/ http://[::1 x.PNG /y.tar.gz
    z.css?v=1 app.js film.mp4 font.woff2 File:x.png
"""
PAGES_AFTER_ALL = "/wiki/File:x.png /show?f=x.png /v1.2 /x.png/ /x.html /x."


def test_what_is_no_page_is_skipped():
    hrefs = [*NO_PAGES.split(), " mailto:x", *PAGES_AFTER_ALL.split()]
    found = urls("".join(f'<a href="{href}">x</a>' for href in hrefs))
    assert found == ["https://a.example" + path for path in PAGES_AFTER_ALL.split()]


def test_the_table_of_suffixes_can_be_set():
    tree = parse('<a href="a.png"></a><a href="b.html"></a>')
    assert LinkReader(skip_suffixes=[".HTML"]).read(tree, PAGE).urls == ["https://a.example/dir/a.png"]
    assert len(LinkReader(skip_suffixes=()).read(tree, PAGE).urls) == 2


def test_the_rules_reach_the_links():
    tree = parse('<a href="a?x=1&y=2">')
    assert LinkReader(UrlRules(tracking=("x",))).read(tree, PAGE).urls == ["https://a.example/dir/a?y=2"]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", "https://a.example/other/x"),
        ("https://b.example/c/d", "https://b.example/c/x"),
        ("mailto:x", "https://a.example/dir/x"),
        ("", "https://a.example/dir/x"),
    ],
)
def test_the_base_element_is_honoured(base, expected):
    assert urls(f'<base href="{base}"><base href="/late/"><a href="x">') == [expected]


def test_the_same_link_differs_by_base_and_page():
    reader = LinkReader()
    html = '<a href="x"></a><a href="?y=1"></a><a href=" ?z=1"></a><a href="https:?w=1"></a><a href="/v"></a>'
    for url in (
        "https://a.example/d/1",
        "https://a.example/d/2",
        "https://a.example/e/1",
        "http://b.example/e/1",
    ):
        assert read(html, url, reader).urls == urls(html, url)
    assert urls(html, "https://a.example/d/2")[1] == "https://a.example/d/2?y=1"


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("0; URL = 'x' ", "x"),
        ('5,"x"', "x"),
        ("0.5 url=x", "x"),
        ("; x", "x"),
        ("0; url='x", "x"),
        ("30", None),
        ("0;url=", None),
        ("x", None),
        ("0; url=javascript:x", None),
    ],
)
def test_refreshes(content, target):
    quoted = content.replace('"', "&quot;")
    found = urls(f'<meta http-equiv=refresh content="{quoted}">')
    assert found == ([f"https://a.example/dir/{target}"] if target else [])


@pytest.mark.parametrize(
    ("meta", "follow", "index"),
    [
        ("", True, True),
        ('<meta name="robots" content="index,follow">', True, True),
        ('<meta name="ROBOTS" content="NoFollow">', False, True),
        ('<meta content="noindex, max-snippet:-1" name=" recrawl ">', True, False),
        ('<meta name=robots content="none">', False, False),
        ("<meta name=robots content=noindex><meta name=recrawl content=nofollow>", False, False),
        ('<meta name=googlebot content="none">', True, True),
        ('<div>stray</div><meta name=robots content="nofollow noindex">', False, False),
        ("<meta name=robots>", True, True),
    ],
)
def test_words_for_robots(meta, follow, index):
    links = read(f"<head>{meta}</head><a href=x>")
    assert (links.follow, links.index) == (follow, index)
    assert links.urls == ["https://a.example/dir/x"]


def test_feeds_and_the_canonical_address_are_reported():
    links = read("""
    <link rel="alternate" type="application/rss+xml" href="/rss"><link rel=canonical href="real">
    <link rel="alternate home" type="Application/Atom+XML; charset=utf-8" href="/atom">
    <link rel=alternate type="application/feed+json" href="/json"><link rel=alternate type=text/html href=/de>
    <link rel="alternate" type="application/rss+xml" href="/rss#x"><link rel=canonical href="b">
    <link rel=alternate type="application/rss+xml">""")
    assert links.feeds == [f"https://a.example/{name}" for name in ("rss", "atom", "json")]
    assert links.canonical == "https://a.example/dir/real"
    assert links.urls == []
    assert read("<p>").canonical is None


def test_a_page_without_an_address_has_no_links():
    assert urls('<a href="https://b.example/">', "mailto:x") == []
    assert urls("") == []


def test_a_page_of_very_many_links_is_cut():
    found = urls("".join(f'<a href="{i}">x</a>' for i in range(4 * MAX_LINKS)))
    assert len(found) == MAX_LINKS
    assert found[0] == "https://a.example/dir/0"


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(links_module, "_CACHE_ENTRIES", 100)
    reader = LinkReader()
    for i in range(200):
        html = f'<a href="x{i}"></a><a href="/y{i}"></a><a href="{"z" * 400}{i}">'
        assert len(read(html, f"https://a.example/{i}/", reader).urls) == 3
        held = sum(len(table) for table in reader._cache.values()) + len(reader._cache)
        assert held <= 110
        assert not any(len(href or "") > 300 for table in reader._cache.values() for href in table)


HREFS = st.one_of(
    st.sampled_from(["x", "/x", "../x", "?x", "#x", "", " ?x", "https:?x", "http:x", "//b.example/x", "a:b", "x.png"]),
    st.text("ax./?#:\\ \t%&;=", max_size=8),
)
PAGES = st.sampled_from(
    [
        "https://a.example/",
        "https://a.example/d/1",
        "https://a.example/d/2?q",
        "http://a.example/d/1",
        "https://b.example/d/",
        "https://a.example/d/../%7e/./x;jsessionid=1?b&a#c",
        "https://a.example/" + "x" * 3000,
        "https://a.example:443/d/",
        "https://a.example\\d\\",
        "no URL",
    ]
)


@given(st.lists(st.tuples(PAGES, st.lists(HREFS, max_size=6)), max_size=6))
def test_a_reader_that_remembers_says_what_a_fresh_one_says(visits):
    reader = LinkReader()
    for url, hrefs in visits:
        tree = parse("".join(f'<a href="{href}">x</a>' for href in hrefs))
        links = reader.read(tree, url)
        assert links == LinkReader().read(tree, url)
        assert len(set(links.urls)) == len(links.urls)
        assert all(canonical(found) == found != url for found in links.urls)


@pytest.mark.slow
@pytest.mark.skipif(not SITES.is_dir(), reason="no shared/data beside the checkout")
def test_real_pages_link_to_their_own_sites():
    pq = pytest.importorskip("pyarrow.parquet")
    reader, inside, pages = LinkReader(), 0, 0
    for path in sorted(SITES.glob("a*.parquet"))[:8]:
        table = pq.read_table(path).slice(0, 40)
        known = set(table["url"].to_pylist())
        for url, html in zip(table["url"].to_pylist(), table["html"].to_pylist(), strict=True):
            if html:
                links = reader.read(parse(html.decode("utf-8", "replace")), url)
                assert all(canonical(found) == found for found in links.urls)
                inside += any(found in known or found.startswith(url[:20]) for found in links.urls)
                pages += 1
    assert inside > pages / 2
