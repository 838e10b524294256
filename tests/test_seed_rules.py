"""Rules of seeds: a page never loosens the rules of its site, and adding a URL again keeps what is not named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.options import SiteOptions
from recrawl.discover.scope import Scopes
from recrawl.discover.urls import UrlRules
from recrawl.errors import UnknownName
from recrawl.repository.opening import options_of
from recrawl.repository.seed_rules import scopes_of, site_options
from recrawl.repository.seeds import with_seeds
from recrawl.settings import Seed, Settings
from tests.world import Repo, Site, page

SITE = "https://a.example/"
PAGE = "https://a.example/news/today"
Start = Callable[..., Site]
TREE = {
    "/": page("front", *(f"/p{number}" for number in range(12)), "/far/"),
    **{f"/p{number}": page(f"page {number}", "/far/") for number in range(12)},
    "/far/": page("far", "/far/1"),
    "/far/1": page("farther", "/far/2"),
    "/far/2": page("farthest"),
}


def joined(*seeds: Seed) -> SiteOptions:
    return site_options(seeds, UrlRules(), 1.0)["a.example"]


def in_scope(url: str, depth: int, *seeds: Seed) -> bool:
    return Scopes(scopes_of(seeds, UrlRules())).refuses(url, depth) is None


@pytest.mark.parametrize("page_seed", [Seed(PAGE), Seed(PAGE, limit=500), Seed(PAGE, depth=3, limit=0)])
def test_a_page_does_not_change_the_limit_of_its_site(page_seed: Seed) -> None:
    assert joined(Seed(SITE, limit=20), page_seed).limit == 20
    assert joined(page_seed, Seed(SITE, limit=20)).limit == 20
    assert joined(page_seed, Seed(SITE)).limit is None


def test_a_seed_beside_another_does_not_lift_its_limit() -> None:
    docs, blog = "https://a.example/docs/", "https://a.example/blog/"
    assert joined(Seed(docs, limit=20), Seed(blog)).limit == 20
    assert joined(Seed(docs, limit=20), Seed(blog, limit=30)).limit == 50


def test_a_page_can_only_raise_the_delay() -> None:
    assert joined(Seed(SITE, delay=5), Seed(PAGE, delay=0)).delay == 5
    assert joined(Seed(SITE), Seed(PAGE, delay=0)).delay == 1.0
    assert joined(Seed(SITE, delay=0), Seed(PAGE, delay=3)).delay == 3
    assert joined(Seed(SITE, delay=0), Seed(PAGE)).delay == 0
    assert joined(Seed(SITE), Seed(PAGE)).delay is None


def test_what_counts_as_a_change_is_the_rule_of_the_site() -> None:
    level = joined(Seed(SITE, change="text"), Seed(PAGE, change="significant")).change
    assert level == joined(Seed(SITE, change="text")).change


def test_http_and_https_are_one_site() -> None:
    options = options_of(Settings(seeds=(Seed("http://a.example/", limit=20, delay=3.0),)))
    assert options.of_site("https://a.example") == options.of_site("http://a.example")
    assert options.of_site("https://a.example").limit == 20


RULES = st.builds(
    Seed,
    st.sampled_from([SITE, "https://a.example/docs/", PAGE]),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 50),
    st.sampled_from([(), ("/docs/*",)]),
    st.sampled_from([(), ("*/old/*",)]),
)


@given(seeds=st.lists(RULES, max_size=3, unique_by=lambda seed: seed.url), depth=st.integers(1, 4))
def test_a_page_without_rules_brings_only_itself(seeds: list[Seed], depth: int) -> None:
    """Whatever rules a site has, a page that names none leaves every other URL as it was."""
    site_seeds = [Seed(SITE, depth=1), *(seed for seed in seeds if seed.url != SITE)]
    added = Seed("https://a.example/docs/added")
    for url in ("https://a.example/x", "https://a.example/docs/old/x", PAGE, SITE):
        assert in_scope(url, depth, *site_seeds) == in_scope(url, depth, *site_seeds, added)
    assert in_scope(added.url, 0, *site_seeds, added)


@given(seeds=st.lists(RULES, min_size=1, max_size=3, unique_by=lambda seed: seed.url), depth=st.integers(1, 4))
def test_patterns_of_a_site_hold_for_its_pages(seeds: list[Seed], depth: int) -> None:
    whole = Seed(SITE, exclude=("*/private/*",))
    others = [seed for seed in seeds if seed.url != SITE]
    assert not in_scope("https://a.example/docs/private/x", depth, whole, *others)


def test_a_site_added_after_its_pages_is_crawled_whole() -> None:
    assert in_scope("https://a.example/x", 9, Seed(PAGE, depth=0), Seed(SITE))


def test_adding_again_keeps_what_is_not_named() -> None:
    before = Settings(seeds=(Seed(SITE, depth=3, limit=20, exclude=("/x/*",), delay=2.0), Seed("https://b.example/")))
    after, (addition,) = with_seeds(before, [SITE], {"limit": 50})
    assert after.seeds == (Seed(SITE, 3, 50, (), ("/x/*",), False, 2.0), before.seeds[1])
    assert addition.notes == ("limit: 20 → 50",)
    assert str(addition) == f"changed {SITE} (limit: 20 → 50)"
    after, (addition,) = with_seeds(after, [SITE], {}, ["limit", "exclude"])
    assert after.seeds[0] == Seed(SITE, 3, None, (), (), False, 2.0)
    assert addition.notes == ("limit: 50 → none", "exclude: /x/* → none")
    assert with_seeds(after, [SITE], {})[1][0].notes == ("already tracked; nothing changes",)
    with pytest.raises(UnknownName, match="did you mean 'limit'"):
        with_seeds(after, [SITE], {}, ["limits"])


def test_adding_seeds_keeps_alerts_and_shares() -> None:
    before = Settings({"delay": 2.0}, alerts=(), shares=())
    after, _ = with_seeds(before, [SITE], {})
    assert (after.values, after.alerts, after.shares) == (before.values, before.alerts, before.shares)


def test_a_page_of_a_limited_site(repo: Repo, site: Start) -> None:
    """The case of a user: a site of 5 pages stays a site of 5 pages."""
    web = site(TREE)
    repo.add(web.url(), "--limit", 5)
    assert repo.json("crawl")["new"] == 5
    told = repo.run("add", web.url("/far/")).out
    assert "the limit of its site is 5 pages" in told
    repo.json("crawl")
    repo.later(hours=30)
    repo.cycle()
    assert sum(row["state"] == "live" for row in repo.pages().values()) == 5
    assert len(set(web.asked())) == 5


def test_a_page_of_a_site_with_rules(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url(), "--depth", 1, "--exclude", "/p1*")
    repo.crawl()
    before = set(repo.pages())
    told = repo.run("add", web.url("/far/2")).out
    assert "this page only" in told
    repo.json("crawl")
    assert set(repo.pages()) == before | {web.url("/far/2")}


def test_cli_says_what_changes(repo: Repo) -> None:
    assert repo.run("add", "a.example", "--limit", 20).out == f"added {SITE}\n"
    assert repo.run("add", "a.example", "--depth", 2).out == f"changed {SITE} (depth: none → 2)\n"
    assert repo.json("add", "a.example", "--clear", "limit")[0]["notes"] == ["limit: 20 → none"]
    assert "rule" in repo.run("add", "a.example", "--clear", "speed", code=2).err
