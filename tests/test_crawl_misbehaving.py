"""The whole crawler, through the command line, against servers that misbehave, and against some that merely change.

Every kind of `misbehaving.KINDS` and every robots.txt of `misbehaving.ROBOTS` is a case of its own, so that a failure
has a name; they share a few crawls, in which the slow ones are slow side by side.
"""

from __future__ import annotations

import itertools
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from recrawl import __version__
from recrawl.model import Failure, Outcome
from tests.misbehaving import KINDS, ROBOTS, Misbehaving
from tests.world import Asked, Reply, Repo, Site, moved, page, sitemap, text

LIMITS = {"timeout": 12, "connect_timeout": 10, "stall": 10, "max_bytes": 6_000_000, "parse_seconds": 60, "patience": 3}
"""A healthy page answers in milliseconds: a machine that is a thousand times slower is still in time."""
BACK_OFF = {Failure.TIMEOUT, Failure.CONNECT, Failure.DNS, Failure.HELD_OFF, Failure.RATE_LIMITED}
"""What makes us leave a server alone for a while, its other pages included."""
PUT_OFF = frozenset({Failure.HELD_OFF, Failure.ROBOTS_UNREACHABLE})
"""What a crawl puts off rather than records: the page stays found."""
OK = ("new", "changed", "unchanged")
JITTER = 0.05
"""Seconds by which the server's clock readings may be off, the median of several: a busy machine delays some."""

Start = Callable[..., Site]


# -- every kind -----------------------------------------------------------------------------------------


@dataclass
class Crawled:
    """A crawl of many misbehaving pages, after it has ended by itself."""

    repo: Repo
    healthy: str
    urls: dict[str, str]
    """By kind."""
    servers: dict[str, Misbehaving] = field(default_factory=dict)

    @cached_property
    def _record(self) -> dict[str, tuple[str, list[str]]]:
        """Address to where it has moved and what its visits came to: all at once, for hundreds of tests ask."""
        rows = self.repo.sql(
            """SELECT p.url, ifnull(t.url, ''), v.outcome, v.failure FROM pages p
               LEFT JOIN pages t ON t.id = p.target LEFT JOIN visits v ON v.page = p.id ORDER BY v.id"""
        )
        table: dict[str, tuple[str, list[str]]] = {}
        for url, target, outcome, failure in rows:
            words = table.setdefault(url, (target, []))[1]
            if outcome is not None:
                words.append(failure or Outcome(outcome).name.lower())
        return table

    def outcomes(self, kind: str) -> list[str]:
        """What the visits of a kind's page came to; where it has moved counts as itself."""
        url, seen = self.urls[kind], set()
        while url not in seen and self._record[url][0]:
            seen.add(url)
            url = self._record[url][0]
        return self._record[url][1]

    def agrees(self, kind: str) -> bool:
        """Whether only such things were recorded as a correct crawler may record."""
        outcomes, expect = self.outcomes(kind), KINDS[kind].expect
        if not outcomes:
            return self.repo.states()[self.urls[kind]] == "found" and bool(expect & PUT_OFF)
        return {"ok" if word in OK else Failure(word) for word in outcomes} <= expect

    def story(self, kind: str) -> str:
        """What to say when it does not agree."""
        details = [visit["detail"] for visit in self.repo.visits(self.urls[kind])]
        return f"{self.outcomes(kind)}, not {sorted(KINDS[kind].expect)}; {details}"


def _crawl(folder: Path, urls: dict[str, str], healthy: str, **settings: Any) -> Crawled:
    repo = Repo.create(folder, **{**LIMITS, **settings})
    repo.add(*urls.values(), healthy, "--depth", 0)
    assert repo.crawl()["finished"]
    return Crawled(repo, healthy, urls)


@pytest.fixture(scope="module")
def server() -> Iterator[Misbehaving]:
    with Misbehaving(pace=0.2) as running:
        yield running


