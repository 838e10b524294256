"""`add` and `rm`: what is kept, how much of it, and how that is changed later."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recrawl.record.rows import ScopeRow
from recrawl.record.store.sql.tables.pages import SqlPages
from tests.complaints import complaint
from tests.world import Repo, Site, page, sitemap

Start = Callable[..., Site]

TREE = {
    "/": page("front", "/docs/", "/shop/", "/about"),
    "/docs/": page("docs", "/docs/one", "/docs/print/one"),
    "/docs/one": page("one", "/docs/two"),
    "/docs/two": page("two"),
    "/docs/print/one": page("print"),
    "/shop/": page("shop", "/shop/1", "/shop/2", "/shop/3"),
    "/shop/1": page("first"),
    "/shop/2": page("second"),
    "/shop/3": page("third"),
    "/about": page("about"),
}


def seeds(repo: Repo) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((repo.folder / "recrawl.toml").read_text()).get("seed", [])
    return found


def paths(repo: Repo, site: Site, state: str = "live") -> set[str]:
    return {row["url"].removeprefix(site.url("")) for row in repo.json("pages", "--state", state)}


# -- what is kept ----------------------------------------------------------------------------------------


def test_whole_site(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.crawl(web.url())
    assert paths(repo, web) == set(TREE)


def test_depth_is_stored(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url(), "--depth", 1)
    repo.crawl()
    assert paths(repo, web) == {"/", "/docs/", "/shop/", "/about"}


def test_depth_0_is_one_page(repo: Repo, site: Start) -> None:
    web = site({**TREE, "/sitemap.xml": page("")})
    web["/sitemap.xml"] = sitemap(web.url("/about"))
    repo.add(web.url("/docs/"), "--depth", 0)
    repo.crawl()
    assert paths(repo, web) == {"/docs/"}


def test_include_and_exclude_are_stored(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url("/docs/"), "--include", "/docs/*", "--include", "/shop/", "--exclude", "*/print/*")
    repo.crawl()
    assert paths(repo, web) == {"/docs/", "/docs/one", "/docs/two"}


def test_regular_expressions(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url(), "--exclude", "re:/[0-9]+$")
    repo.crawl()
    assert not {"/shop/1", "/shop/2", "/shop/3"} & paths(repo, web)
    assert "/shop/" in paths(repo, web)


def test_limit_is_stored(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url(), "--limit", 4)
    repo.crawl()
    assert len(paths(repo, web)) == 4
    repo.crawl()
    assert len(paths(repo, web)) == 4
    assert len(set(web.asked())) == 4


def test_private_addresses_need_permission(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.run("add", web.url())
    summary = repo.json("crawl")
    assert summary["new"] == 0
    assert not web.log
    assert "private" in repo.run("why", web.url()).out.lower() or "refused" in repo.run("why", web.url()).out


def test_private_addresses_for_one_run(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.run("add", web.url(), "--depth", 0)
    assert repo.json("crawl", "--allow-private")["new"] == 1
    assert not seeds(repo)[0].get("allow_private", False)


def test_delay_is_stored(repo: Repo, site: Start) -> None:
    web = site({"/": page("front", "/a", "/b"), "/a": page("a"), "/b": page("b")})
    repo.add(web.url(), "--delay", 0.3)
    repo.crawl()
    times = [one.at for one in web.log]
    assert min(later - sooner for sooner, later in itertools.pairwise(times)) > 0.25
    assert seeds(repo)[0]["delay"] == 0.3


def test_delay_for_one_run(repo: Repo, site: Start) -> None:
    web = site({"/": page("front", "/a", "/b"), "/a": page("a"), "/b": page("b")})
    repo.add(web.url(), "--delay", 60)
    assert repo.json("crawl", "--delay", 0)["new"] == 3
    assert seeds(repo)[0]["delay"] == 60


def test_urls_without_scheme_or_slash(repo: Repo) -> None:
    repo.run(
        "add", "example.org", "HTTP://Example.COM:80/a/../b#top", "http://c.example/?utm_source=x", "d.example:8080/x"
    )
    assert [seed["url"] for seed in seeds(repo)] == [
        "https://example.org/",
        "http://example.com/b",
        "http://c.example/",
        "https://d.example:8080/x",
    ]


def test_file_keeps_its_comments(repo: Repo) -> None:
    file = repo.folder / "recrawl.toml"
    file.write_text("# mine\n" + file.read_text())
    repo.run("add", "example.org")
    assert file.read_text().startswith("# mine\n")


# -- changing one's mind -----------------------------------------------------------------------------------


def test_adding_again_changes_it(repo: Repo) -> None:
    repo.run("add", "example.org", "--depth", 3, "--limit", 10, "--exclude", "/x/*")
    repo.run("add", "https://example.org/", "--depth", 1, "--clear", "limit")
    assert seeds(repo) == [{"url": "https://example.org/", "depth": 1, "exclude": ["/x/*"]}]


def test_a_wider_scope_finds_more(repo: Repo, site: Start) -> None:
    """Links that were out of scope when their page was read are not lost."""
    web = site(TREE)
    repo.add(web.url(), "--depth", 1)
    repo.crawl()
    repo.add(web.url(), "--clear", "depth")
    repo.crawl()
    assert paths(repo, web) == set(TREE)


def test_a_narrower_scope_leaves_pages_alone(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.crawl(web.url())
    repo.add(web.url(), "--exclude", "/shop/*")
    web.forget()
    repo.later(hours=30)
    repo.cycle()
    assert "/docs/one" in web.asked()
    assert "/shop/1" not in web.asked()


def test_only_pages_of_changed_scopes_are_checked(repo: Repo, site: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[list[int] | None] = []

    def rows(pages: SqlPages, sites: list[int] | None = None) -> Iterator[ScopeRow]:
        checked.append(sites)
        return scope_rows(pages, sites)

    scope_rows = SqlPages.scope_rows
    monkeypatch.setattr(SqlPages, "scope_rows", rows)
    first, second = site(TREE), site(TREE)
    repo.crawl(first.url())
    repo.crawl(second.url())
    repo.add(first.url(), "--exclude", "/shop/*")
    repo.crawl()
    repo.crawl()
    assert checked == [None, [], [0]]  # everything once, no page of a site that is new, the site that has changed
    assert "/shop/1" in paths(repo, first, "dropped")
    assert "/shop/1" in paths(repo, second)


def test_a_larger_limit_finds_more(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url(), "--limit", 3)
    repo.crawl()
    repo.add(web.url(), "--limit", 100)
    repo.crawl()
    assert paths(repo, web) == set(TREE)


def test_rm_stops_visits_and_keeps_versions(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.crawl(web.url())
    assert repo.found("first") == {web.url("/shop/1")}
    assert "10 pages" in repo.run("rm", web.url()).out
    assert seeds(repo) == []
    assert paths(repo, web, "dropped") == set(TREE)
    assert repo.found("first") == set()
    web.forget()
    repo.later(hours=30)
    assert repo.cycle()["visits"] == 0
    assert not web.log
    assert "first" in repo.run("show", web.url("/shop/1")).out
    assert "rm" in repo.run("why", web.url()).out


def test_rm_keeps_pages_of_another_seed(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.add(web.url())
    repo.add(web.url("/docs/"), "--include", "/docs/*")
    repo.crawl()
    repo.run("rm", web.url())
    assert paths(repo, web) == {path for path in TREE if path.startswith("/docs/")}


def test_added_again_after_rm(repo: Repo, site: Start) -> None:
    web = site(TREE)
    repo.crawl(web.url())
    repo.run("rm", web.url())
    repo.crawl(web.url())
    repo.later(hours=30)
    repo.cycle()
    assert paths(repo, web) == set(TREE)
    assert repo.found("first") == {web.url("/shop/1")}


def test_rm_of_an_unknown_url(repo: Repo) -> None:
    repo.run("add", "example.org")
    complaint(repo.run("rm", "example.com", code=None), "https://example.com/", "recrawl sites")
    complaint(repo.run("rm", "example.org", "example.com", code=None))
    assert len(seeds(repo)) == 1  # all or nothing


def test_rm_of_an_http_site_by_its_bare_name(repo: Repo) -> None:
    """There is only one site that it can mean."""
    repo.run("add", "http://example.org/")
    repo.run("rm", "example.org")
    assert seeds(repo) == []


# -- mistakes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "http://", "ftp://example.org/", "http://a b/", "x.org:99999", "mailto:me@example.org", "/tmp"]
)
def test_invalid_urls(repo: Repo, url: str) -> None:
    complaint(repo.run("add", url, code=None), f"'{url}'")
    assert seeds(repo) == []


def test_one_invalid_url_adds_nothing(repo: Repo) -> None:
    complaint(repo.run("add", "example.org", "ftp://x", code=None))
    assert seeds(repo) == []


@pytest.mark.parametrize("pattern", ["re:(", "docs/*", "re:[[a]", "re:(?P<a>.)(?P<a>.)"])
@pytest.mark.parametrize("option", ["--include", "--exclude"])
def test_invalid_patterns(repo: Repo, option: str, pattern: str) -> None:
    complaint(repo.run("add", "example.org", option, pattern, code=None), f"'{pattern}'")
    assert seeds(repo) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("--depth", "-1"), ("--limit", "-1"), ("--delay", "-0.5"), ("--delay", "nan"), ("--delay", "inf")],
)
def test_invalid_numbers(repo: Repo, option: str, value: str) -> None:
    refused = repo.run("add", "example.org", option, value, code=2)
    assert option.strip("-") in refused.err
    assert seeds(repo) == []


@pytest.mark.parametrize("verb", ["crawl", "cycle"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_invalid_delay_of_a_run(repo: Repo, verb: str, value: str) -> None:
    repo.run("add", "http://127.0.0.1:9/")
    refused = repo.run(verb, "--for", "0s", "--delay", value, code=2)
    assert "delay" in refused.err
    assert f"{float(value):g}" in refused.err
