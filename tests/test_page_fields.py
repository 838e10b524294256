"""What pages state about themselves: language, description, picture and dates, from the head, OpenGraph and JSON-LD."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.parsing.document import parse
from recrawl.compare.tree.stated import PageFields, page_fields
from recrawl.serve.context import ServiceLimits
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.test_serve_api import API, Idle
from tests.world import Reply, Repo, Site

OPEN_GRAPH = """<html lang="en-GB"><head><title>Walruses</title>
<meta property="og:description" content="All about &lt;b&gt;walruses">
<meta name="description" content="not this one"><meta property="og:image" content="/walrus.jpg">
<meta property="article:published_time" content="2024-05-01T10:00:00Z">
<meta property="article:modified_time" content="2024-06-01T10:00:00+02:00"></head><body>text</body></html>"""
LINKED_DATA = {
    "@context": "https://schema.org",
    "@graph": [
        {"@type": "WebSite", "name": "Zoo"},
        {
            "@type": "NewsArticle",
            "headline": "Okapis",
            "description": "All about okapis",
            "image": [{"@type": "ImageObject", "url": "https://img.example/okapi.png"}],
            "datePublished": "2023-01-02",
            "dateModified": "2023-02-03",
            "inLanguage": "fr_FR",
        },
    ],
}


def linked(data: object) -> str:
    return f'<body><script type="application/ld+json">{json.dumps(data)}</script><p>text'


def fields(html: str, header: str = "") -> PageFields:
    return page_fields(parse(html), header)


def test_json_ld_gives_what_the_head_does_not() -> None:
    found = fields(linked(LINKED_DATA))
    assert found == PageFields(
        "fr-fr", "All about okapis", "https://img.example/okapi.png", "2023-01-02", "2023-02-03", "Okapis"
    )


@pytest.mark.parametrize(
    ("html", "header", "language"),
    [
        ("<html lang=de><meta property=og:locale content=en_US>", "fr", "de"),
        ("<meta property=og:locale content=en_US>", "fr", "fr"),
        ("<meta property=og:locale content=en_US>", "", "en-us"),
        ("<html lang='not a language'>", "", ""),
        ("<p>Ceci n'est pas", "de, en", "de"),
    ],
)
def test_language_by_source(html: str, header: str, language: str) -> None:
    assert fields(html, header).language == language


@given(st.recursive(st.none() | st.text() | st.integers(), lambda it: st.lists(it) | st.dictionaries(
    st.sampled_from(["@graph", "image", "headline", "description", "url", "inLanguage", "x"]), it)))  # fmt: skip
def test_any_json_ld_gives_texts(data: object) -> None:
    found = fields(linked(data).replace("</", "<\\/"))
    assert all(len(value) <= 2000 for value in found)


def test_damaged_and_huge_json_ld_is_left_out() -> None:
    assert fields(linked(0).replace("0<", "{<")) == PageFields()
    assert fields(linked("x" * 300_000)) == PageFields()
    assert fields(linked(0).replace("0<", "[" * 90_000 + "<")) == PageFields()


def test_fields_are_stored_with_the_version_and_shown(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": Reply(OPEN_GRAPH.encode())})
    url = web.url()
    repo.crawl(url)
    web["/"] = Reply(OPEN_GRAPH.replace("All about", "Much about").replace("text<", "other text<").encode())
    repo.later(days=1)
    repo.cycle()
    shown = repo.json("show", url)
    assert {name: shown[name] for name in ("language", "description", "image", "published", "updated")} == {
        "language": "en-gb",
        "description": "Much about <b>walruses",
        "image": web.url("/walrus.jpg"),
        "published": "2024-05-01T10:00:00.000+00:00",
        "updated": "2024-06-01T08:00:00.000+00:00",
    }
    assert repo.json("show", url, "--at", "1")["description"] == "All about <b>walruses"
    limits = ServiceLimits(per_minute=1e9, burst=1e9, streams=2)
    with Service(repo.folder, ServiceConfig(schedule=False, runner=Idle(), limits=limits)) as service:
        ask = Asker(service)
        versions = ask.get(f"{API}/pages/0/versions").json["items"]
        assert [row["language"] for row in versions] == ["en-gb", "en-gb"]
        html = ask.get("/pages/0").text
    assert "Much about &lt;b&gt;walruses" in html
    assert "2024-05-01" in html


def test_a_page_without_a_title_gets_the_stated_one(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": Reply(linked(LINKED_DATA).encode())})
    repo.crawl(web.url())
    assert repo.json("show", web.url())["title"] == "Okapis"
