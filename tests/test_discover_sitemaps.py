"""Sitemaps in every form that servers send, and in those made to hurt."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.discover.dates import parse_date
from recrawl.discover.sitemaps import Entry, parse

URL = "https://www.example.org/maps/sitemap.xml"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
FULL = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url>
    <image:image><image:loc>https://www.example.org/picture.png</image:loc></image:image>
    <loc> https://www.example.org/a?x=1&amp;y=2
    </loc><lastmod>2024-03-01</lastmod><changefreq>Daily</changefreq><priority>0.8</priority>
  </url>
  <url><loc>https://www.example.org/b</loc></url>
</urlset>""".encode()
TWO = ["https://www.example.org/a?x=1&y=2", "https://www.example.org/b"]


def urls(body: bytes | str, **limits: int) -> list[str]:
    return [entry.url for entry in parse(body.encode() if isinstance(body, str) else body, URL, **limits).entries]


def test_a_sitemap() -> None:
    sitemap = parse(FULL, URL)
    assert sitemap.kind == "urls"
    assert sitemap.problem == ""
    march = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    assert sitemap.entries == (Entry(TWO[0], march, "daily", 0.8), Entry(TWO[1], None, "", None))


def test_an_index() -> None:
    body = f"<sitemapindex {NS}><sitemap><loc>/one.xml</loc><lastmod>2024</lastmod></sitemap></sitemapindex>"
    sitemap = parse(body.encode(), URL)
    assert sitemap.kind == "index"
    assert [entry.url for entry in sitemap.entries] == ["https://www.example.org/one.xml"]
    assert sitemap.entries[0].lastmod == 1_704_067_200.0


def test_the_entries_decide_when_the_root_is_wrong() -> None:
    assert parse(b"<urlset><sitemap><loc>/s.xml</loc></sitemap></urlset>", URL).kind == "index"
    assert parse(b"<sitemapindex><url><loc>/a</loc></url></sitemapindex>", URL).kind == "urls"


