"""The clock was a year ahead once and is right again: no time that was stored then stops anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recrawl
from recrawl.serve.access.sessions import decode_session, encode_session, new_session
from recrawl.serve.scheduler import Scheduler
from recrawl.times import elapsed, remaining
from tests.world import Reply, Repo, Site, page, sitemap, text

Start = Callable[..., Site]
YEAR = 365 * 86400.0


@pytest.fixture
def web(site: Start) -> Site:
    web = site({"/": page("front", "/a", "/b", "/c"), "/a": page("one"), "/b": page("two"), "/c": page("three")})
    web["/robots.txt"] = text(f"User-agent: *\nDisallow: /private\nSitemap: {web.url('/sitemap.xml')}")
    web["/sitemap.xml"] = sitemap(web.url("/"))
    return web


def a_year_ahead(repo: Repo, web: Site, *more: object) -> None:
    """Crawl and refresh a site in a year from now; then the clock is right again."""
    repo.ahead = YEAR
    repo.add(web.url(), *more)
    repo.crawl()
    repo.cycle()
    repo.ahead = 0.0
    web.forget()


def test_robots_sitemaps_and_pages_are_fetched_again(repo: Repo, web: Site) -> None:
    a_year_ahead(repo, web)
    web["/robots.txt"] = text(f"User-agent: *\nDisallow: /b\nSitemap: {web.url('/sitemap.xml')}")
    web["/sitemap.xml"] = sitemap(web.url("/"), web.url("/new"))
    web["/new"] = page("new")
    web["/a"] = page("one, which has changed since then, the clock or not")
    repo.cycle()
    repo.crawl()
    asked = web.asked()
    assert web.requests("/robots.txt")
    assert web.requests("/sitemap.xml")
    assert "/a" in asked
    assert "/b" not in asked
    assert repo.states()[web.url("/new")] == "live"
    assert repo.outcomes(web.url("/a"))[-1] == "changed"


@pytest.mark.parametrize("policy", ["round-robin", "change-frequency", "shock"])
def test_cycles_go_on_with_every_kind_of_policy(repo: Repo, web: Site, policy: str) -> None:
    a_year_ahead(repo, web)
    for turn in range(3):
        web["/a"] = page(f"one, turn {turn}")
        repo.later(days=2)
        repo.cycle(100, "--policy", policy)
    assert repo.outcomes(web.url("/a"))[-1] == "changed"
    rates = [value for row in repo.json("rates") for name, value in row.items() if "rate" in name and value]
    assert all(rate < 5 for rate in rates if isinstance(rate, float)), "changes a day"


def test_a_page_that_failed_then_is_tried_again_and_one_that_is_gone_is_found_so(repo: Repo, web: Site) -> None:
    repo.crawl(web.url())
    web["/a"], web["/b"] = Reply(b"", 500), Reply(b"", 404)
    repo.ahead = YEAR
    repo.cycle()
    repo.ahead = 3600.0
    web["/a"] = page("one is well")
    for _ in range(3):
        repo.later(days=3)
        repo.cycle()
    assert repo.states()[web.url("/a")] == "live"
    assert repo.outcomes(web.url("/a"))[-1] in ("unchanged", "changed")
    assert repo.states()[web.url("/b")] == "gone"


def test_a_robots_txt_that_was_unreachable_then_is_asked_for_again(repo: Repo, web: Site) -> None:
    good = web["/robots.txt"]
    web["/robots.txt"] = Reply(b"", 503)
    a_year_ahead(repo, web)
    assert "live" not in repo.states().values()
    web["/robots.txt"] = good
    repo.crawl()
    assert repo.states()[web.url("/a")] == "live"


def test_pages_with_an_interval_are_visited(repo: Repo, web: Site) -> None:
    a_year_ahead(repo, web, "--every", "1h")
    report = repo.json("recheck")
    assert report is not None
    assert report["visits"] == 4


def test_turns_of_the_service_go_on(repo: Repo, web: Site) -> None:
    a_year_ahead(repo, web)
    with recrawl.open(repo.folder) as opened:
        opened.remember("serve:base", repo.now() + YEAR)

    class Runner:
        def run(self, *_: Any) -> Any: ...
        def stop(self) -> None: ...

    scheduler = Scheduler(repo.folder, Runner(), repo.now)
    scheduler._base = repo.now() + YEAR
    due = scheduler.status().due
    assert due is not None
    assert due <= repo.now() + 1
    scheduler._retry = scheduler._rechecked = repo.now() + YEAR
    due = scheduler.status().due
    assert due is not None
    assert due <= repo.now() + 1


def test_sessions_do_not_last_for_ever() -> None:
    key, now = b"k" * 32, 1_700_000_000.0
    cookie = encode_session(new_session(now + YEAR, authenticated=True), key)
    assert decode_session(cookie, key, now) is None
    assert decode_session(encode_session(new_session(now, authenticated=True), key), key, now) is not None


def test_the_two_questions_about_stored_times() -> None:
    assert elapsed(0.0, 50.0) == 50.0
    assert elapsed(200.0, 50.0) == -150.0, "clocks differ by minutes"
    assert elapsed(YEAR, 50.0) == float("inf")
    assert remaining(90.0, 50.0, 3600.0) == 40.0
    assert remaining(YEAR, 50.0, 3600.0) == 0.0