@pytest.fixture(scope="module")
def apart(server: Misbehaving, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """Each kind on a server of its own, for all names under localhost lead here."""
    urls = {name: f"http://k{n}.localhost:{server.port}/{name}" for n, name in enumerate(KINDS)}
    healthy = f"http://healthy.localhost:{server.port}/ok"
    return _crawl(tmp_path_factory.mktemp("apart") / "repo", urls, healthy, retries=1)


@pytest.fixture(scope="module")
def again(apart: Crawled) -> Crawled:
    """The same, visited once more, with whatever validators they gave."""
    apart.repo.later(hours=2)
    assert apart.repo.cycle()["finished"]
    return replace(apart)  # with a record of its own


@pytest.fixture(scope="module")
def together(server: Misbehaving, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """All kinds that do not make us stay away, on one server, many at a time."""
    urls = {name: server.url(f"/{name}") for name, kind in KINDS.items() if not kind.expect & BACK_OFF}
    return _crawl(tmp_path_factory.mktemp("together") / "repo", urls, server.url("/ok"), per_server=32)


@pytest.mark.parametrize("kind", KINDS)
def test_a_misbehaving_server_costs_itself_only(apart: Crawled, kind: str) -> None:
    assert apart.agrees(kind), apart.story(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_misbehaving_server_visited_again(again: Crawled, kind: str) -> None:
    assert again.agrees(kind), again.story(kind)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.expect & BACK_OFF])
def test_a_misbehaving_page_beside_the_others_of_its_server(together: Crawled, kind: str) -> None:
    assert together.agrees(kind), together.story(kind)


def test_healthy_pages_are_unharmed(apart: Crawled, together: Crawled) -> None:
    for crawled in (apart, together):
        assert crawled.repo.outcomes(crawled.healthy)[0] == "new"
        assert crawled.repo.states()[crawled.healthy] == "live"
        assert crawled.healthy in crawled.repo.found("quick brown fox")
        assert "jumps over the lazy dog" in crawled.repo.run("show", crawled.healthy).out


def test_a_healthy_page_is_unharmed_the_second_time(again: Crawled) -> None:
    assert again.repo.outcomes(again.healthy) == ["new", "unchanged"]


def test_kept_bodies_are_what_was_sent(together: Crawled) -> None:
    """What a server smuggled in behind a page is not in it."""
    shown = together.repo.run("show", together.urls["longer-than-said"]).out
    assert "lazy dog" in shown
    assert "SMUGGLED" not in shown


# -- every robots.txt -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The page /ok of a server for each robots.txt."""
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Misbehaving(robots=name, pace=0.2)) for name in ROBOTS}
        healthy = stack.enter_context(Misbehaving()).url("/ok")
        urls = {name: running.url("/ok") for name, running in servers.items()}
        crawled = _crawl(tmp_path_factory.mktemp("robots") / "repo", urls, healthy, max_delay=0.5)
        crawled.servers = servers
        yield crawled


@pytest.mark.parametrize("name", ROBOTS)
def test_what_robots_txt_means_for_a_page(robots: Crawled, name: str) -> None:
    running, expect, outcomes = robots.servers[name], ROBOTS[name].expect, robots.outcomes(name)
    words = {"ok" if word in OK else Failure(word) for word in outcomes} or PUT_OFF
    assert words & expect, outcomes
    assert running.log[0].path == "/robots.txt"
    assert (running.count("/ok") > 0) == (words == {"ok"})


def test_a_robots_txt_costs_its_own_server_only(robots: Crawled) -> None:
    assert robots.repo.outcomes(robots.healthy) == ["new"]


@pytest.mark.parametrize("name", ["open", "sitemaps"])
def test_a_whole_misbehaving_site_ends(tmp_path: Path, name: str) -> None:
    """Sitemaps that loop, bombs and all: followed from the root, with every kind that answers at once."""
    slow = [f"/{kind}" for kind, entry in KINDS.items() if entry.expect & BACK_OFF]
    exclude = [word for path in (*slow, "/x/*", "/calendar/*") for word in ("--exclude", path)]
    # What is slow is excluded, so times are not what ends it: a busy machine must not look like a slow server.
    times = {"timeout": 60, "connect_timeout": 30, "stall": 30, "parse_seconds": 10}
    repo = Repo.create(tmp_path / "repo", **{**LIMITS, **times, "max_bytes": 300_000}, per_server=32, max_queries=50)
    with Misbehaving(robots=name) as running:
        repo.add(running.url("/"), *exclude, "--depth", 2)
        assert repo.crawl()["finished"]
        assert repo.states()[running.url("/ok")] == "live"
        assert running.count("/barred") == 0
        assert len(running.log) < 1500


# -- addresses ------------------------------------------------------------------------------------------

LOOPBACK = (
    "127.0.0.1", "localhost", "x.localhost", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0.0.0.0",
    "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "127.0.0.1.", "LOCALHOST.", "①②⑦.0.0.1",
)  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK)
def test_our_own_machine_is_refused_unless_allowed(repo: Repo, site: Start, host: str) -> None:
    inner = site({"/": page("secret")})
    repo.run("add", f"http://{host}:{inner.port}/")
    summary = repo.json("crawl")
    assert inner.log == []
    assert list(summary["failures"]) == [Failure.ADDRESS]
    assert repo.json("search", "secret") == []


def test_a_server_that_is_allowed_after_all_is_asked_at_once(repo: Repo, site: Start) -> None:
    inner = site({"/": page("walrus")})
    repo.run("add", inner.url("/"))
    repo.json("crawl")
    repo.crawl(inner.url("/"))
    assert repo.found("walrus") == {inner.url("/")}


def test_allowing_one_private_server_allows_no_other(repo: Repo, site: Start) -> None:
    inner = site({"/": page("secret"), "/sitemap.xml": sitemap("http://127.0.0.1/")})
    where = inner.url("/")
    outer = site(
        {
            "/": page("start", "/permanent", "/temporary", "/frame", where),
            "/permanent": moved(where, 301),
            "/temporary": moved(where, 302),
            "/frame": f'<iframe src="{where}"></iframe><meta http-equiv=refresh content="0;url={where}">'.encode(),
        }
    )
    repo.crawl(outer.url("/"))
    assert inner.log == []
    assert repo.outcomes(outer.url("/permanent")) == repo.outcomes(outer.url("/temporary")) == [Failure.REDIRECT_AWAY]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_seed_that_redirects_to_a_private_server_is_not_followed(repo: Repo, site: Start, status: int) -> None:
    inner = site({"/": page("secret")})
    outer = site({"/": moved(inner.url("/"), status)})
    repo.crawl(outer.url("/"))
    assert inner.log == []


