"""The first minutes with a service: a site is added, crawled at once and seen; what cannot be read is told why."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from recrawl.repository.reports.seeds import seed_states
from recrawl.repository.repository import Repository
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker, Got
from tests.world import Reply, Repo, Site, page

PATIENCE = 120.0


@pytest.fixture
def service(repo: Repo) -> Iterator[Service]:
    with Service(repo.folder, ServiceConfig()) as running:
        yield running


def submit(ask: Asker, path: str, on: str = "/", **fields: str) -> Got:
    shown = ask.get(on)
    token = re.search(r'name="csrf" value="([^"]+)"', shown.text)
    assert token is not None
    cookie = {"Cookie": shown.headers.get("set-cookie", "").partition(";")[0]}
    return ask.post(path, {"csrf": token[1], **fields}, form=True, headers=cookie)


def until(ask: Asker, path: str, done: Callable[[str], bool]) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        got = ask.get(path)
        assert got.status == 200, got.text
        text = got.text
        if done(text):
            return text
        time.sleep(0.2)
    raise AssertionError(f"{path} shows: {text}")


def crawled(url: str, text: str) -> bool:
    return "stored, on" in text and f"Crawling: {url}" not in text


def listed(url: str, text: str) -> bool:
    return url.removeprefix("http://") in text


def test_an_empty_service_asks_and_crawls_at_once(service: Service) -> None:
    ask = Asker(service, Accept="text/html")
    asked = ask.get("/").text
    assert "Which site or page do you want to keep?" in asked
    assert "up to 1,000 pages" in asked
    first, second = {"/": page("Rivers", "/a", title="Rivers"), "/a": b"<p>Danube"}, {"/": page("Lakes", title="Lakes")}
    with Site(first) as rivers, Site(second) as lakes:
        assert submit(ask, "/start", url="rivers and lakes").status == 400
        for site in (rivers, lakes):  # the second one too: not with the next cycle, in a day
            sent = submit(ask, "/start", url=site.url("/"), limit="50", allow_private="true", delay="0")
            assert (sent.status, sent.headers["location"]) == (303, "/")
            until(ask, "/", partial(crawled, site.url("/")))
            until(ask, "/pages", partial(listed, site.url("/")))
        until(ask, "/changes", lambda text: "Rivers" in text and "Lakes" in text)
        until(ask, "/pages?state=live", lambda text: text.count('class="tag live"') == 3)


def test_what_cannot_be_read_is_told_with_its_cause(service: Service) -> None:
    ask = Asker(service, Accept="text/html")
    with Site({"/": Reply(status=401)}) as site:
        submit(ask, "/start", url=site.url("/"), whole="page")
        shown = until(ask, "/", lambda text: "address-refused" in text)
        assert "Allow private addresses" in shown
        submit(ask, "/start", url=site.url("/"), allow_private="true")
        shown = until(ask, "/", lambda text: "The page needs a login (HTTP 401)." in text)
        assert f"recrawl access {site.url('/')} --user NAME" in shown
        submit(ask, "/settings/seeds/remove", url=site.url("/"))
        assert "needs a login" not in ask.get("/").text


@pytest.mark.parametrize(
    ("answers", "word", "cause"),
    [
        ({"/robots.txt": b"User-agent: *\nDisallow: /\n"}, "robots-disallowed", "robots.txt does not allow"),
        ({"/robots.txt": Reply(status=503)}, "robots-unreachable", "robots.txt could not be read"),
        ({"/": Reply(status=403, headers={"cf-mitigated": "challenge"})}, "http-4xx", "a browser asks"),
        ({}, "not-found", "does not exist"),
    ],
)
def test_every_cause_has_words_and_advice(repo: Repo, answers: dict[str, bytes | Reply], word: str, cause: str) -> None:
    with Site(answers) as site:
        repo.add(site.url("/"))
        repo.run("crawl", code=None)
        with Repository(repo.folder) as opened:
            (state,) = seed_states(opened, opened.settings.seeds)
    assert state.failure == word
    assert cause in state.cause
    assert state.advice


@pytest.mark.parametrize(
    ("url", "word"), [("http://127.0.0.1:1/", "unreachable-connect"), ("http://nowhere.invalid/", "unreachable-dns")]
)
def test_a_server_that_is_not_there(repo: Repo, url: str, word: str) -> None:
    repo.add(url)
    repo.run("crawl", code=None)
    with Repository(repo.folder) as opened:
        (state,) = seed_states(opened, opened.settings.seeds)
    assert state.failure == word
    assert "robots.txt" not in state.cause  # that it was the first request is nothing to the user
    assert state.advice


def test_changes_since_the_last_visit(repo: Repo, tmp_path: Path) -> None:
    now = time.time()
    with Site({"/": page("Old")}) as site:
        repo.crawl(site.url("/"))
    with Service(repo.folder, ServiceConfig(schedule=False)) as running:
        ask = Asker(running)
        first = ask.get("/")
        assert "Latest changes" in first.text
        begun, _, seen = first.headers["set-cookie"].partition("=")[2].partition(";")[0].partition("-")
        assert begun == "0"
        assert abs(float(seen) - now) < PATIENCE
        before, after = (f"seen=0-{now + hours * 3600:.0f}" for hours in (-2, -1))
        assert "1 change since your last visit" in ask.get("/", Cookie=before).text
        away = ask.get("/", Cookie=after).headers["set-cookie"]
        assert away.startswith(f"seen={now - 3600:.0f}-")  # the visit before this one ended then
        assert "Latest changes" in ask.get("/", Cookie="seen=x-y").text
