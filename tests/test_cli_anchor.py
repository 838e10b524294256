"""`recrawl anchor`: found on a living site, told in tables and JSON, named by hand and freed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.complaints import complaint
from tests.world import Page, Repo, Site, page

MENU = ("/", "/about", "/contact", "/latest")


class News(NamedTuple):
    """A repository of a news site, only to be read, and the addresses of the site."""

    repo: Repo
    url: Callable[[str], str]


def latest(day: int) -> bytes:
    return page(f"The news of day {day}", *MENU, *(f"/news/{k}" for k in range(max(0, day * 2 - 6), day * 2)))


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Iterator[News]:
    """Its front page never changes; what is new is named by /latest, which every page's menu links."""
    repo = Repo.create(tmp_path_factory.mktemp("news") / "repo", change="text")
    pages: dict[str, Page] = {
        "/": page("Welcome", *MENU),
        "/about": page("About us", *MENU, "/old/1", "/old/2", "/old/3"),
        "/contact": page("Write to us", *MENU),
        "/latest": latest(0),
        **{f"/old/{k}": page(f"An old story {k}", *MENU) for k in (1, 2, 3)},
    }
    with Site(pages) as site:
        repo.crawl(site.url())
        for day in range(1, 6):
            repo.later(hours=30)
            for k in (day * 2 - 2, day * 2 - 1):
                site[f"/news/{k}"] = page(f"Story {k}", *MENU, f"/news/{max(0, k - 1)}")
            site["/latest"] = latest(day)
            repo.cycle()
            repo.run("crawl")
        yield News(repo, site.url)


def test_the_anchor_is_the_page_that_links_the_news(news: News) -> None:
    told = news.repo.json("anchor", news.url("/"))
    assert told["anchor"]["url"] == news.url("/latest")
    assert told["anchor"]["score"] > max(other["score"] for other in told["runners_up"])
    assert told["anchor"]["named"] is False
    assert "newest of the site" in told["anchor"]["why"]
    assert news.url("/") in [other["url"] for other in told["runners_up"]]


def test_depths_are_counted_from_it(news: News) -> None:
    told = news.repo.json("anchor", news.url("/"))
    by_depth = {row["depth"]: row for row in told["depths"]}
    assert by_depth[0]["pages"] == 1
    assert by_depth[0]["changed"] == 1.0, "it had news at every visit"
    assert by_depth[1]["changed"] == 0.0
    reached = [row for row in told["depths"] if row["depth"] is not None]
    assert reached[-1]["pages_up_to"] == sum(row["pages"] for row in reached)
    assert sum(row["pages"] for row in told["depths"]) == told["pages"]
    assert told["recommended"]["n"] == 0, "articles stay as they are"
    assert told["recommended"]["pages"] == 1


def test_any_page_of_the_site_is_accepted(news: News) -> None:
    one, other = (news.repo.json("anchor", news.url(path)) for path in ("/old/1", "/"))
    assert one["anchor"]["url"] == other["anchor"]["url"]
    assert [row["pages"] for row in one["depths"]] == [row["pages"] for row in other["depths"]]


def test_output_as_text(news: News) -> None:
    shown = news.repo.run("anchor", news.url("/"), "--every", "1d").out
    assert f"anchor: {news.url('/latest')}\n" in shown
    assert "expected changes after 24 h" in shown
    assert "recommended: n = 0, 1 page every 24 h; at depth 1, " in shown


def test_summary_of_all_sites(news: News) -> None:
    (row,) = news.repo.json("anchor")
    assert row["anchor"]["url"] == news.url("/latest")
    cells = news.repo.run("anchor", "--no-header").out.rstrip("\n").split("\t")
    assert cells[0].rstrip("/") == news.url("").rstrip("/")
    assert cells[2] == news.url("/latest")


def test_set_and_reset_by_the_user(news: News) -> None:
    named = news.repo.json("anchor", news.url("/"), "--set", news.url("/about"))
    assert named["anchor"]["url"] == news.url("/about")
    assert named["anchor"]["named"] is True
    assert "named by hand" in named["anchor"]["why"]
    assert named["runners_up"][0]["url"] == news.url("/latest")
    assert news.repo.run("config", "anchors").out.strip() == news.url("/about")
    assert news.repo.json("anchor", news.url("/"))["anchor"]["named"] is True, "it is kept"
    assert news.repo.json("anchor", "--set", news.url("/old/1"))[0]["anchor"]["url"] == news.url("/old/1")
    freed = news.repo.json("anchor", news.url("/"), "--auto")
    assert freed["anchor"]["url"] == news.url("/latest")
    assert freed["anchor"]["named"] is False


def test_the_next_cycle_uses_the_anchor_of_the_user(repo: Repo) -> None:
    """At once, although depths are counted from the anchors only every few cycles."""
    with Site({"/": page("Front", "/a", "/b"), "/a": page("A"), "/b": page("B", "/a")}) as site:
        repo.crawl(site.url())
        repo.config(policy="anchor-depth(n=0, every=1, rest=0, again=8)", budget=1)

        def visited() -> list[str]:
            repo.later(hours=2)
            site.forget()
            repo.cycle(1)
            return site.asked()

        assert visited() == ["/"]
        assert visited() == ["/"]
        repo.run("anchor", "--set", site.url("/b"))
        assert repo.json("why", site.url("/b"))["plan"]["place"] == 1
        assert visited() == ["/b"]
        assert visited() == ["/b"]
        repo.run("anchor", "--set", site.url("/a"))
        assert visited() == ["/a"]
        repo.run("anchor", site.url(), "--auto")
        assert repo.json("why", site.url("/"))["plan"]["place"] == 1
        assert visited() == ["/"]


def test_before_anything_was_visited_twice(repo: Repo) -> None:
    with Site({"/": page("Front", "/a"), "/a": page("A", "/b"), "/b": page("B", "/c"), "/c": page("C")}) as site:
        repo.crawl(site.url())
        told = repo.json("anchor", site.url())
        assert told["anchor"]["url"] == site.url("/")
        assert "the root itself" in told["anchor"]["why"]
        assert told["uniform"] is None
        assert told["recommended"]["n"] == 2
        assert repo.json("anchor", site.url(), "--per-minute", "0.006")["recommended"]["n"] == 1, "2 pages in 6 hours"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--every", "never"], "invalid duration"),
        (["--every", "0s"], "invalid period of 0 s"),
        (["--per-minute", "-1"], "-1 pages per minute"),
        (["elsewhere.example"], "not in this repository"),
        (["--auto"], "anchor SITE --auto"),
        (["--set", "http://elsewhere.example/x"], "not known"),
    ],
)
def test_errors(news: News, words: list[str], says: str) -> None:
    complaint(news.repo.run("anchor", *words, code=None), says)


def test_an_anchor_of_another_site_is_refused(repo: Repo) -> None:
    with Site({"/": page("One")}) as one, Site({"/": page("Two")}) as two:
        repo.crawl(one.url(), two.url())
        complaint(repo.run("anchor", one.url(), "--set", two.url(), code=None), "is not a page of")


def test_an_empty_repository(repo: Repo) -> None:
    complaint(repo.run("anchor", code=None), "recrawl crawl")