def test_robots_and_sitemaps_lead_to_no_private_server(repo: Repo, site: Start) -> None:
    inner = site({"/": page("secret"), "/sitemap.xml": sitemap(), "/robots.txt": text("")})
    listing = site({"/": page("a"), "/robots.txt": text(f"Sitemap: {inner.url('/sitemap.xml')}")})
    hopping = site({"/": page("b"), "/sitemap.xml": moved(inner.url("/sitemap.xml"), 302)})
    elsewhere = site({"/": page("c"), "/robots.txt": moved(inner.url("/robots.txt"), 301)})
    repo.crawl(listing.url("/"), hopping.url("/"), elsewhere.url("/"))
    assert [one.path for one in inner.log] == []
    assert repo.states()[listing.url("/")] == repo.states()[hopping.url("/")] == "live"


# -- politeness -----------------------------------------------------------------------------------------


def _gap(log: Sequence[Asked]) -> float:
    """Seconds between two requests, the median: what is read late is nearer to the next one, not all are late."""
    return statistics.median(after.at - before.at for before, after in itertools.pairwise(log))


def _star(leaves: int, answer: Callable[[int], bytes | Reply] = lambda n: page(f"leaf {n}")) -> dict[str, Any]:
    """A page that links to so many others."""
    names = [f"/leaf{n}" for n in range(leaves)]
    return {"/": page("the root", *names), **{name: answer(n) for n, name in enumerate(names)}}


def test_the_delay_between_requests_is_kept(repo: Repo, site: Start) -> None:
    star = site(_star(3))
    repo.config(delay=0.25, per_server=4)
    repo.crawl(star.url("/"))
    assert len(star.log) == 6
    assert _gap(star.log) >= 0.25 - JITTER


def test_the_delay_can_be_set_for_a_site(repo: Repo, site: Start) -> None:
    slow, quick = site(_star(2)), site(_star(2))
    repo.add(slow.url("/"), "--delay", 0.3)
    repo.crawl(quick.url("/"))
    assert _gap(slow.log) >= 0.3 - JITTER


def test_one_request_at_a_time(repo: Repo, site: Start) -> None:
    star = site(_star(5, lambda n: Reply(page(f"leaf {n}"), wait=0.05)))
    repo.crawl(star.url("/"))
    assert {one.beside for one in star.log} == {0}


def test_as_many_requests_at_a_time_as_the_setting_says(repo: Repo, site: Start) -> None:
    star = site(_star(12, lambda n: Reply(page(f"leaf {n}"), wait=0.1)))
    repo.config(per_server=3)
    repo.crawl(star.url("/"))
    assert max(one.beside for one in star.log) == 2


def test_crawl_delay_is_kept_up_to_our_limit(repo: Repo, site: Start) -> None:
    patient, extreme = site(_star(2)), site(_star(2))
    patient["/robots.txt"] = text("User-agent: *\nCrawl-delay: 0.4")
    extreme["/robots.txt"] = text("User-agent: *\nCrawl-delay: 86400")
    repo.config(max_delay=0.6)
    repo.crawl(patient.url("/"), extreme.url("/"))
    assert _gap(patient.log) >= 0.4 - JITTER
    assert 0.6 - JITTER <= _gap(extreme.log) < 60


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_holds_for_the_whole_server(repo: Repo, site: Start, status: int) -> None:
    def busy_once(asked: Asked) -> Reply:
        first = len(star.requests("/leaf0")) == 1
        return Reply(b"", status, {"Retry-After": "1"}) if first else Reply(page("at last"))

    star = site(_star(3))
    star["/leaf0"] = busy_once
    repo.crawl(star.url("/"))
    refused = star.requests("/leaf0")[0].at
    assert min(one.at for one in star.log if one.at > refused) >= refused + 0.5, "it asked for a second"
    assert repo.outcomes(star.url("/leaf0")) == ["new"]
    assert set(repo.states().values()) == {"live"}


def test_a_server_that_wants_to_be_left_alone_is(repo: Repo, site: Start) -> None:
    star, other = site(_star(5)), site(_star(3))
    star.every = lambda asked: None if asked.path == "/" else Reply(b"", 429, {"Retry-After": "3600"})
    begun = time.monotonic()
    repo.crawl(star.url("/"), other.url("/"))
    assert time.monotonic() - begun < 60  # it asked for an hour
    assert len(star.log) <= 3  # robots.txt, and either the sitemap or pages up to the first refusal
    assert [url for url, state in repo.states().items() if state == "live" and other.url("") in url]
    star.every = None
    star.forget()
    repo.later(hours=2)
    repo.crawl()
    assert set(repo.states().values()) == {"live"}


def test_robots_txt_comes_first_and_once(repo: Repo, site: Start) -> None:
    star = site({**_star(4), "/robots.txt": text("User-agent: *\nDisallow: /leaf3")})
    repo.crawl(star.url("/"))
    repo.later(hours=2)
    repo.cycle()
    paths = [one.path for one in star.log]
    assert paths[0] == "/robots.txt"
    assert paths.count("/robots.txt") == 1
    assert "/leaf3" not in paths
    assert repo.outcomes(star.url("/leaf3")) == [Failure.ROBOTS]
    repo.later(days=2)
    repo.cycle()
    assert len(star.requests("/robots.txt")) == 2


