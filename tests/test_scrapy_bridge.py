"""A spider with the memory of a repository: real runs of Scrapy against a server of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import recrawl
from tests.world import Asked, Reply, Site, moved, text

DAY = 86400.0
ROOT = Path(__file__).parents[1]


class Spider:
    """A process that runs the example spider again and again, each time a day later."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, start: str) -> None:
        self._process, self._start, self.folder, self.now = process, start, folder, 1.7e9

    def __call__(self, **settings: Any) -> dict[str, Any]:
        """One run; items are their URLs and headings."""
        self.begin(**settings)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer, "the process has ended"
        result: dict[str, Any] = json.loads(answer)
        result["items"] = [item.removeprefix(self._start) for item in result["items"]]
        return result

    def begin(self, **settings: Any) -> None:
        """Begin a run without waiting for its end."""
        assert self._process.stdin is not None
        self.now += DAY
        given = {"RECRAWL_REPOSITORY": str(self.folder), "RECRAWL_POLICY": "round-robin", "RECRAWL_BUDGET": 1}
        line = {**given, **settings, "now": self.now, "start": self._start}
        self._process.stdin.write(f"{json.dumps(line)}\n")
        self._process.stdin.flush()


@pytest.fixture(scope="module")
def process() -> Iterator[subprocess.Popen[str]]:
    with started() as one:
        yield one


@contextmanager
def started() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.spider_process"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def spider(process: subprocess.Popen[str], site: Callable[..., Site], tmp_path: Path) -> tuple[Spider, Site]:
    web = site({"/": front("/a", "/b"), "/a": one("alpha"), "/b": one("beta")})
    return Spider(process, tmp_path / "memory", web.url("/")), web


def front(*links: str) -> Reply:
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    return Reply(f"<title>t</title><h1>front</h1>{anchors}".encode(), etag=f'"{len(links)}"')


def one(words: str) -> Reply:
    return Reply(f"<title>t</title><h1>{words}</h1><p>text of {words}".encode(), etag=f'"{words}"')


def test_a_spider_yields_the_same_items_with_fewer_downloads(spider: tuple[Spider, Site]) -> None:
    run, web = spider
    everything = [" front", "a alpha", "b beta"]
    first = run()
    assert (first["items"], first["downloads"]) == (everything, 3)
    web.forget()
    second = run()
    assert (second["items"], second["downloads"]) == (everything, 1)
    assert web.log[0].headers["if-none-match"], "the request is conditional"
    assert second["stats"]["recrawl/stored"] == 3
    assert first["stats"]["front"] == "now"
    assert datetime.fromisoformat(second["stats"]["front"]).timestamp() == run.now - DAY
    assert second["stats"]["recrawl/unchanged"] == 1

    web["/a"] = one("gamma")
    web["/"] = front("/a", "/b", "/new")
    web["/new"] = one("delta")
    third = run(RECRAWL_BUDGET=3)
    assert third["items"] == [" front", "a gamma", "b beta", "new delta"], "what changed and what is new is there"
    assert third["downloads"] == 4
    with recrawl.open(run.folder) as repo:
        page = repo.page(web.url("/a"))
        assert next(iter(page.visits)).outcome == "changed"
        assert [version.time.timestamp() for version in page.versions] == [run.now - 2 * DAY, run.now]


def test_a_dead_link_is_not_requested_in_every_run(spider: tuple[Spider, Site]) -> None:
    run, web = spider
    web["/"] = front("/a", "/lost", "/gone")
    run(RECRAWL_BUDGET=0)
    web.forget()
    second = run(RECRAWL_BUDGET=0)
    assert second["downloads"] == 0
    assert second["stats"]["recrawl/stored"] == 4, "a callback is told of the dead ones as before"
    web["/lost"] = one("found again")
    for _ in range(7):
        found = run(RECRAWL_BUDGET=0)
    assert "lost found again" in found["items"]


def test_redirects_errors_and_robots_are_those_of_scrapy(spider: tuple[Spider, Site]) -> None:
    run, web = spider
    web["/"] = front("/old", "/now", "/broken", "/secret", "/lost")
    web["/old"] = moved("/b")
    web["/now"] = moved("/folder/today", 302)
    web["/folder/today"] = Reply(b'<h1>today</h1><a href="more">more</a>')
    web["/folder/more"] = one("more")
    web["/broken"] = Reply(b"", status=500)
    web["/robots.txt"] = text("User-agent: *\nDisallow: /secret")
    web["/secret"] = one("secret")
    items = [" front", "b beta", "folder/more more", "folder/today today"]
    settings = {"ROBOTSTXT_OBEY": True, "RETRY_TIMES": 1, "RECRAWL_BUDGET": 1}
    assert run(**settings)["items"] == items
    assert web.asked().count("/broken") == 2, "Scrapy has retried it"
    web.forget()
    assert run(**settings)["items"] == items
    assert "/secret" not in web.asked()
    assert not {"/old", "/b", "/folder/today", "/folder/more"} & set(web.asked()[1:]), "they are stored"
    with recrawl.open(run.folder) as repo:
        assert repo.page(web.url("/old")).state == "moved"
        assert repo.page(web.url("/now")).answered_url == web.url("/folder/today")
        assert repo.page(web.url("/broken")).failures >= 1


def test_a_run_that_is_stopped_is_resumed(spider: tuple[Spider, Site]) -> None:
    run, web = spider
    names = [f"/{number}" for number in range(80)]
    web["/"] = front(*names)
    for name in names:
        web[name] = one(f"page {name}")
    assert run()["downloads"] == 81
    stopped = run(RECRAWL_BUDGET=81, stop_after=10)
    assert stopped["downloads"] < 81
    web.forget()
    resumed = run(RECRAWL_BUDGET=5)
    assert len(resumed["items"]) == 81
    assert resumed["downloads"] == 81 - stopped["downloads"], "the interrupted cycle goes on, with its own budget"
    assert run(RECRAWL_BUDGET=5)["downloads"] == 5


def test_a_run_that_is_killed_is_resumed(spider: tuple[Spider, Site]) -> None:
    run, web = spider
    run()
    asked, never = threading.Event(), threading.Event()

    def stuck(_: Asked) -> Reply:
        asked.set()
        return Reply(until=never)

    web["/b"] = stuck
    with started() as process:
        Spider(process, run.folder, web.url("/")).begin(RECRAWL_BUDGET=3)
        assert asked.wait(60)
        process.kill()
    never.set()
    web["/b"] = one("other")
    with recrawl.open(run.folder) as repo:
        assert repo.check().problems == ()
    assert run(RECRAWL_BUDGET=1)["items"] == [" front", "a alpha", "b other"], "the cycle of three visits goes on"


def test_a_spider_runs_without_its_memory_when_that_cannot_be_used(spider: tuple[Spider, Site]) -> None:
    run, _ = spider
    run()
    broken = run(RECRAWL_POLICY="no-such-policy")
    assert len(broken["items"]) == 3, "stored pages are read all the same"
    assert broken["stats"]["recrawl/errors"] == 1
    assert run()["downloads"] == 1
