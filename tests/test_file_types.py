"""Pages that are not HTML: Markdown, plain text, JSON, XML, feeds and PDF; XPath and JMESPath filters."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing import file_types
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.file_types import hypertext, lines_of
from recrawl.compare.parsing.text import visible
from recrawl.crawl.visits.stored_text import read_text
from recrawl.errors import UsageError
from tests.world import Reply, Repo, Site, page

ATOM = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>The diary</title>
<entry><title>Walrus day</title><link href="/walrus"/><summary>A walrus &amp; a fish</summary></entry></feed>"""
RSS = b"<rss version='2.0'><channel><title>News</title><item><link>/one</link></item></channel></rss>"
BOMB = b'<!DOCTYPE a [<!ENTITY x "boom">]><a>&x;</a>'
FEED = {"version": "https://jsonfeed.org/version/1.1", "title": "J", "items": [{"id": "1", "url": "/from-json"}]}


def pdf(*lines: str, title: str = "") -> bytes:
    """A PDF of one page with these lines."""
    shown = " ".join(f"1 0 0 1 72 {720 - 14 * n} Tm ({line}) Tj" for n, line in enumerate(lines))
    stream = f"BT /F1 12 Tf {shown} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Title({title})>>".encode(),
    ]
    body, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 7\n0000000000 65535 f \n%strailer<</Size 7/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF"
    return body + end % (table, len(body))


def words(body: bytes, kind: str, noise: Noise | None = None) -> str:
    return read_text(body, (("Content-Type", kind),), noise or Noise())


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain", b"plain  words\nof text", "plain words of text"),
        ("text/markdown", b"# News\n\nSome *strong* words, [more](/m)", "News Some strong words, more"),
        ("application/json", b'{"t": "T", "list": [{"n": 1.5}, null]}', "t: T list.n: 1.5 list: null"),
        ("application/atom+xml", ATOM, "The diary Walrus day A walrus & a fish"),
        ("application/xml", b"<a>broken <b>xml", "<a>broken <b>xml"),
        ("application/xml", BOMB, BOMB.decode()),
        ("application/json", b"{not json", "{not json"),
        ("application/pdf", pdf("walrus facts", "and figures"), "walrus facts and figures"),
        ("application/pdf", b"%PDF-1.4 broken", ""),
        ("image/png", b"\x89PNG", ""),
    ],
)  # fmt: skip
def test_text_by_type(kind: str, body: bytes, text: str) -> None:
    assert words(body, kind) == text


def test_titles() -> None:
    assert hypertext(b"Intro\n\n# The *news*\n", "text/markdown", "text/markdown").text.startswith("<title>The news<")  # type: ignore[union-attr]
    found = [lines_of(*it) for it in (
        (ATOM, "application/atom+xml", "application/atom+xml"),
        (b'{"title": "J"}', "application/json", "application/json"),
        (pdf("x", title="Walrus"), "application/pdf", "application/pdf"),
    )]  # fmt: skip
    assert [it.title for it in found if it] == ["The diary", "J", "Walrus"]


def test_without_the_extra_a_pdf_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_types, "has_pdf", lambda: False)
    assert lines_of(pdf("x"), "application/pdf", "application/pdf") is None