def test_the_user_agent_says_who_we_are(repo: Repo, site: Start) -> None:
    star = site(_star(1))
    repo.config(contact="https://crawler.example/about")
    repo.crawl(star.url("/"))
    for one in star.log:
        assert one.headers["user-agent"].startswith(f"recrawl/{__version__}")
        assert "https://crawler.example/about" in one.headers["user-agent"]


def test_rules_for_our_name_are_ours(repo: Repo, site: Start) -> None:
    star = site(_star(2))
    star["/robots.txt"] = text("User-agent: *\nDisallow: /\n\nUser-agent: Recrawl\nDisallow: /leaf1\n")
    repo.crawl(star.url("/"))
    assert star.asked() == ["/", "/leaf0"]


def _cycles(repo: Repo, number: int) -> None:
    for _ in range(number):
        repo.later(hours=2)
        repo.cycle()


# -- redirects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 308])
def test_a_permanent_redirect_is_an_old_address(repo: Repo, site: Start, status: int) -> None:
    here = site({"/": page("root", "/old"), "/old": moved("/new", status), "/new": page("walrus")})
    repo.crawl(here.url("/"))
    assert repo.states() == {here.url("/"): "live", here.url("/old"): "moved", here.url("/new"): "live"}
    assert repo.found("walrus") == {here.url("/new")}
    here.forget()
    repo.later(days=3)
    repo.cycle()
    assert sorted(here.asked()) == ["/", "/new"]


