"""Pages and sites that were away for a while come back, and those that fail do not keep the others away."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from recrawl.model import Failure
from tests.world import Asked, Page, Reply, Repo, Site, page, sitemap, text

Start = Callable[..., Site]
NAMES = [f"/{index:02d}" for index in range(20)]


def star(names: list[str] = NAMES) -> dict[str, Page]:
    """A front page and its leaves, each with a word of its own."""
    return {"/": page("front", *names), **{name: page(f"leaf word{name[1:]}") for name in names}}


def live(repo: Repo, *sites: Site) -> set[str]:
    """The paths of the live pages of these sites."""
    states = repo.states()
    return {url.removeprefix(one.url("")) for one in sites for url in states if states[url] == "live"}


# -- pages that fail beside others ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_pages_that_are_always_refused_do_not_starve_the_others(repo: Repo, site: Start, status: int) -> None:
    here = site(star())
    here["/00"] = here["/01"] = Reply(b"", status)
    repo.config(patience=0.2, retries=1)
    repo.crawl(here.url("/"))
    assert live(repo, here) == {"/", *NAMES[2:]}
    word = Failure.RATE_LIMITED if status == 429 else Failure.SERVER_ERROR
    assert repo.outcomes(here.url("/00")) == [word]
    assert len(here.requests("/00")) == 2
    assert here.asked()[-1] in ("/00", "/01"), "retries come last"
    repo.later(days=1)
    here.forget()
    repo.cycle(1000, "--policy", "round-robin")
    assert set(here.asked()[-2:]) == {"/00", "/01"}
    assert len(set(here.asked())) == 21


@pytest.mark.parametrize("status", [429, 503])
def test_refused_pages_that_end_a_crawl_come_last_in_the_next_one(repo: Repo, site: Start, status: int) -> None:
    here = site(star())
    for name in NAMES[:3]:
        here[name] = Reply(b"", status, {"Retry-After": "3600"})
    repo.crawl(here.url("/"))
    assert live(repo, here) == {"/"}, "it asked for an hour"
    for _ in NAMES[:3]:
        repo.later(hours=2)
        repo.crawl()
    assert live(repo, here) == {"/", *NAMES[3:]}


def test_a_server_that_refuses_everything_is_left_alone(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here.every = lambda _: Reply(b"", 503)
    here.forget()
    repo.config(patience=0.2, retries=0)
    repo.later(hours=2)
    repo.cycle()
    assert len(here.log) <= 4, "robots.txt at most, and three pages"


# -- sitemaps ---------------------------------------------------------------------------------------------------


def many_sitemaps(here: Site) -> None:
    lines = "".join(f"Sitemap: {here.url(f'/map{index}.xml')}\n" for index in range(8))
    here["/robots.txt"] = text(f"User-agent: *\nAllow: /\n{lines}")


def test_sitemaps_that_never_answer_do_not_hold_off_the_first_crawl(repo: Repo, site: Start) -> None:
    here = site(star())
    many_sitemaps(here)
    here.every = lambda asked: Reply(wait=60) if asked.path.endswith(".xml") else None
    repo.config(timeout=15, stall=15, patience=0.2)
    repo.crawl(here.url("/"))
    assert live(repo, here) == {"/", *NAMES}
    assert len([one for one in here.log if one.path.endswith(".xml")]) == 1


def test_a_sitemap_that_always_asks_for_a_pause_is_asked_after_the_pages(repo: Repo, site: Start) -> None:
    here = site(star())
    many_sitemaps(here)

    def answer(asked: Asked) -> Reply | None:
        return Reply(b"", 503, {"Retry-After": "86400"}) if asked.path.endswith(".xml") else None

    here.every = answer
    repo.crawl(here.url("/"))
    assert live(repo, here) == set(), "it asked for a day"
    repo.later(hours=25)
    repo.crawl()
    assert live(repo, here) == {"/", *NAMES}
    here.every = None
    here["/map0.xml"] = sitemap(here.url("/new"))
    here["/new"] = page("new")
    repo.later(days=3)
    repo.cycle()
    repo.crawl()
    assert "/new" in live(repo, here), "it is read again"


# -- sites and pages that were away ------------------------------------------------------------------------------

MISSING = Reply(page("no such page"), 404)


def bad_days(repo: Repo, here: Site, answer: Callable[[Asked], Reply | None], hours: float = 80.0) -> None:
    """Cycles every six hours while the site answers like this; then it is healed."""
    here.every = answer
    for _ in range(int(hours / 6)):
        repo.later(hours=6)
        repo.cycle()
    here.every = None


def days_until_back(repo: Repo, here: Site, most: int, *turn: str) -> int:
    """Days until all pages are live, one turn a day."""
    for day in range(1, most + 1):
        repo.later(days=1)
        for command in turn:
            repo.crawl() if command == "crawl" else repo.cycle()
        if live(repo, here) == {"/", *NAMES}:
            return day
    raise AssertionError(repo.states())


@pytest.mark.parametrize("policy", ["shock", "round-robin", "fixed-interval(days=0)"])
def test_a_site_that_was_gone_as_a_whole_comes_back(repo: Repo, site: Start, policy: str) -> None:
    here = site(star())
    repo.config(policy=policy)
    repo.crawl(here.url("/"))
    bad_days(repo, here, lambda _: MISSING)
    assert set(repo.states().values()) == {"gone"}
    here["/00"] = page("narwhal")
    assert days_until_back(repo, here, 8, "cycle") <= 8
    repo.later(days=2)
    repo.cycle()
    assert repo.found("narwhal") == {here.url("/00")}
    assert len(repo.found("leaf")) == 19


def test_a_crawl_asks_for_a_seed_that_is_gone(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    bad_days(repo, here, lambda _: MISSING)
    repo.crawl(here.url("/"))
    assert live(repo, here) == {"/"}
    repo.later(hours=1)
    repo.cycle()
    assert live(repo, here) == {"/", *NAMES}, "pages that were gone together are back together"


def test_a_dead_site_is_asked_ever_less(repo: Repo, site: Start) -> None:
    here, other = site(star()), site(star(NAMES[:3]))
    repo.crawl(here.url("/"), other.url("/"))
    bad_days(repo, here, lambda _: MISSING)
    here.every = lambda _: MISSING
    here.forget()
    for _ in range(60):
        repo.later(days=1)
        repo.cycle()
    assert 5 <= len(here.requests("/")) <= 15
    assert 2 <= len(here.requests("/07")) <= 7
    assert len(here.requests("/sitemap.xml")) <= 60
    assert set(repo.outcomes(here.url("/07"))[-2:]) == {Failure.MISSING}


def test_the_sitemap_of_a_dead_site_is_read_again(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.config(policy="round-robin")
    repo.crawl(here.url("/"))
    bad_days(repo, here, lambda _: MISSING)
    here.every = lambda asked: None if asked.path in ("/sitemap.xml", "/07") else MISSING
    here["/sitemap.xml"] = sitemap(here.url("/07"))
    repo.later(hours=23)
    repo.cycle()
    repo.later(hours=2)
    repo.cycle()
    repo.later(hours=2)
    repo.cycle()
    assert live(repo, here) == {"/07"}


@pytest.mark.parametrize("where", ["/", "http://parking.localhost:{port}/"])
def test_pages_that_had_moved_come_back(repo: Repo, site: Start, where: str) -> None:
    here = site(star())
    target = where.format(port=here.port)
    repo.crawl(here.url("/"))

    def away(asked: Asked) -> Reply | None:
        if asked.host == "parking.localhost" or asked.path == target:
            return Reply(page("for sale")) if asked.host == "parking.localhost" else None
        return Reply(b"", 301, {"Location": target})

    bad_days(repo, here, away, hours=72)
    assert list(repo.states().values()).count("moved") >= 15
    assert days_until_back(repo, here, 8, "cycle") <= 8
    assert days_until_back(repo, here, 2, "crawl", "cycle")
    assert set(repo.states().values()) <= {"live", "dropped"}, "the parking site is not kept"


def test_a_page_that_had_moved_and_is_in_the_sitemap_comes_back(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here["/07"] = Reply(b"", 301, {"Location": "/"})
    for _ in range(2):
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/07")] == "moved"
    here["/07"] = page("narwhal")
    here["/sitemap.xml"] = sitemap(here.url("/07"))
    for _ in range(2):  # one to read the sitemap, one to visit
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/07")] == "live"


@pytest.mark.parametrize("away", [MISSING, Reply(b"", 301, {"Location": "/"})])
def test_a_page_that_is_linked_again_comes_back(repo: Repo, site: Start, away: Reply) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here["/07"], here["/"] = away, page("front", *(name for name in NAMES if name != "/07"))
    for _ in range(2):
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/07")] in ("gone", "moved")
    here["/07"], here["/"] = page("narwhal"), page("front, new", *NAMES)
    for _ in range(2):  # one to see the link, one to visit
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/07")] == "live"
    assert repo.found("narwhal") == {here.url("/07")}


def test_a_link_that_stays_does_not_bring_a_dead_page_back(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here["/07"] = MISSING
    for day in range(6):
        here["/"] = page(f"front {day}", *NAMES)
        repo.later(days=1)
        repo.cycle()
    assert len(here.requests("/07")) == 3


def test_a_site_that_failed_for_long_is_refreshed_at_once_when_it_is_back(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here.every = lambda _: Reply(b"", 500)
    for _ in range(30):
        repo.later(days=1)
        repo.cycle()
    here.every = None
    here["/07"] = page("narwhal")
    failing = 21
    for _ in range(40):
        repo.later(days=1)
        repo.cycle()
        before, failing = failing, len(repo.sql("SELECT 1 FROM pages WHERE failures > 0"))
        if failing < 21:
            break
    repo.later(days=1)
    repo.cycle()
    assert before == 21
    assert repo.sql("SELECT 1 FROM pages WHERE failures > 0") == [], "one page has answered: all are visited again"
    assert repo.found("narwhal") == {here.url("/07")}


# -- the brake -----------------------------------------------------------------------------------------------------

PARKED = page("This domain is for sale", title="For sale")


@pytest.mark.parametrize("budget", [1000, 4])
def test_pages_that_suddenly_share_one_text_keep_what_search_shows(repo: Repo, site: Start, budget: int) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here.every = lambda _: Reply(PARKED)
    for _ in range(2 if budget == 1000 else 4):
        repo.later(hours=12)
        repo.cycle(budget)
    assert len(repo.found("leaf")) == 20
    assert repo.found("domain") == set()
    words = [repo.outcomes(here.url(name))[-1] for name in NAMES]
    assert Failure.SHARED_TEXT in words
    (brake,) = repo.json("status")["brakes"]
    assert (brake["site"], brake["title"]) == (here.url(""), "For sale")
    assert "show the same text ('For sale')" in repo.run("status").out
    assert "gone" not in repo.states().values()

    here.every = None
    here["/07"] = page("narwhal")
    for _ in range(3):
        repo.later(days=1)
        repo.cycle()
    assert repo.json("status")["brakes"] == []
    assert repo.found("narwhal") == {here.url("/07")}
    assert len(repo.found("leaf")) == 19
    assert repo.sql("SELECT 1 FROM pages WHERE failures > 0 OR state != 1") == []


def test_an_index_that_is_built_anew_shows_what_was_kept(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    here.every = lambda _: Reply(PARKED)
    repo.later(hours=12)
    repo.cycle()
    shutil.rmtree(repo.folder / "index")
    repo.later(hours=1)
    repo.cycle(1)
    assert len(repo.found("leaf")) == 20
    assert repo.found("domain") == set()


def test_pages_that_always_shared_one_text_may_change_together(repo: Repo, site: Start) -> None:
    here = site({"/": page("front", *NAMES), **{name: page("Please enable JavaScript") for name in NAMES}})
    repo.crawl(here.url("/"))
    for name in NAMES:
        here[name] = page("Please enable JavaScript now")
    repo.later(days=1)
    repo.cycle()
    assert repo.json("status")["brakes"] == []
    assert len(repo.found("now")) == 20


def test_a_few_pages_that_come_to_share_one_text_are_changes(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    for name in NAMES[:8]:
        here[name] = page("This offer has expired")
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin(order=shuffled)")
    assert repo.json("status")["brakes"] == []
    assert len(repo.found("expired")) == 8


def test_adding_a_seed_again_has_it_visited(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.crawl(here.url("/"))
    bad_days(repo, here, lambda _: MISSING, hours=300)
    here.forget()
    repo.cycle()
    assert here.asked() == []
    assert "is checked again from time to time" in repo.run("why", here.url("/07")).out
    repo.add(here.url("/"))
    repo.cycle()
    assert here.asked() == ["/"]
    repo.cycle()
    assert live(repo, here) == {"/", *NAMES}


def test_after_a_brake_is_released_search_shows_what_pages_keep_of_the_shared_text(repo: Repo, site: Start) -> None:
    here = site(star())
    repo.config(change="text")
    repo.crawl(here.url("/"))
    here.pages |= {name: page("closed for now") for name in NAMES}
    repo.later(days=1)
    repo.cycle()
    assert repo.json("status")["brakes"]
    assert repo.found("closed") == set()
    here.pages |= {name: page(f"leaf word{name[1:]} again") for name in NAMES[3:]}
    for _ in range(3):
        repo.later(days=1)
        repo.cycle()
    assert repo.json("status")["brakes"] == []
    assert repo.found("closed") == {here.url(name) for name in NAMES[:3]}
    assert repo.json("check")["problems"] == []
