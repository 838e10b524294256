"""The parsers that read the web, each with well-formed documents and with words that parsers trip over."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.compare.parsing.encoding import decode
from recrawl.compare.tree.documents import parse_html
from recrawl.compare.tree.renderers import text_lines
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import PageReader
from recrawl.discover import sitemaps
from recrawl.discover.dates import parse_date
from recrawl.discover.page_headers import header_links
from recrawl.discover.redirect_habits import kind_of
from recrawl.discover.scope import Scope
from recrawl.discover.traps import TrapGuard, TrapLimits
from recrawl.discover.urls import UrlRules, canonical, directory, key, origin
from recrawl.errors import BadArchive, Unreadable
from recrawl.fetch.http import parse_head, plain_body
from recrawl.fetch.lanes import parse_retry_after
from recrawl.fetch.robots import Robots
from recrawl.lab.formats.version_rows import Taken
from recrawl.lab.formats.warc_files import Captures, _records, html_only
from recrawl.record import warc

_URL = "https://www.example.org/a/b.html?q=1"
_NOW = 1_700_000_000.0


@dataclass(frozen=True)
class Target:
    """A parser with what its inputs are made of."""

    name: str
    read: Callable[[bytes], object]
    documents: list[bytes]
    words: list[bytes]
    allowed: tuple[type[Exception], ...] = field(default=())
    """Exceptions that it is documented to raise."""


# -- HTML -------------------------------------------------------------------------------------------------

_PAGE = """<!doctype html><html lang=en><head><meta charset=utf-8><title>A page &amp; more</title>
<meta name=robots content="noindex, nofollow"><meta http-equiv=refresh content="5; url=/next">
<meta name="change-frequency-based" content="PERIODIC=7"><base href="/base/"><link rel=canonical href="?x=1">
<link rel="alternate" type="application/rss+xml" href="/feed"><script>if (a < b) document.write("<a href=x>")</script>
<style>p { color: red }</style></head><body><h1>Grüße 日本語</h1><p>Some <b>bold <i>and</b> wrong</i> text.
<a href="/a">a</a> <a href="../b#c">b</a> <a href="http://other.example/%7Ex?y=1&amp;z=2">c</a><!-- comment -->
<table><tr><td>1<td>2<tr><th>3</table><ul><li>x<li>y</ul><pre>
 keep  this </pre><textarea><p>not</textarea><svg><path d="M0 0"/><title>t</title></svg><math><mi>x</mi></math>
<iframe src=/frame></iframe><img alt="picture" src=x.png><select><option selected>1<option>2</select>
<template><p>inert</template><noscript>no</noscript><form><input name=a value=b><button>go</button></form></body>
</html>"""
_FRAMES = b"<html><frameset cols=50%><frame src=/left><frame src=/right><noframes>none</noframes></frameset></html>"
_HTML_WORDS = """
    < > </ /> <! <? <!-- --> --!> <![CDATA[ ]]> & &# &#x &#0; &#x110000; &amp &nbsp; &notin; " ' = / \\ \0 \x0b \x7f
    <b> <a> <a\x20href= <p> <table> <td> <tr> <svg> <math> <mi> <select> <option> <template> </template> <script>
    </script> <style> <title> <textarea> <plaintext> <noscript> <frameset> <meta\x20charset= <base\x20href= <html>
    <body> <head> </html> </body> <i\x20a=1> <font\x20b=2> <nobr> <button> <form> <image> <isindex> <foreignObject>
    <annotation-xml> é 日 \ufeff
