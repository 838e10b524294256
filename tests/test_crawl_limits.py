"""Where a cycle's budget goes on real servers: limits of sites, bytes, paces, reserves, and who turns us away."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.crawl import cycles
from recrawl.crawl.options import Spending
from recrawl.crawl.state.limits import expected_bytes, visits_of
from recrawl.crawl.visits.machine import ByteBudget
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from tests.crashes import SMALL, Bench, choices, judge
from tests.test_crawl_resume import Snapshots
from tests.world import Reply, Repo, Site, page, text

Start = Callable[..., Site]


def pages(number: int, size: int = 200) -> dict[str, Reply]:
    """A front page and so many others, each of about that many bytes."""
    names = [f"/{index:02d}" for index in range(number - 1)]
    body = {name: Reply(page(f"{name} " + "word " * (size // 5))) for name in names}
    return {"/": Reply(page("front", *names)), **body}


@pytest.fixture
def two(repo: Repo, site: Start) -> tuple[Site, Site]:
    """Two sites of twelve pages, crawled a day ago, one after the other: the first has the oldest copies."""
    both = site(pages(12)), site(pages(12))
    repo.config(policy="round-robin")
    for one in both:
        repo.crawl(one.url())
    repo.later(days=1)
    for one in both:
        one.forget()
    return both


def asked(*sites: Site) -> list[int]:
    """How many pages each was asked for."""
    return [len(one.asked()) for one in sites]


def share(repo: Repo, url: str, **said: float) -> None:
    file = repo.folder / "recrawl.toml"
    lines = "".join(f"{name} = {value}\n" for name, value in said.items())
    file.write_text(f'{file.read_text()}\n[[share]]\nsite = "{url}"\n{lines}')


# -- sites ------------------------------------------------------------------------------------------------------


def test_a_site_gets_no_more_than_it_may_and_the_others_the_rest(repo: Repo, two: tuple[Site, Site]) -> None:
    share(repo, two[0].url(), at_most=2)
    assert repo.cycle(10)["visits"] == 10
    assert asked(*two) == [2, 8]


def test_a_site_gets_at_least_its_share(repo: Repo, two: tuple[Site, Site]) -> None:
    share(repo, two[1].url(), at_least=0.8)
    repo.cycle(10)
    assert asked(*two) == [2, 8]


def test_no_site_takes_more_than_the_general_share(repo: Repo, two: tuple[Site, Site]) -> None:
    repo.config(site_share=0.5)
    assert repo.cycle(10)["visits"] == 10
    assert asked(*two) == [5, 5]


def test_a_dead_server_does_not_eat_the_budget(repo: Repo, site: Start) -> None:
    alive = site(pages(12))
    with Site(pages(12)) as dead:
        repo.crawl(dead.url(), alive.url())
    repo.later(days=1)
    alive.forget()
    repo.cycle(12)
    assert asked(alive) == [12]


def test_a_server_that_asked_to_be_left_alone_is_not_planned_for(repo: Repo, two: tuple[Site, Site]) -> None:
    two[0].every = lambda _: Reply(b"", 503, {"Retry-After": "86000"})
    repo.cycle(12)
    two[0].forget()
    two[1].forget()
    repo.later(hours=3)
    assert repo.cycle(6)["visits"] == 6
    assert asked(*two) == [0, 6]
    told = repo.json("why", two[0].url("/05"))
    assert "asked for a pause until" in told["why"][-1]
    assert "had asked for a pause" in " ".join(told["why"])


def test_a_robots_txt_that_bars_all_costs_nothing(repo: Repo, two: tuple[Site, Site]) -> None:
    repo.later(days=2)
    two[0]["/robots.txt"] = text("User-agent: *\nDisallow: /\n")
    summary = repo.cycle(12)
    assert asked(*two) == [0, 12], (summary, repo.sql("SELECT page, outcome, failure, why FROM visits"))


# -- bytes ------------------------------------------------------------------------------------------------------


def test_bytes_end_a_cycle(repo: Repo, site: Start) -> None:
    web = site(pages(20, 10_000))
    repo.crawl(web.url())
    repo.later(days=1)
    summary = repo.cycle(20, "--bytes", "60kB")
    assert 40_000 < summary["received"] < 72_000
    assert summary["finished"]
    assert "its limit of 0.1 MB was used up" in " ".join(
        sentence for path in web.pages for sentence in repo.json("why", web.url(path))["why"]
    )


def test_pages_that_were_not_modified_cost_little_and_more_are_visited(repo: Repo, site: Start) -> None:
    web = site({path: replace(reply, etag='"1"') for path, reply in pages(20, 10_000).items()})
    repo.crawl(web.url())
    repo.later(days=1)
    summary = repo.cycle(20, "--bytes", "60kB")
    assert summary["visits"] == 20
    assert summary["received"] < 20_000


def test_a_server_that_sends_far_more_than_expected_does_not_eat_the_bytes(repo: Repo, two: tuple[Site, Site]) -> None:
    """Its pages have grown a thousandfold."""
    two[0].every = lambda _: Reply(page("word " * 40_000))
    repo.config(site_share=0.5, bytes="400kB")
    summary = repo.cycle(24)
    assert len(two[1].asked()) == 12, "the other site has got all that it could"
    assert asked(two[0])[0] <= 2
    assert summary["received"] < 450_000


def test_what_is_received_is_counted_with_redirects(repo: Repo, site: Start) -> None:
    web = site({"/": page("front", "/a"), "/a": page("a"), "/b": page("b")})
    repo.crawl(web.url())
    web["/a"] = Reply(b"x" * 5000, 302, {"Location": "/b"})
    repo.later(days=1)
    assert repo.cycle(10)["received"] == repo.sql("SELECT sum(received) FROM visits WHERE cycle = 1")[0][0] > 5000


def test_a_count_of_bytes_goes_on_where_it_was() -> None:
    count = ByteBudget(100, 50, [(1, 30), (2, 40)])
    assert not count.used_up
    count.add(1, 20)
    assert (count.closed(1), count.closed(2)) == (True, False)
    count.add(3, 10)
    assert count.used_up


def test_what_a_page_will_bring() -> None:
    book = Book.blank(5)
    book.size[:] = [1000, 1000, 1000, 0, 0]
    book.site[4] = 1
    book.visits[:3], book.changes[:3] = [21, 21, 21], [21, 1, 1]
    conditional = np.array([True, True, False, False, False])
    changing, quiet, without, never, elsewhere = expected_bytes(book, conditional, {0: 0.5}).tolist()
    assert quiet < 500 < changing < without
    assert never == without, "nothing is known of it: as large as the others of its site, whole"
    assert elsewhere > never, "nor of its site: as large as all others, uncompressed"


# -- time -------------------------------------------------------------------------------------------------------


def test_a_server_gets_no_more_than_its_pace_allows_in_the_time(repo: Repo, two: tuple[Site, Site]) -> None:
    repo.config(delay=0.3)
    summary = repo.cycle(20, "--for", "2s")
    assert 0 < summary["visits"] <= sum(asked(*two))
    assert max(asked(*two)) <= 1 + 2.0 / 0.3
    assert min(asked(*two)) >= 1, "both servers were asked side by side"


def test_a_crawl_delay_counts_in_the_plan(repo: Repo, two: tuple[Site, Site]) -> None:
    two[0]["/robots.txt"] = text("User-agent: *\nCrawl-delay: 20\n")
    repo.later(days=2)
    repo.config(robots_hours=1)
    repo.cycle(2, "--for", "1s")  # which reads it
    plan = repo.json("cycle", "--dry-run", "--budget", 24, "--for", "60s")
    slow = {row["site"]: row for row in plan["sites"]}[two[0].url().rstrip("/")]
    assert slow["at_most"] <= 4
    assert slow["visits"] == slow["at_most"]
    assert len(plan["pages"]) == 12 + slow["at_most"], "all pages of the other"


def test_the_pace_over_all_servers_bounds_the_budget(repo: Repo, two: tuple[Site, Site]) -> None:
    repo.config(per_second=2)
    assert repo.json("cycle", "--dry-run", "--budget", 20, "--for", "4s")["budget"] == 8
    assert len(two) == 2


# -- reserves ---------------------------------------------------------------------------------------------------


def test_new_pages_get_their_share_and_no_more(repo: Repo, site: Start) -> None:
    web = site(pages(12))
    repo.crawl(web.url())
    repo.later(days=1)
    web["/"] = Reply(page("news", *[f"/new{index}" for index in range(10)], *web.pages))
    web.pages |= {f"/new{index}": Reply(page(f"new {index}")) for index in range(10)}
    repo.cycle()
    repo.later(days=1)
    web.forget()
    repo.config(reserve_new=0.25)
    repo.cycle(8)
    assert Counter(path.startswith("/new") for path in web.asked()) == {True: 2, False: 6}


def test_pushed_pages_are_visited_first_within_their_share(repo: Repo, two: tuple[Site, Site]) -> None:
    with sqlite3.connect(repo.folder / "recrawl.db") as db:
        numbers = [row[0] for row in db.execute("SELECT id FROM pages ORDER BY id DESC LIMIT 6")]
        db.executemany("INSERT INTO hints VALUES (?, 'indexnow', 9e9, 9e9, 1)", [(number,) for number in numbers])
    repo.config(reserve_pushed=0.5)
    repo.cycle(6)
    visited = [row[0] for row in repo.sql("SELECT page FROM visits WHERE cycle = (SELECT max(cycle) FROM visits)")]
    assert len(set(visited) & set(numbers)) == 3
    assert sum(asked(*two)) == 6


def test_shares() -> None:
    assert [visits_of(said, 50) for said in (0.5, 1, 7, 0.001)] == [25, 1, 7, 1]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ('[[share]]\nsite = "a.example"\nat_least = 0.5\nat_most = 0.2', "above at_most"),
        ('[[share]]\nsite = "a.example"\n[[share]]\nsite = "https://a.example/b"', "two [[share]] parts"),
        ("[[share]]\nat_most = 0.2", "lacks 'site'"),
        ('[[share]]\nsite = "a.example"\nat_most = -1', "at_most"),
        ('[[share]]\nsite = "a.example"\nat_least = 0.7\n[[share]]\nsite = "b.example"\nat_least = 0.7', "more than"),
    ],
)
def test_what_makes_no_sense_is_named(repo: Repo, said: str, complaint: str) -> None:
    file = repo.folder / "recrawl.toml"
    file.write_text(f"{file.read_text()}\n{said}\n")
    result = repo.run("cycle", code=None)
    assert result.code == 2
    assert complaint in result.err


# -- crashes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    world = SyntheticWorld(seed=5, sites=2, pages=30, days=6, size_min=1000, size_max=3000, links=8, change_rate=0.6)
    write(world, tmp_path / "world.parquet")
    with Bench(Archive.open([tmp_path / "world.parquet"])) as made:
        yield made


def test_a_cycle_with_limits_that_crashed_makes_the_same_choices(bench: Bench, tmp_path: Path) -> None:
    bench.clock.set(bench.archive.start + 86400.0)
    folder = bench.create(tmp_path / "repo")
    bench.crawl(folder)
    bench.clock.advance(86400.0)
    spending = Spending(bytes=60_000.0, site_share="0.6", reserve_new=0.1)
    snapshots = Snapshots(folder, tmp_path, every=3)
    watched = cycles.Controls(progress=snapshots)
    number = bench.cycle(folder, "shock(explore=0)", 30, watched, spending=spending, **SMALL).cycle.id
    judge(folder)
    assert 5 < len(choices(folder, number)) <= 30
    for crashed, _ in snapshots.some(2):
        before = choices(crashed, number)
        bench.cycle(crashed, "round-robin", 3)  # whatever is said now, it goes on as it began
        judge(crashed)
        after = choices(crashed, number)
        assert before.items() <= after.items()
        assert 5 < len(after) <= 30


# -- what is told -----------------------------------------------------------------------------------------------


def test_why_names_the_limit_that_was_reached(repo: Repo, two: tuple[Site, Site]) -> None:
    share(repo, two[0].url(), at_most=2)
    repo.config(budget=20)
    repo.cycle(20)  # enough for all pages, were it not for the limit
    left = next(path for path in two[0].pages if path not in two[0].asked())
    told = " ".join(repo.json("why", two[0].url(left))["why"])
    assert "its site had reached its limit of 2 visits" in told


def test_why_tells_the_scores(repo: Repo, two: tuple[Site, Site]) -> None:
    repo.config(budget=4)
    repo.cycle(4)
    planned = {row["url"] for row in repo.json("cycle", "--dry-run", "--budget", 4)["pages"]}
    visited = {one.url(path) for one in two for path in one.asked()}
    left = next(url for path in pages(12) if (url := two[1].url(path)) not in planned | visited)
    told = repo.json("why", left)
    assert "ranked higher, the last with score" in told["why"][2]
    assert "would not reach it" in told["why"][-1]
    assert "score" in told["why"][-1]
    assert told["plan"]["planned"] is False
    assert told["plan"]["place"] > 4


def test_why_a_page_is_not_known(repo: Repo, two: tuple[Site, Site]) -> None:
    assert "never found" in repo.run("why", two[0].url("/nowhere"), code=None).err
    assert "it belongs to no site that was added" in repo.run("why", "https://elsewhere.example/", code=None).err


def test_a_dry_run_shows_what_the_cycle_then_does(repo: Repo, two: tuple[Site, Site]) -> None:
    plan = repo.json("cycle", "--dry-run", "--budget", 7)
    assert asked(*two) == [0, 0]
    assert [row["place"] for row in plan["pages"]] == list(range(1, 8))
    assert sum(row["visits"] for row in plan["sites"]) == 7
    repo.cycle(7)
    ports = {one.port: one for one in two}
    seen = {one.url(path) for one in ports.values() for path in one.asked()}
    assert seen == {row["url"] for row in plan["pages"]}
    assert "would use 7 visits of its budget of 7" in repo.run("cycle", "--dry-run", "--budget", 7).out


def test_status_tells_where_the_budget_went(repo: Repo, two: tuple[Site, Site]) -> None:
    assert repo.json("status")["spending"] is None
    repo.cycle(20, "--bytes", "1MB")
    spending = repo.json("status")["spending"]
    assert spending["visits"] == sum(row["visits"] for row in spending["sites"]) == 20
    assert spending["limits"] == {"bytes": 1e6}
    shown = repo.run("status").out
    assert "spent 20 of 20 visits" in shown
    assert "of 1.0 MB received" in shown
    assert len(two) == 2
