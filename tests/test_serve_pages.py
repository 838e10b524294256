"""The pages of the dashboard as they are sent, without a browser: all there, nothing of them live but our own files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Repo, Site

HARM = "<script>alert(1)</script>"
ESCAPED = HARM.replace("<", "&lt;")
PAGES = (
    "/",
    "/sites",
    "/sites/0",
    "/pages/0",
    "/pages/0/read",
    "/pages/0/text",
    "/pages/0/source",
    "/pages/0/diff",
    "/pages/0/diff?view=side",
    "/pages/0/outlook",
    "/changes",
    f"/changes?path={HARM.replace('/', '%2F')}",
    "/search?q=alert",
    "/pages",
    "/start",
    "/lab",
    "/settings",
    "/settings/policy",
    "/settings/limits",
    "/settings/other",
    "/api/docs",
    "/settings/noise",
    "/alerts",
    "/settings/deliveries",
)


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A browser's questions to a service over a repository of one hostile page, which changed once."""
    folder: Path = tmp_path_factory.mktemp("pages") / "repo"
    repo = Repo.create(folder)
    with Site() as site:
        site["/"] = f"<title>{ESCAPED}</title><p>{ESCAPED} one</p><p>more</p>".encode()
        repo.crawl(site.url("/"))
        site["/"] = f"<title>{ESCAPED}</title><p>{ESCAPED} two</p><p>more</p>".encode()
        repo.later(days=1)
        repo.cycle()
    with Service(folder, ServiceConfig(schedule=False)) as service:
        yield Asker(service, accept="text/html")


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_a_page_is_live(asker: Asker, path: str) -> None:
    got = asker.get(path)
    assert got.status == 200, got.text
    assert "default-src 'none'" in got.headers["content-security-policy"]
    assert "<script>alert" not in got.text
    assert re.findall(r"<script(?! src=\"/static/)", got.text) == [], "only files of ours"
    assert re.search(r"\s(style|on\w+)=\"", got.text) is None, "no style and no handler within the page"
    assert "http-equiv" not in got.text
    assert re.findall(r"(?:src|href)=\"(?:https?:)?//", got.text) == [], "nothing from elsewhere"


def test_harm_is_there_to_be_read(asker: Asker) -> None:
    for path in ("/pages/0", "/pages/0/read", "/pages/0/text", "/pages/0/diff", "/changes", "/search?q=alert"):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in asker.get(path).text, path


def test_the_feed_is_xml_and_harmless(asker: Asker) -> None:
    got = asker.get("/changes.atom")
    assert got.headers["content-type"].startswith("application/atom+xml")
    assert got.text.count("<entry>") == 2
    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>" in got.text
    assert asker.get("/changes.atom?since=x").status == 400


@pytest.mark.parametrize(
    "path", ["/scheduler", "/lab", "/settings", "/settings/policy", "/settings/noise", "/tags", "/recheck"]
)
def test_forms_from_elsewhere_are_refused(asker: Asker, path: str) -> None:
    assert asker.post(path, {"do": "pause", "url": "https://x.example"}, form=True).status == 403


def test_files_are_marked_so_that_they_may_be_kept(asker: Asker) -> None:
    (sheet,) = re.findall(r'href="(/static/recrawl\.css\?[0-9a-f]+)"', asker.get("/").text)
    got = asker.get(sheet)
    assert got.status == 200
    assert got.headers["content-type"].startswith("text/css")