@pytest.mark.parametrize("kind", ["application/pdf", "application/json", "application/xml", "text/markdown"])
def test_damaged_documents_never_raise(kind: str) -> None:
    chance = random.Random(1)
    good = {"application/pdf": pdf("walrus " * 20), "application/json": json.dumps(FEED).encode()}
    source = good.get(kind, ATOM)
    for _ in range(150):
        body = bytearray(source)
        for _ in range(chance.randrange(1, 12)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        words(bytes(body[: chance.randrange(len(body))]), kind)
    words(b"[" * 100_000, "application/json")
    words(b"<a>" * 100_000, "application/xml")
    words(b"> " * 20_000 + b"x", "text/markdown")


def test_pages_of_all_types_are_kept_searched_and_followed(repo: Repo, site: Callable[..., Site]) -> None:
    web = site(
        {
            "/": page("start", "/notes", "/feed", "/rss", "/data", "/paper.pdf"),
            "/notes": Reply(b"# Notes\n\nzebra [on](/deeper)", kind="text/markdown"),
            "/deeper": page("deeper than the zebra"),
            "/feed": Reply(ATOM, kind="application/atom+xml"),
            "/walrus": page("the walrus itself"),
            "/rss": Reply(RSS, kind="application/rss+xml"),
            "/one": page("number one"),
            "/data": Reply(json.dumps(FEED).encode(), kind="application/feed+json"),
            "/from-json": page("linked by JSON"),
            "/paper.pdf": Reply(pdf("okapi facts", title="On okapis"), kind="application/pdf"),
        }
    )
    kinds = ["text/*", "application/*+xml", "application/*json", "application/pdf"]
    repo.config(content_types=kinds)
    repo.crawl(web.url())
    found = {url: row["state"] for url, row in repo.pages().items()}
    assert found == {web.url(path): "live" for path in web.pages}
    assert repo.found("zebra") == {web.url("/notes"), web.url("/deeper")}
    assert repo.found("okapi") == {web.url("/paper.pdf")}
    assert {row["url"]: row["title"] for row in repo.json("search", "okapi")} == {web.url("/paper.pdf"): "On okapis"}
    repo.later(days=1)
    web["/paper.pdf"] = Reply(pdf("okapi facts", "revised", title="On okapis"), kind="application/pdf")
    web["/notes"] = Reply(b"# Notes\n\nquagga [on](/deeper)", kind="text/markdown")
    repo.cycle()
    assert repo.outcomes(web.url("/paper.pdf")) == ["new", "changed"]
    assert "+revised" in repo.run("diff", web.url("/paper.pdf")).out.replace("+ ", "+")
    assert "quagga" in repo.run("show", web.url("/notes")).out


def test_links_to_pdf_are_not_followed_by_default(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("start", "/paper.pdf"), "/paper.pdf": Reply(pdf("x"), kind="application/pdf")})
    repo.crawl(web.url())
    assert web.requests("/paper.pdf") == []


# -- filters -------------------------------------------------------------------------------------------------


def test_xpath_removes_elements_of_html_and_xml() -> None:
    html = b"<body><div id=clock>12:00</div> stays <p @click=x>and <b>this</b> too</p></body>"
    noise = Noise(("xpath://div[@id='clock']", "xpath://p/b", "xpath://nothing"))
    assert words(html, "text/html", noise) == "stays and too"
    kept = Noise(("xpath://*[local-name()='summary']",))
    assert words(ATOM, "application/atom+xml", kept) == "The diary Walrus day"


def test_jmespath_removes_values_of_json() -> None:
    data = {"items": [{"name": "a", "views": 7}, {"name": "7", "views": 7}], "views": 7, "ad": "a"}
    text = words(json.dumps(data).encode(), "application/json", Noise(("jmespath:items[].views", "jmespath:ad")))
    assert text == "items.name: a items.name: 7 views: 7"
    chosen = words(json.dumps(data).encode(), "application/json", Noise(("jmespath:items[?name=='a']",)))
    assert chosen == "items.name: 7 items.views: 7 views: 7 ad: a"


@pytest.mark.parametrize("selector", ["xpath://[", "jmespath:items[", "div["])
def test_invalid_filters_are_refused(selector: str) -> None:
    with pytest.raises(UsageError, match="invalid"):
        Noise((selector,)).check()


@given(st.lists(st.sampled_from(["p", "div", "b", "ul", "li"]), min_size=1, max_size=20))
def test_an_xpath_selects_what_the_same_css_selects(tags: list[str]) -> None:
    html = "".join(f"<{tag} class={'x' if n % 3 else 'y'}>{n} " for n, tag in enumerate(tags))
    by_css, by_path = Noise(("b.x", "li")), Noise(("xpath://b[@class='x']", "xpath://li"))
    assert visible(parse(html), by_css) == visible(parse(html), by_path)


def test_a_filter_makes_a_ticking_feed_and_json_quiet(repo: Repo, site: Callable[..., Site]) -> None:
    data = {"clock": 1, "news": "none"}
    web = site({"/": page("start", "/data"), "/data": Reply(json.dumps(data).encode(), kind="application/json")})
    rule = '[[filter]]\nselectors = ["jmespath:clock"]\n'
    settings = repo.folder / "recrawl.toml"
    settings.write_text(f"{settings.read_text()}\n{rule}")
    repo.crawl(web.url())
    for step in ({"clock": 2}, {"news": "some"}):
        data.update(step)
        web["/data"] = Reply(json.dumps(data).encode(), kind="application/json")
        repo.later(days=1)
        repo.cycle()
    assert repo.outcomes(web.url("/data")) == ["new", "unchanged", "changed"]