def packed(data: bytes) -> bytes:
    """The data in gzip, without the time: these bytes are parts of the names of tests, which all workers must share."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "body",
    [
        FULL,
        b"\xef\xbb\xbf" + FULL,
        b"\n \r\n" + FULL,
        FULL.decode().encode("utf-16"),
        FULL.decode().encode("utf-16-be"),
        FULL.decode().encode("utf-16-le"),
        FULL.replace(NS.encode(), b""),
        FULL.replace(b"sitemaps.org/schemas/sitemap/0.9", b"google.com/schemas/sitemap/0.84"),
        FULL.replace(NS.encode(), b"").replace(b"<url>", b"<s:url>").replace(b"</url>", b"</s:url>"),
        FULL.replace(b"UTF-8", b"UTF-16"),
        FULL.replace(b"UTF-8", b"klingon"),
        b"<br />\n<b>Warning</b>: mysql gone in /srv/x.php\n" + FULL,
        b"<!-- made by hand -->" + FULL,
        FULL.replace(b"<urlset", b"<URLSET", 1).replace(b"</urlset", b"</URLSET"),
        FULL.replace(b"&amp;", b"&"),
        FULL.replace(b" https://www.example.org/a?x=1&amp;y=2", b"<![CDATA[https://www.example.org/a?x=1&y=2]]>"),
        FULL.replace(b"</lastmod>", b"\x00\x0b</lastmod>"),
        FULL[: -len("</url>\n</urlset>")],
        FULL + b"<script>tracker()</script>",
        FULL.replace(b"</priority>", b""),
        packed(FULL),
        packed(FULL[:100]) + packed(FULL[100:]),
        packed(FULL) + b"\0" * 512,
        packed(FULL)[:-9],
    ],
)
def test_forms_of_the_same_sitemap(body: bytes) -> None:
    assert urls(body) == TWO


def test_missing_end_tags_lose_no_entry() -> None:
    body = "<urlset>" + "".join(f"<url><loc>/{i}</url>" for i in range(100)) + "</urlset>"
    assert urls(body) == [f"https://www.example.org/{i}" for i in range(100)]
    assert parse(body.encode(), URL).problem == "broken XML"


def test_other_encodings_count_when_declared() -> None:
    body = "<?xml version='1.0' encoding='windows-1252'?><urlset><url><loc>/é</loc></url></urlset>"
    assert urls(body.encode("cp1252")) == ["https://www.example.org/é"]
    assert urls(body.encode()) == ["https://www.example.org/é"]
    undeclared = body.replace(" encoding='windows-1252'", "").encode("cp1252")
    assert urls(undeclared) == ["https://www.example.org/\ufffd"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/x", "https://www.example.org/x"),
        ("x", "https://www.example.org/maps/x"),
        ("../x", "https://www.example.org/x"),
        ("//other.example/x", "https://other.example/x"),
        ("HTTP://other.example/x", "HTTP://other.example/x"),
        ("https://www.exam\n ple.org/x", "https://www.example.org/x"),
        ("//[", None),
        ("javascript:alert(1)", None),
        ("mailto:a@b.example", None),
        ("file:///etc/passwd", None),
        ("http://", None),
        ("", None),
        ("/" + "x" * 10_000, None),
    ],
)
def test_addresses(place: str, expected: str | None) -> None:
    assert urls(f"<urlset><url><loc>{place}</loc></url></urlset>") == ([expected] if expected else [])


def test_plain_text() -> None:
    body = b"\xef\xbb\xbfhttps://a.example/1\r\n\r\n  http://a.example/2  \nno address\n"
    body += b"ftp://a.example/\nhttp://a b\nx http://a.example/4\nhttp://a.example/" + b"x" * 9000
    assert urls(body) == ["https://a.example/1", "http://a.example/2"]
    assert urls(gzip.compress(body)) == ["https://a.example/1", "http://a.example/2"]
    assert parse(body, URL).problem == ""


def test_feeds_as_sitemaps() -> None:
    rss = """<rss version="2.0"><channel><link>/</link><image><url>/logo.png</url><link>/</link></image>
    <item><title>A</title><image><url>/pic.png</url></image><link>/a</link>
      <pubDate>Thu, 01 Jan 2024 10:00:00 +0100</pubDate></item>
    <item><guid>/b</guid></item><item><guid isPermaLink="false">x</guid></item></channel></rss>"""
    assert [(entry.url, entry.lastmod) for entry in parse(rss.encode(), URL).entries] == [
        ("https://www.example.org/a", 1_704_099_600.0),
        ("https://www.example.org/b", None),
    ]
    atom = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/feed"/><updated>2024</updated>
    <entry><link rel="edit" href="/e"/><link href="/a"/><updated>2024-01-01T09:00Z</updated></entry></feed>"""
    assert parse(atom.encode(), URL).entries == (Entry("https://www.example.org/a", 1_704_099_600.0, "", None),)
    rdf = """<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/" xmlns:dc="d">
    <item rdf:about="x"><link>/a</link><dc:date>2024-01-01T09:00Z</dc:date></item></rdf:RDF>"""
    assert parse(rdf.encode(), URL).entries == (Entry("https://www.example.org/a", 1_704_099_600.0, "", None),)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<!DOCTYPE html><html><body><urlset></body></html>", "an HTML page, not a sitemap"),
        (b"<html lang=en><a href='http://a.example/'>", "an HTML page, not a sitemap"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not a sitemap"),
        (b'{"urls": []}', "not a sitemap"),
        (b"<urlset></urlset>", "no entries"),
        (b"<urlset><url><loc>/a", "broken XML"),
        (b"\x1f\x8b junk", "broken gzip"),
        (packed(FULL)[:-9], "gzip cut off"),
        (packed(packed(FULL)), "gzip inside gzip"),
    ],
)
def test_problems_are_named(body: bytes, problem: str) -> None:
    sitemap = parse(body, URL)
    # What is cut off may be broken XML as well; then either will do.
    assert sitemap.problem in (problem, "broken XML")


def test_limits() -> None:
    body = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % i for i in range(100)) + b"</urlset>"
    assert len(urls(body, max_entries=10)) == 10
    assert parse(body, URL, max_entries=10).problem == "more than 10 entries"
    assert parse(body, URL, max_entries=100).problem == ""
    assert 10 < len(urls(body, max_bytes=1000)) < 100
    assert 10 < len(urls(gzip.compress(body), max_bytes=1000)) < 100
    text = b"http://a.example/\n" * 50
    assert len(urls(text, max_entries=7)) == 7
    assert parse(text, URL, max_entries=7).problem == "more than 7 entries"


def test_the_date_of_a_news_article_counts_without_a_lastmod() -> None:
    news = "<news:news><news:publication_date>{}</news:publication_date><news:title>t</news:title></news:news>"
    body = f"""<urlset {NS} xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
        <url><loc>/a</loc>{news.format("2024-03-01")}</url>
        <url><loc>/b</loc>{news.format("2024-03-01")}<lastmod>2025-01-01</lastmod></url>
        <url><loc>/c</loc><video><publication_date>2024-03-01</publication_date></video></url></urlset>"""
    dates = [entry.lastmod for entry in parse(body.encode(), URL).entries]
    assert dates == [parse_date("2024-03-01"), parse_date("2025-01-01"), None]