"""

# -- other formats ------------------------------------------------------------------------------------------

_ROBOTS = b"""# rules
User-agent: *
Disallow: /private/*.html$
Allow: /private/open
Crawl-delay: 2.5
Request-rate: 1/10s

User-agent: recrawl
User-agent: other/1.0
Disallow: /a%20b|c[1](2)
Sitemap: https://www.example.org/sitemap.xml
"""
_SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
<url><loc>https://www.example.org/a?x=1&amp;y=2</loc><lastmod>2024-03-01T10:00:00+01:00</lastmod>
<changefreq>daily</changefreq><priority>0.8</priority></url>
<url><loc><![CDATA[/b]]></loc><news:news><news:publication_date>2024-03-01</news:publication_date></news:news></url>
</urlset>"""
_INDEX = b"<sitemapindex><sitemap><loc>/one.xml.gz</loc></sitemap><sitemap>/two.xml</sitemap></sitemapindex>"
_RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>/</link>
<item><title>A</title><link>https://www.example.org/a</link><guid isPermaLink="false">7</guid>
<pubDate>Fri, 01 Mar 2024 10:00:00 +0100</pubDate></item><item><guid>/b</guid></item></channel></rss>"""
_ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><updated>2024-03-01T10:00:00Z</updated>
<entry><link rel="self" href="/x"/><link href="/a"/><updated>2024-03-01</updated></entry></feed>"""
_JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [{"id": "1", "url": "/a", "date_modified": "2024-03-01"}, {"id": "https://www.example.org/b"}],
    }
).encode()
_XML_WORDS = [
    *b'< > </ /> <!-- --> <![CDATA[ ]]> & &amp; &#0; &a; <? ?> <!DOCTYPE <!ENTITY % { } [ ] " \\u \\ud800'.split(),
    *b"<url> <loc> </loc> <urlset> <sitemap> <item> <entry> <link> <guid> <rss> <feed> <lastmod> <news> xmlns=".split(),
    *b"- , : 1e999 \0 \xff\xfe \xfe\xff \xef\xbb\xbf \x1f\x8b\x08 https://a.example/ 99999-99-99".split(),
    "é日".encode(),
    b"\n",
]
_HEAD = b"""HTTP/1.1 200 OK\r\nContent-Type: text/html; charset="utf-8"\r\nContent-Encoding: gzip\r\nETag: W/"x"\r
Last-Modified: Fri, 01 Mar 2024 10:00:00 GMT\r\nRetry-After: 120\r\nX-Robots-Tag: googlebot: noindex, nofollow\r
X-Robots-Tag: unavailable_after: Sat, 25 Jun 2050 15:00:00 GMT\r\nRefresh: 5; url='/next'\r\nLocation: /b?c#d\r
Date: Friday, 01-Mar-24 10:00:00 GMT\r\nSet-Cookie: a=b; c\r\n\r\n"""
_HEADER_WORDS = [
    *b": ; , = \" ' \\ / \0 \x7f \xff HTTP/1.1 HTTP/ 103 999 -1 1e9 GMT +9999 charset= url= noindex none".split(),
    *b"recrawl: *: unavailable_after: 99999999999999999999 Feb Z".split(),
    *(b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\r\n ", b"\t", "\u0661".encode()),
]
_URLS = [
    b"https://www.example.org/a/b?x=1&y=2#z",
    b"HTTP://user:pw@Example.org.:80/a/../b/%7e%C3%A4?utm_source=x&sid=0cc175b9c0f1b6a831c399e269772661",
    b"//[2001:db8::1]:8080/x;jsessionid=1/(S(abc))/y",
    "https://Bücher.example/ä b|c[d](e)'f?g={h}".encode(),
    b"../c/./d;e=f?g#h",
    b"http://0x7f.1/calendar/2031/05/?date=2031-05-12",
]
_URL_WORDS = [
    *b": / // \\ . .. %2e %2E%2e ? & = # @ [ ] | ( ) ' ; % %4 %00 %25 %ff xn-- 80 65536 0x 127.1 ::1 \0 ~".split(),
    *b"\xff \xed\xa0\x80 http: javascript: data:".split(),
    *"Ä ß 。 ① \u200c \u00ad \ufeff".encode().split(),
    *(b" ", b"\n", b"\t"),
]


def _response(body: bytes, *headers: str) -> bytes:
    fields = tuple((name, value) for name, _, value in (line.partition(": ") for line in headers))
    record = warc.response(_URL, _NOW, "192.0.2.1", 200, fields, body, b"\0" * 20, b"GET / HTTP/1.1\r\n\r\n")
    return warc.warcinfo("a.warc.gz", _NOW, (("software", "recrawl"),)) + record


_WARC = _response(_PAGE.encode(), "Content-Type: text/html", "Content-Encoding: gzip")
_ORIGINAL = warc.Original(_URL, _NOW, b"\0" * 20)
_REVISIT = warc.revisit(_URL, _NOW + 9, "192.0.2.1", _ORIGINAL, 200, (("Content-Type", "text/html"),))
_WARC_WORDS = [
    *b"WARC/1.0 WARC/1.1 WARC-Type: response revisit Content-Length: -1 99999999999 0 Transfer-Encoding:".split(),
    *b"chunked br WARC-Date: WARC-Target-URI: 2024-02-30T00:00:00Z sha1: <urn:uuid: HTTP/1.1 404 metadata".split(),
    *b"WARC-Payload-Digest: sha1: dns:example.org \0 \x1f\x8b\x08\0 \xff".split(),
    *(b"\r\n", b"\r\n\r\n"),
]

# -- what is read -------------------------------------------------------------------------------------------

_PAGES = PageReader(ReaderConfig(UrlRules()))
_GUARD = TrapGuard(TrapLimits(), now=_NOW)
_SCOPE = Scope("https://www.example.org/", depth=3, include=("/a*",), exclude=("*/b/*",))


def _read_html(data: bytes) -> None:
    kinds = ("text/html", "text/html; charset=utf-8", "application/xhtml+xml; charset=windows-1252", "")
    headers = (("Content-Type", kinds[len(data) % 4]),)
    reading = _PAGES.parse(Task(0, _URL, _NOW, "", 200, headers, b"", data, b"", 0, None, None, True))
    reading.text.encode()
    text_lines(parse_html(decode(data).text).tree)


def _read_encoding(data: bytes) -> None:
    for kind in ("", "text/html; charset=shift_jis", "text/html; charset=utf-16"):
        assert "\0" not in decode(data, kind).text


def _read_robots(data: bytes) -> None:
    robots = Robots.from_answer(200, data, _NOW, agent="recrawl/1.0 (+https://a.example)")
    for url in (_URL, "https://www.example.org/private/x.html", "https://www.example.org/a%20b%7Cc"):
        robots.allows(url)
    assert robots.delay >= 0 or robots.delay != robots.delay


def _read_sitemap(data: bytes) -> None:
    for entry in sitemaps.parse(data, _URL, max_bytes=1_000_000, max_entries=1000).entries:
        canonical(entry.url)


def _read_headers(data: bytes) -> None:
    _, headers, fields = parse_head(data.splitlines(keepends=True))
    header_links(headers)
    for value in fields.values():
        parse_date(value)
        parse_retry_after(value, _NOW)
        canonical(value, _URL)
        plain_body(data, value, 1_000_000)
    decode(b"\xe9", fields.get("content-type", ""))


def _read_url(data: bytes) -> None:
    url = data.decode("utf-8", "surrogateescape")
    for clean in (canonical(url), canonical(url, _URL)):
        if clean is not None:
            assert canonical(clean) == clean, clean
            assert clean.startswith(origin(clean))
            assert directory(clean).startswith(origin(clean))
            key(clean)
            _SCOPE.refuses(clean, 1)
            _GUARD.admits(clean)
            kind_of(clean, clean + "/")


def _read_warc(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=_MEMORY) as file, io.BytesIO() as spool:
        file.write(data)
        file.flush()
        captures = Captures(spool, Taken(), html_only, 1_000_000)
        for record in _records(Path(file.name), Taken()):
            captures.note(record)


_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_KOI8 = _PAGE.replace("utf-8", "koi8-r").encode("koi8-r", "replace")
_PAGES_OF = [_PAGE.encode(), _FRAMES, _PAGE.encode("utf-16"), _KOI8]
_HTML = [word.encode("utf-8", "surrogatepass") for word in _HTML_WORDS.split()]
_LABELS = [b"charset=", b"http-equiv=content-type", b"\xff", b"\x1b$B"]
_LISTS = [_SITEMAP, _INDEX, gzip.compress(_SITEMAP), b"https://a.example/x\n" * 9]
_WARCS = [_WARC, gzip.decompress(_WARC), gzip.decompress(_REVISIT + _WARC), _WARC + _REVISIT]
_ALL = (
    Target("html", _read_html, _PAGES_OF, _HTML, (Unreadable,)),
    Target("encoding", _read_encoding, _PAGES_OF, _HTML + _LABELS),
    Target("robots", _read_robots, [_ROBOTS, _ROBOTS.replace(b"\n", b"\r")], _ROBOTS.split()),
    Target("sitemap", _read_sitemap, _LISTS, _XML_WORDS),
    Target("feed", _read_sitemap, [_RSS, _ATOM, _JSON], _XML_WORDS),
    Target("headers", _read_headers, [_HEAD], _HEADER_WORDS),
    Target("url", _read_url, _URLS, _URL_WORDS),
    Target("warc", _read_warc, _WARCS, _WARC_WORDS, (BadArchive,)),
)
TARGETS = {target.name: target for target in _ALL}
"""Target by name."""