def test_a_kept_page_that_moves_must_move_twice(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/old"), "/old": page("walrus")})
    repo.crawl(here.url("/"))
    here["/old"], here["/new"] = moved("/new"), page("walrus")
    repo.later(hours=2)
    repo.cycle()
    assert repo.states()[here.url("/old")] == "missing"
    repo.crawl()
    assert repo.states()[here.url("/new")] == "live"
    repo.later(hours=5)
    repo.cycle()
    assert repo.states()[here.url("/old")] == "moved"
    assert repo.found("walrus") == {here.url("/new")}


@pytest.mark.parametrize("status", [302, 303, 307])
def test_what_a_temporary_redirect_leads_to_is_the_page(repo: Repo, site: Start, status: int) -> None:
    here = site({"/": page("root", "/now"), "/now": moved("/today", status), "/today": page("walrus", "/more")})
    here["/more"] = page("more")
    repo.crawl(here.url("/"))
    assert repo.states() == {here.url(path): "live" for path in ("/", "/now", "/more")}
    assert repo.found("walrus") == {here.url("/now")}
    here["/today"] = page("narwhal")
    repo.later(hours=2)
    repo.cycle()
    assert repo.outcomes(here.url("/now")) == ["new", "changed"]


def test_a_temporary_redirect_to_a_missing_page_deletes_nothing(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/now"), "/now": page("walrus")})
    repo.crawl(here.url("/"))
    here["/now"] = moved("/login", 302)
    for _ in range(3):
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/now")] == "live"
    assert repo.found("walrus") == {here.url("/now")}


def test_a_trailing_slash_is_learned(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/a", "/b", "/c"), "/c/": page("see", "/d", "/e", "/f.html")})
    here.pages |= {f"/{name}": moved(f"/{name}/") for name in "abcde"}
    here.pages |= {f"/{name}/": page(f"page {name}") for name in "abde"} | {"/f.html": page("a file")}
    repo.crawl(here.url("/"))
    assert {url for url, state in repo.states().items() if state == "live"} == {
        here.url(path) for path in ("/", "/a/", "/b/", "/c/", "/d/", "/e/", "/f.html")
    }
    assert not {"/d", "/e", "/f.html/"} & set(here.asked())


@pytest.mark.parametrize("status", [301, 302])
def test_redirects_in_a_circle_end(repo: Repo, site: Start, status: int) -> None:
    here = site({"/": page("root", "/a"), **{f"/{x}": moved(f"/{y}", status) for x, y in ("ab", "bc", "ca")}})
    summary = repo.crawl(here.url("/"))
    assert summary["failures"][Failure.REDIRECT_LOOP] == 1
    assert len(here.asked()) == 4


def test_a_circle_that_is_mended_is_seen(repo: Repo, site: Start) -> None:
    """A mistake of a day, in which a site sends everybody round in circles, must not cost its pages for ever."""
    here = site({"/": moved("/start"), "/start": moved("/")})
    repo.crawl(here.url("/"))
    _cycles(repo, 3)
    here["/start"] = page("walrus")
    repo.later(days=3)
    repo.crawl()
    repo.cycle()
    assert repo.found("walrus") == {here.url("/start")}


def test_a_chain_of_redirects_does_not_go_on_with_every_cycle(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/0"), **{f"/{n}": moved(f"/{n + 1}") for n in range(50)}})
    repo.config(redirects=3)
    repo.crawl(here.url("/"))
    for _ in range(4):
        repo.later(days=2)
        repo.cycle()
        repo.crawl()
    assert "/8" not in here.asked()


@pytest.mark.parametrize("status", [301, 302])
@pytest.mark.parametrize("hops", [3, 4])
def test_so_many_redirects_are_followed(repo: Repo, site: Start, status: int, hops: int) -> None:
    here = site({f"/{n}": moved(f"/{n + 1}", status) for n in range(hops)})
    here.pages |= {"/": page("root", "/0"), f"/{hops}": page("walrus")}
    repo.config(redirects=3)
    summary = repo.crawl(here.url("/"))
    if hops == 3:
        assert repo.found("walrus") == {here.url("/3" if status == 301 else "/0")}
    else:
        assert summary["failures"][Failure.REDIRECT_LIMIT] == 1
        assert repo.found("walrus") == set()


def test_redirects_between_sites(repo: Repo, site: Start) -> None:
    there, stranger = site({"/": page("there"), "/x": page("walrus"), "/y": page("y")}), site()
    here = site({"/": page("root", "/1", "/2", "/3"), "/1": moved(there.url("/x")), "/3": moved(stranger.url("/z"))})
    here["/2"] = moved(there.url("/y"), 302)
    repo.add(here.url("/"))
    repo.add(there.url("/"))
    repo.crawl()
    assert repo.states()[here.url("/1")] == "moved"
    assert repo.found("walrus") == {there.url("/x")}
    assert (repo.states()[here.url("/2")], repo.states()[there.url("/y")]) == ("moved", "live")
    assert repo.outcomes(here.url("/3")) == [Failure.REDIRECT_AWAY]
    assert stranger.log == []


def test_a_redirect_into_what_robots_bars_is_not_followed(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/a", "/b"), "/a": moved("/barred", 302), "/b": moved("/barred", 301)})
    here["/robots.txt"] = text("User-agent: *\nDisallow: /barred")
    repo.crawl(here.url("/"))
    assert "/barred" not in here.asked()
    assert repo.outcomes(here.url("/a")) == [Failure.ROBOTS]


def test_a_seed_that_moves_takes_its_site_along(repo: Repo, site: Start) -> None:
    here = site(_star(3))
    here["/robots.txt"] = text("User-agent: *\nDisallow: /leaf2")
    here.every = lambda asked: moved(here.url(asked.path, "b.localhost")) if asked.host == "a.localhost" else None
    repo.add(here.url("/", "a.localhost"))
    repo.json("crawl", "--allow-private")
    live = {url for url, state in repo.states().items() if state == "live"}
    assert live == {here.url(path, "b.localhost") for path in ("/", "/leaf0", "/leaf1")}
    there = [one.path for one in here.log if one.host == "b.localhost"]
    assert there[0] == "/robots.txt"
    assert "/leaf2" not in there
    here["/leaf0"] = page("news", "/leaf9")
    here["/leaf9"] = page("found later")
    repo.later(hours=2)
    repo.json("cycle", "--budget", 100, "--allow-private")
    repo.json("crawl", "--allow-private")
    assert repo.states()[here.url("/leaf9", "b.localhost")] == "live"


def test_a_seed_that_moves_takes_its_limits_along(repo: Repo, site: Start) -> None:
    here = site(_star(12))
    here.every = lambda asked: moved(here.url(asked.path, "b.localhost")) if asked.host == "a.localhost" else None
    repo.add(here.url("/", "a.localhost"), "--limit", 4, "--delay", 0.1, "--exclude", "/leaf0")
    repo.json("crawl", "--allow-private")
    there = [one for one in here.log if one.host == "b.localhost"]
    assert "/leaf0" not in [one.path for one in there]
    assert list(repo.states().values()).count("live") == 4
    assert _gap(there) >= 0.1 - JITTER


# -- deletion (spec C5) ---------------------------------------------------------------------------------

MISSING = Reply(page("no such page"), 404)


@pytest.mark.parametrize("status", [404, 410])
def test_missing_twice_is_gone(repo: Repo, site: Start, status: int) -> None:
    here = site(_star(8))
    leaf = here.url("/leaf3")
    repo.crawl(here.url("/"))
    here["/leaf3"] = Reply(page("no such page"), status)
    repo.later(hours=2)
    repo.cycle()
    assert repo.states()[leaf] == "missing"
    assert leaf in repo.found("leaf")
    repo.later(hours=5)
    repo.cycle()
    assert repo.outcomes(leaf) == ["new", Failure.MISSING, "gone"]
    assert repo.states()[leaf] == "gone"
    assert leaf not in repo.found("leaf")
    assert "leaf 3" in repo.run("show", leaf).out
    here.forget()
    repo.later(days=3)
    repo.cycle()
    assert "/leaf3" not in here.asked()


def test_missing_once_and_dropped_from_the_sitemap_is_gone(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    urls = [here.url(f"/leaf{n}") for n in range(8)]
    here["/sitemap.xml"] = sitemap(*urls)
    repo.crawl(here.url("/"))
    here["/leaf3"] = here["/leaf4"] = MISSING
    here["/sitemap.xml"] = sitemap(*(url for url in urls if url not in (urls[3], urls[5])))
    repo.later(days=2)
    repo.cycle()
    states = repo.states()
    assert (states[urls[3]], states[urls[4]], states[urls[5]]) == ("gone", "missing", "live")
    assert repo.outcomes(urls[3]) == ["new", "gone"]


def test_a_sitemap_that_cannot_be_read_has_dropped_nothing(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    here["/sitemap.xml"] = sitemap(*(here.url(f"/leaf{n}") for n in range(8)))
    repo.crawl(here.url("/"))
    here["/leaf3"] = MISSING
    here["/sitemap.xml"] = Reply(b"<urlset><url><loc>" + here.url("/leaf1").encode(), kind="application/xml")
    repo.later(days=2)
    repo.cycle()
    assert repo.states()[here.url("/leaf3")] == "missing"


SILENCES: dict[str, Reply | Callable[[Asked], Reply]] = {
    "timeout": Reply(wait=30),
    "500": Reply(b"", 500),
    "503": Reply(b"", 503, {"Retry-After": "1"}),
    "429": Reply(b"", 429, {"Retry-After": "1"}),
    "403": Reply(b"", 403),
    "304": Reply(b"", 304),
    "204": Reply(b"", 204),
    "to-another-site": moved("http://elsewhere.localhost:1/", 301),
    "to-a-circle": moved("/leaf3", 302),
    "a-picture": Reply(b"\x89PNG" * 99, kind="image/png"),
    "too-large": Reply(b"<p>" + b"x " * 1_000_000),
}


@pytest.mark.parametrize("name", SILENCES)
def test_silence_deletes_nothing(repo: Repo, site: Start, name: str) -> None:
    here = site(_star(8))
    leaf = here.url("/leaf3")
    limit = 10 if name == "timeout" else 60
    repo.config(timeout=limit, stall=limit, max_bytes=1_000_000, retries=0)
    repo.crawl(here.url("/"))
    here["/leaf3"] = SILENCES[name]
    for _ in range(2):
        repo.later(days=3)
        repo.cycle()
    assert len(here.requests("/leaf3")) == 3
    assert repo.states()[leaf] == "live"
    assert leaf in repo.found("leaf")
    assert "gone" not in repo.outcomes(leaf)
    here["/leaf3"] = page("narwhal")
    repo.later(days=30)
    repo.cycle()
    assert repo.outcomes(leaf)[-1] == "changed"
    assert repo.found("narwhal") == {leaf}


def test_a_robots_txt_that_changes_deletes_nothing(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    leaf = here.url("/leaf3")
    repo.crawl(here.url("/"))
    for words in ("User-agent: *\nDisallow: /leaf3", "User-agent: *\nDisallow: /"):
        here["/robots.txt"] = text(words)
        here.forget()
        repo.later(days=3)
        repo.cycle()
        assert "/leaf3" not in here.asked()
    assert repo.states()[leaf] == "barred"
    assert leaf in repo.found("leaf")
    del here["/robots.txt"]
    here["/leaf3"] = page("narwhal")
    for _ in range(2):  # one to see that the bar is lifted, one to visit
        repo.later(days=3)
        repo.crawl()
        repo.cycle()
    assert repo.found("narwhal") == {leaf}
    assert repo.states()[leaf] == "live"


def test_a_robots_txt_that_fails_deletes_nothing(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    repo.crawl(here.url("/"))
    here["/robots.txt"] = Reply(b"", 500)
    here.forget()
    for _ in range(2):
        repo.later(days=3)
        repo.cycle()
    assert here.asked() == []
    assert set(repo.states().values()) == {"live"}
    del here["/robots.txt"]
    repo.later(days=3)
    repo.cycle()
    assert len(here.asked()) == 9


@pytest.mark.parametrize("parent", [MISSING, Reply(b"", 500), Reply(page("no links any more"))])
def test_a_page_whose_parent_fails_stays(repo: Repo, site: Start, parent: Reply) -> None:
    here = site({**_star(8), "/leaf0": page("parent", "/child"), "/child": page("walrus")})
    repo.crawl(here.url("/"))
    here["/leaf0"] = parent
    for _ in range(3):
        repo.later(days=3)
        repo.cycle()
    assert repo.states()[here.url("/child")] == "live"
    assert repo.found("walrus") == {here.url("/child")}


def test_pages_that_vanish_together_are_given_time(repo: Repo, site: Start) -> None:
    here = site(_star(9))
    repo.crawl(here.url("/"))
    here.every = lambda asked: MISSING
    for hours in (2, 3, 10):
        repo.later(hours=hours)
        repo.cycle()
    assert set(repo.states().values()) == {"missing"}
    assert len(repo.found("leaf")) == 9
    repo.later(hours=48)
    repo.cycle()
    assert set(repo.states().values()) == {"gone"}
    assert repo.found("leaf") == set()


def test_pages_that_vanished_together_come_back(repo: Repo, site: Start) -> None:
    here = site(_star(9))
    repo.crawl(here.url("/"))
    here.every = lambda asked: MISSING
    for hours in (2, 3):
        repo.later(hours=hours)
        repo.cycle()
    here.every = None
    repo.later(hours=10)
    repo.cycle()
    assert set(repo.states().values()) == {"live"}
    assert repo.outcomes(here.url("/leaf1")) == ["new", Failure.MISSING, Failure.MISSING, "unchanged"]


def test_how_long_vanished_pages_are_given_is_a_setting(repo: Repo, site: Start) -> None:
    here = site(_star(9))
    repo.config(gone_hours=4)
    repo.crawl(here.url("/"))
    here.every = lambda asked: MISSING
    for hours in (2, 3, 5):
        repo.later(hours=hours)
        repo.cycle()
    assert set(repo.states().values()) == {"gone"}


def test_missing_once_and_back_again_starts_over(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    leaf = here.url("/leaf3")
    repo.crawl(here.url("/"))
    for answer, state in ((MISSING, "missing"), (page("back"), "live"), (MISSING, "missing"), (page("back"), "live")):
        here["/leaf3"] = answer
        repo.later(days=1)
        repo.cycle()
        assert repo.states()[leaf] == state
    assert repo.outcomes(leaf) == ["new", Failure.MISSING, "changed", Failure.MISSING, "unchanged"]


def test_a_gone_page_that_the_sitemap_names_again_comes_back(repo: Repo, site: Start) -> None:
    here = site(_star(8))
    leaf = here.url("/leaf3")
    repo.crawl(here.url("/"))
    here["/leaf3"] = MISSING
    for _ in range(2):
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[leaf] == "gone"
    here["/leaf3"] = page("narwhal")
    here["/sitemap.xml"] = sitemap(leaf)
    for _ in range(2):  # one to read the sitemap, one to visit
        repo.later(days=3)
        repo.cycle()
    assert repo.states()[leaf] == "live"
    assert repo.found("narwhal") == {leaf}


def test_a_page_that_never_was_is_asked_for_ever_less(repo: Repo, site: Start) -> None:
    here = site({"/": page("root", "/dead")})
    repo.crawl(here.url("/"))
    for _ in range(10):
        repo.later(days=1)
        repo.cycle()
        repo.crawl()
    assert len(here.requests("/dead")) <= 3


# -- validators (spec C6) -------------------------------------------------------------------------------

DATES = ("Mon, 01 Jan 2024 10:00:00 GMT", "Tue, 02 Jan 2024 10:00:00 GMT")


@pytest.mark.parametrize(
    ("before", "after", "header"),
    [({"etag": '"1"'}, {"etag": '"2"'}, "if-none-match"),
     ({"etag": 'W/"a"'}, {"etag": 'W/"b"'}, "if-none-match"),
     ({"modified": DATES[0]}, {"modified": DATES[1]}, "if-modified-since")],
)  # fmt: skip
def test_unchanged_pages_cost_no_download(
    repo: Repo, site: Start, before: dict[str, Any], after: dict[str, Any], header: str
) -> None:
    here = site({"/": Reply(page("walrus"), **before)})
    repo.crawl(here.url("/"))
    repo.later(hours=2)
    repo.cycle()
    here["/"] = Reply(page("narwhal"), **after)
    repo.later(hours=2)
    repo.cycle()
    repo.cycle()
    visits = repo.visits(here.url("/"))
    assert [(visit["status"], visit["outcome"]) for visit in visits] == [
        (200, "new"),
        (304, "unchanged"),
        (200, "changed"),
        (304, "unchanged"),
    ]
    assert [one.headers.get(header) for one in here.requests("/")] == [
        None, *before.values(), *before.values(), *after.values(),
    ]  # fmt: skip
    assert repo.found("narwhal") == {here.url("/")}


def test_an_honest_server_is_audited_every_tenth_time_and_stays_trusted(repo: Repo, site: Start) -> None:
    here = site({"/": Reply(page("walrus"), etag='"1"')})
    repo.crawl(here.url("/"))
    _cycles(repo, 13)
    conditional = ["if-none-match" in one.headers for one in here.requests("/")]
    assert conditional == [False, *[True] * 10, False, True, True]
    assert set(repo.outcomes(here.url("/"))) == {"new", "unchanged"}


def test_an_etag_that_hides_changes_is_found_out(repo: Repo, server: Misbehaving) -> None:
    first, second = server.url("/etag-lies"), server.url("/etag-lies/2")
    repo.add(first, second, "--depth", 0)
    repo.crawl()
    _cycles(repo, 13)
    for url in (first, second):
        assert repo.outcomes(url) == ["new", *["unchanged"] * 10, "changed", "changed", "changed"]


@pytest.mark.parametrize("header", ["etag", "modified"])
def test_a_validator_that_stays_while_the_text_changes_is_not_believed(repo: Repo, site: Start, header: str) -> None:
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]

    def always(asked: Asked) -> Reply:
        name, value = ("ETag", '"1"') if header == "etag" else ("Last-Modified", DATES[0])
        return Reply(page(f"answer {words[len(here.log)]}"), headers={name: value})

    here = site({"/": always})
    repo.crawl(here.url("/"))
    _cycles(repo, 4)
    assert repo.outcomes(here.url("/")) == ["new", *["changed"] * 4]
    sent = [bool({"if-none-match", "if-modified-since"} & set(one.headers)) for one in here.requests("/")]
    assert sent == [False, True, True, False, False]


def test_a_last_modified_that_is_always_now_is_not_believed(repo: Repo, server: Misbehaving) -> None:
    urls = [server.url("/modified-now"), server.url("/modified-now/2")]
    repo.add(*urls, "--depth", 0)
    repo.crawl()
    before = len(server.log)
    _cycles(repo, 2)
    assert repo.outcomes(urls[0]) == ["new", "unchanged", "unchanged"]
    assert not any("if-modified-since" in one.headers for one in server.log[before:])


def test_new_etags_for_the_same_text_are_no_change(repo: Repo, server: Misbehaving) -> None:
    repo.add(server.url("/etag-new"), "--depth", 0)
    repo.crawl()
    _cycles(repo, 2)
    assert repo.outcomes(server.url("/etag-new")) == ["new", "unchanged", "unchanged"]


# -- limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_depth_is_counted_from_the_seed(repo: Repo, site: Start, depth: int) -> None:
    here = site({f"/{n or ''}": page(f"page {n}", f"/{n + 1}", "/") for n in range(9)})
    repo.crawl(here.url("/"), "--depth", str(depth))
    assert here.asked() == [f"/{n or ''}" for n in range(depth + 1)]


def test_depth_is_the_shortest_way(repo: Repo, site: Start) -> None:
    """What is first found too deep is kept when a shorter way to it turns up."""
    here = site({"/": page("root", "/a", "/b"), "/a": page("a", "/c"), "/b": page("b", "/d"), "/c": page("c", "/e")})
    here.pages |= {"/d": page("d", "/f"), "/e": page("e"), "/f": page("f")}
    repo.crawl(here.url("/"), "--depth", "2")
    assert set(here.asked()) == {"/", "/a", "/b", "/c", "/d"}
    here["/b"] = page("b", "/d", "/e")
    repo.later(hours=2)
    repo.cycle()
    repo.crawl()
    assert "/e" in here.asked()


def test_so_many_pages_and_no_more(repo: Repo, site: Start) -> None:
    here = site(_star(30))
    here["/leaf0"] = here["/leaf1"] = MISSING
    repo.config(per_server=4)
    repo.crawl(here.url("/"), "--limit", "10")
    assert list(repo.states().values()).count("live") == 10
    assert len(here.asked()) == 12
    repo.later(hours=2)
    repo.crawl()
    repo.cycle()
    assert list(repo.states().values()).count("live") == 10


def test_only_what_is_included_and_not_excluded(repo: Repo, site: Start) -> None:
    paths = ("/docs/a", "/docs/b?print=1", "/docs/private/c", "/blog/d", "/docs/e.pdf")
    here = site({"/": page("root", *paths), **{path: page(path) for path in paths}})
    options = ("--include", "/docs/*", "--exclude", "/docs/private/*", "--exclude", r"re:\.pdf$")
    repo.crawl(here.url("/"), *options)
    assert sorted(here.asked()) == ["/", "/docs/a", "/docs/b?print=1"]


TRAPS = ("calendar", "growing-paths", "session-ids", "query-orders", "pages-endless")


@pytest.fixture(scope="module")
def trapped(server: Misbehaving, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo.create(tmp_path_factory.mktemp("trapped") / "repo", max_folder=60, max_queries=40)
    repo.add(*(f"http://{trap}.localhost:{server.port}/{trap}" for trap in TRAPS))
    assert repo.crawl()["finished"]
    return repo


@pytest.mark.parametrize(
    ("trap", "most"),
    [("calendar", 61), ("growing-paths", 60), ("session-ids", 6), ("query-orders", 2), ("pages-endless", 41)],
)
def test_traps_end(trapped: Repo, server: Misbehaving, trap: str, most: int) -> None:
    pages = [url for url, state in trapped.states().items() if f"//{trap}." in url and state == "live"]
    assert 1 <= len(pages) <= most


CALENDARS: dict[str, Callable[[int, int], str]] = {
    "folders": lambda year, month: f"/calendar/{year}/{month:02}/",
    "days": lambda year, month: f"/events/{year}-{month:02}-01",
    "query": lambda year, month: f"/events?month={year}-{month:02}",
    "parts": lambda year, month: f"/events?month={month}&year={year}",
}


@pytest.mark.parametrize("name", CALENDARS)
def test_a_calendar_ends_with_the_default_limits(repo: Repo, site: Start, name: str) -> None:
    form = CALENDARS[name]

    def show(asked: Asked) -> Reply:
        year = int(next(iter(re.findall(r"\d{4}", asked.path)), "2024"))
        near = [form(year + step, month) for step in (-1, 1) for month in (3, 9)]
        return Reply(page("Nothing is planned.", *near))

    here = site()
    here.every = show
    repo.crawl(here.url(form(2024, 3)), "--limit", "400")
    assert len(here.asked()) < 100


TREE = {"/": ("/a", "/b"), "/a": ("/a1", "/a2"), "/b": ("/b1", "/b2"), "/a1": (), "/a2": (), "/b1": (), "/b2": ()}


@pytest.mark.parametrize("order", ["breadth", "depth"])
def test_breadth_or_depth_first(repo: Repo, site: Start, order: str) -> None:
    here = site({path: page(path, *links) for path, links in TREE.items()})
    repo.config(order=order, delay=0.2)
    repo.crawl(here.url("/"))
    asked = here.asked()
    assert sorted(asked) == sorted(TREE)
    depths = [len(path) - 1 for path in asked]
    assert depths == ([0, 1, 1, 2, 2, 2, 2] if order == "breadth" else [0, 1, 2, 2, 1, 2, 2])
    if order == "depth":
        assert asked[1][1] == asked[2][1] == asked[3][1]