def test_a_sitemap_without_loc() -> None:
    """The URL may stand in the element itself; without any, the list is not complete."""
    bare = parse(b"<sitemapindex><sitemap> /one.xml </sitemap><sitemap><loc>/two.xml</loc></sitemap>", URL)
    assert [entry.url[-8:] for entry in bare.entries] == ["/one.xml", "/two.xml"]
    for nameless in (b"<sitemap/>", b"<sitemap><lastmod>2024</lastmod></sitemap>", b"<sitemap><loc/></sitemap>"):
        body = b"<sitemapindex>%s<sitemap><loc>/two.xml</loc></sitemap></sitemapindex>" % nameless
        index = parse(body, URL)
        assert (index.kind, len(index.entries), index.problem) == ("index", 1, "a <sitemap> without <loc>")


def test_a_json_feed() -> None:
    items = [
        {"id": "1", "url": "/a", "date_published": "2024-03-01T00:00:00Z"},
        {"id": "2", "url": "https://www.example.org/b", "date_published": "2024", "date_modified": "2025-01-01"},
        {"id": "https://www.example.org/c", "date_modified": "soon"},
        {"id": "no link"},
        {"id": 5, "url": ["/x"], "date_published": 7},
        "not an item",
    ]
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}
    found = parse(json.dumps(feed).encode(), URL)
    assert [entry.url for entry in found.entries] == [f"https://www.example.org/{name}" for name in "abc"]
    assert [entry.lastmod for entry in found.entries] == [parse_date("2024-03-01"), parse_date("2025-01-01"), None]
    assert (found.kind, found.problem, found.bad_dates) == ("urls", "", 1)
    assert parse(json.dumps(feed).encode(), URL, max_entries=2).problem == "more than 2 entries"


@pytest.mark.parametrize(
    "body", [b"{", b"{}", b'{"items": [{"url": "/a"}]}', b'{"a":' * 100_000, b'{"version": 1e999}']
)
def test_other_json_is_no_feed(body: bytes) -> None:
    assert parse(body, URL).problem == "not a sitemap"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", "2024-01-01T00:00:00+00:00"),
        ("2024-03", "2024-03-01T00:00:00+00:00"),
        ("2024-3-1", "2024-03-01T00:00:00+00:00"),
        ("2024-03-01", "2024-03-01T00:00:00+00:00"),
        ("2024-03-01T12:30Z", "2024-03-01T12:30:00+00:00"),
        ("2024-03-01T12:30:15Z", "2024-03-01T12:30:15+00:00"),
        ("2024-03-01t12:30:15.123456789z", "2024-03-01T12:30:15+00:00"),
        ("2024-03-01T12:30:15+01:00", "2024-03-01T11:30:15+00:00"),
        ("2024-03-01T12:30-0530", "2024-03-01T18:00:00+00:00"),
        ("2024-03-01T12:30+02", "2024-03-01T10:30:00+00:00"),
        ("2024-03-01 12:30:15 UTC", "2024-03-01T12:30:15+00:00"),
        ("2024-03-01T12:30:15", "2024-03-01T12:30:15+00:00"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        (" 2024-03-01\n", "2024-03-01T00:00:00+00:00"),
        ("Fri, 01 Mar 2024 12:30:15 +0100", "2024-03-01T11:30:15+00:00"),
        ("Fri, 01 Mar 2024 12:30:15 -0000", "2024-03-01T12:30:15+00:00"),
    ],
)
def test_dates(text: str, expected: str) -> None:
    assert parse_date(text) == datetime.fromisoformat(expected).timestamp()


@pytest.mark.parametrize(
    "text",
    ["", "now", "0000-00-00", "2024-13-01", "2024-02-30", "2024-03-01T25:00Z", "2024-03-01T12:61Z",
     "9999-12-31", "1024", "0001-01-01T00:00:00Z", "2024-03-01T12:30+99:00", "1709251200",
     "2024-03-01T12:30:15Z or so", "24-03-01", "٢٠٢٤", "2024-" * 100],
)  # fmt: skip
def test_nonsense_dates_are_none(text: str) -> None:
    assert parse_date(text) is None


