"""`recrawl noise` from the server to every surface: what it proposes hides no news of the page or of its site."""

from __future__ import annotations

import pytest

import recrawl
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Repo, Site

TEXT = "<p>" + "The story of the day goes on and on without an end. " * 12


def releases(number: int) -> bytes:
    return f"<title>Downloads</title>{TEXT}<h2>Latest release: 4.{number}.0</h2>".encode()


def counter(number: int) -> bytes:
    return f"<title>Ticker</title>{TEXT}<p>{number * 731} visitors, in all {number * 17}".encode()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A page of releases and a page with a counter, each of which changed at every visit."""
    repo = Repo.create(tmp_path_factory.mktemp("noise") / "repo", change="text")
    with Site({"/": b'<a href="/releases">r</a> <a href="/counter">c</a>'}) as web:
        for number in range(1, 8):
            web["/releases"], web["/counter"] = releases(number), counter(number)
            repo.crawl(web.url("/")) if number == 1 else repo.cycle()
            repo.later(days=1)
    return repo


def test_release_numbers_are_no_noise(watched: Repo) -> None:
    with recrawl.open(watched.folder) as repo:
        urls = {page.url.rsplit("/", 1)[1]: page.url for page in repo.pages()}
    assert watched.json("noise", urls["releases"]) == []
    rows = watched.json("noise")
    assert r"\d+" not in {row["value"] for row in rows}
    assert all(row["news"] > 0 and row["news_hidden"] == 0 for row in rows)


def test_all_surfaces_propose_the_same(watched: Repo) -> None:
    with recrawl.open(watched.folder) as repo:
        rows = [proposal.as_dict() for proposal in repo.noise_proposals()]
    assert watched.json("noise") == rows
    with Service(watched.folder, ServiceConfig(schedule=False)) as service:
        assert Asker(service).get("/api/v1/noise").json["items"] == rows