@given(st.integers(86400, 4_102_000_000), st.integers(-14 * 60, 14 * 60))
def test_every_date_comes_back(seconds: int, offset: int) -> None:
    date = datetime.fromtimestamp(seconds, UTC)
    sign, minutes = "-" if offset < 0 else "+", abs(offset)
    text = f"{date:%Y-%m-%dT%H:%M:%S}{sign}{minutes // 60:02}:{minutes % 60:02}"
    assert parse_date(text) == datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5", 0.5),
        ("0,5", 0.5),
        (" 1 ", 1.0),
        ("0", 0.0),
        ("2", None),
        ("-1", None),
        ("nan", None),
        ("high", None),
    ],
)
def test_priority(text: str, expected: float | None) -> None:
    body = f"<urlset><url><loc>/a</loc><priority>{text}</priority><changefreq>often</changefreq></url></urlset>"
    assert parse(body.encode(), URL).entries == (Entry("https://www.example.org/a", None, "", expected),)


XXE = b"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">
<!ENTITY % p SYSTEM "http://127.0.0.1:1/evil.dtd"> %p;]>
<urlset><url><loc>http://x.example/&x;</loc></url><url><loc>/b</loc></url></urlset>"""
LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY l0 "lol">'
    + b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]><urlset><url><loc>http://x.example/&l11;</loc></url></urlset>"
)


def test_entities_are_never_expanded() -> None:
    assert urls(XXE) == ["http://x.example/&x;", "https://www.example.org/b"]
    assert urls(LAUGHS) == ["http://x.example/&l11;"]


def bomb(size: int) -> bytes:
    squeeze = zlib.compressobj(9, wbits=31)
    block = bytes(1 << 20)
    return b"".join(squeeze.compress(block) for _ in range(size >> 20)) + squeeze.flush()


def test_a_gzip_bomb_is_cut_while_it_inflates() -> None:
    packed = bomb(64 << 20)
    tracemalloc.start()
    try:
        sitemap = parse(packed, URL, max_bytes=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sitemap.problem == "cut at 1048576 bytes"
    assert peak < 8 << 20


MEGA = 1_000_000
HOSTILE = {
    "unclosed CDATA": b"<urlset>" + b"<![CDATA[" * MEGA,
    "brackets in CDATA": b"<urlset><![CDATA[" + b"]" * 8 * MEGA,
    "ampersands": b"<urlset>" + b"&" * 8 * MEGA,
    "elements": b"<urlset>" + b"<a/>" * 2 * MEGA,
    "empty entries": b"<urlset>" + b"<url/>" * MEGA,
    "entries in entries": b"<urlset>" + b"<url>" * MEGA,
    "end tags": b"<urlset>" + b"</url>" * MEGA,
    "attributes": b"<urlset " + b"".join(b"a%d='' " % i for i in range(300_000)),
    "comment": b"<urlset><!--" + b"--" * 4 * MEGA,
    "text": b"<urlset><url><loc>" + b"a " * 4 * MEGA,
    "less-than": b"<" * 8 * MEGA,
    "doctypes": b"<!doctype" + b" " * 60_000 + b"<!doctype" * MEGA,
    "zeros": b"\0" * 8 * MEGA,
    "bad UTF-8": b"<urlset>" + b"\xff" * 8 * MEGA,
    "gzip members": gzip.compress(b"") * 200_000,
    "lines": b"\n" * 8 * MEGA,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_take_linear_time(name: str) -> None:
    before = time.process_time()
    assert parse(HOSTILE[name], URL).entries == ()
    # About 8 MB each: half a second is usual, quadratic time would be minutes.
    assert time.process_time() - before < 8.0


@given(st.binary(max_size=400))
def test_any_bytes_give_a_value(body: bytes) -> None:
    assert parse(body, URL).kind in ("urls", "index")
    assert parse(b"\x1f\x8b\x08\x00" + body, URL).entries == ()


@given(st.data())
def test_any_damage_gives_a_value(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FULL)))
    junk = data.draw(
        st.one_of(st.binary(max_size=8), st.sampled_from([b"<", b"]]>", b"<!--", b"<![CDATA[", b"</url>", b"&"]))
    )
    cut = data.draw(st.integers(0, 20))
    assert len(parse(FULL[:at] + junk + FULL[at + cut :], URL).entries) <= 3


@given(st.lists(st.tuples(st.text("abc/&<>'\"?=%é ]", max_size=20), st.booleans()), max_size=20))
def test_what_is_written_is_read_back(paths: list[tuple[str, bool]]) -> None:
    def escape(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def field(text: str, cdata: bool) -> str:
        return f"<![CDATA[{text}]]>" if cdata and "]]>" not in text else escape(text)

    places = [f"http://x.example/{text}" for text, _ in paths]
    body = "".join(f"<url><loc>{field(p, c)}</loc></url>" for p, (_, c) in zip(places, paths, strict=True))
    assert urls(f"<urlset>{body}</urlset>") == ["".join(place.split()) for place in places]
