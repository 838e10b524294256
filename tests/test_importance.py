"""How much pages matter and what visits cost: what people say is put to use, in the lab and live, without harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.protocol import needs_of
from recrawl.crawl.options import Weights
from recrawl.crawl.reports.anchors import load
from recrawl.crawl.state.book_columns import add_arrivals, weigh
from recrawl.discover.urls import UrlRules, keys
from recrawl.discover.weight_files import parse_line, read_weights
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.histories.weights import with_importance
from recrawl.lab.replays.replay import Setup, Web, check, replay
from recrawl.lab.replays.small_worlds import batches
from recrawl.lab.synth import SyntheticWorld as Made
from recrawl.lab.synth import write
from recrawl.learn.value import MAX_RATIO, costs, kind_of, match_weights, normalise, priority_weights
from recrawl.loop import drive, note
from recrawl.record.storage import Storage
from tests.complaints import complaint
from tests.world import Reply, Repo, Site, connection, page

DAY = 86400.0
anything = st.floats(allow_nan=True, allow_infinity=True)


# -- weights ---------------------------------------------------------------------------------------------


@given(st.lists(anything, max_size=30))
def test_whatever_is_said_becomes_weights_that_do_no_harm(said: list[float]) -> None:
    weight, ignored = normalise(np.array(said, np.float64))
    assert np.isfinite(weight).all()
    assert (weight >= 0).all()
    if said:
        assert weight.mean() == pytest.approx(1.0)
        assert weight.max() <= MAX_RATIO * np.median(weight[weight > 0]) * 2
    raw = np.array(said, np.float64)
    assert ignored.unreadable == np.isnan(raw).sum()
    assert ignored.negative == (raw < 0).sum()
    assert ignored.infinite == (raw == np.inf).sum()


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=30))
def test_reasonable_weights_keep_their_proportions(said: list[float]) -> None:
    raw = np.array(said)
    weight, ignored = normalise(raw)
    np.testing.assert_allclose(weight * raw.mean(), raw)
    assert str(ignored) == ""


@given(st.lists(st.integers(0, 10**12), max_size=30), st.floats(-1, 2))
def test_costs_are_over_zero_and_one_on_average(size: list[int], cheap: float) -> None:
    cost = costs(np.array(size, np.int64), cheap)
    assert (cost > 0).all()
    if size:
        assert cost.mean() == pytest.approx(1.0)


def test_a_likely_304_makes_large_pages_cheap() -> None:
    size = np.array([100, 100_000])
    dear, cheap = costs(size), costs(size, 0.99)
    assert dear[1] / dear[0] > 50
    assert cheap[1] / cheap[0] < 3


def test_nothing_but_zeros_is_as_if_nothing_was_said() -> None:
    assert normalise(np.zeros(3))[0].tolist() == [1, 1, 1]
    assert match_weights(np.array([1]), np.zeros(0, np.int64), np.zeros(0), add=False, missing=1.0)[0].tolist() == [1]
    assert match_weights(np.zeros(0, np.int64), np.array([1]), np.ones(1), add=True, missing=1.0)[1] == 1


@pytest.mark.parametrize("text", ["", "odd", "file", "file:", "pagerank:x", "even:", "clicks: "])
def test_what_is_no_importance_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="importance must be"):
        kind_of(text)


# -- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "clicks", "told"),
    [
        ("https://a.example/,2\n", False, ("https://a.example/", 2.0)),
        ("https://a.example/\t1e3", False, ("https://a.example/", 1000.0)),
        ('"https://a.example/x","4"', False, ("https://a.example/x", 4.0)),
        ("https://a.example/x?utm_source=y,1", False, ("https://a.example/x", 1.0)),
        ("https://a.example/", False, None),
        ("https://a.example/", True, ("https://a.example/", 1.0)),
        ("https://a.example/,-3", True, ("https://a.example/", -3.0)),
        ("mailto:x@a.example,1", False, None),
        ("x" * 20_000 + ",1", True, None),
        ("", True, None),
    ],
)
def test_lines_of_a_file(line: str, clicks: bool, told: tuple[str, float] | None) -> None:
    assert parse_line(line, UrlRules(), clicks=clicks) == told


ACCESS_LOG = """\
1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326
1.2.3.4 - kim [10/Oct/2026:13:55:37 +0000] "GET /a?utm_source=x HTTP/1.1" 304 - "-" "Mozilla/5.0"
1.2.3.4 - - [10/Oct/2026:13:55:38 +0000] "GET /b HTTP/1.1" 404 12 "-" "Mozilla/5.0"
1.2.3.4 - - [10/Oct/2026:13:55:39 +0000] "POST /b HTTP/1.1" 200 12 "-" "Mozilla/5.0"
1.2.3.4 - - [10/Oct/2026:13:55:40 +0000] "GET /b HTTP/1.1" 200 12 "-" "Googlebot/2.1"
b.example:443 1.2.3.4 - - [10/Oct/2026:13:55:41 +0000] "GET /c HTTP/2.0" 200 12 "-" "Mozilla/5.0"
1.2.3.4 - - [10/Oct/2026:13:55:42 +0000] "GET http://c.example/d HTTP/1.1" 200 12
this is no line of a log
"""


def test_requests_of_users_in_an_access_log_are_clicks(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text(ACCESS_LOG)
    found, weight, lost = read_weights(path, UrlRules(), clicks=True, base="https://a.example/")
    seen = ["https://a.example/a", "https://a.example/a", "https://b.example/c", "http://c.example/d"]
    assert found.tolist() == keys(seen).tolist()
    assert weight.tolist() == [1, 1, 1, 1]
    assert lost == 1
    found, _, lost = read_weights(path, UrlRules(), clicks=True)
    assert found.tolist() == keys(["https://b.example/c", "http://c.example/d"]).tolist()
    assert lost == 2, "a path without its site, and the line that is none; the first may be a heading"


def test_pages_are_drawn_by_the_weight_of_their_accesses() -> None:
    """Of 4 pages with weights 6, 3, 1 and 0, each is drawn first in proportion; the last one only when none is left."""
    book = Book.blank(4)
    book.weight = np.array([6.0, 3.0, 1.0, 0.0])
    policy = make_policy("round-robin(order=accesses)")
    first = np.bincount([batches(policy, book, budget=4, seed=seed)[0][0] for seed in range(4000)], minlength=4)
    assert scipy.stats.chisquare(first[:3], np.array([2400, 1200, 400])).pvalue > 0.001
    assert first[3] == 0


def test_a_file_is_read_with_its_heading_and_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    path.write_bytes(b"url,weight\nhttps://a.example/,2\nnonsense\n\n\xff\xfe,1\nhttps://a.example/b,nan\n")
    found, weight, lost = read_weights(path, UrlRules(), clicks=False)
    assert found.tolist() == keys(["https://a.example/", "https://a.example/b"]).tolist()
    np.testing.assert_array_equal(weight, [2, np.nan])
    assert lost == 2
    path.write_text("x" * 100_000)
    assert read_weights(path, UrlRules(), clicks=True)[2] == 9, "one line, taken in pieces; the first may be a heading"
    with pytest.raises(UsageError, match="cannot read"):
        read_weights(tmp_path / "none.csv", UrlRules(), clicks=False)


# -- the lab ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lab") / "world.parquet"
    write(Made(seed=2, sites=2, pages=40, days=20, size_min=1500, size_max=3000, change_rate=0.1), path)
    return path


@pytest.fixture(scope="module")
def history(archive: Path) -> History:
    return open_history([archive])


@pytest.mark.parametrize("text", ["optimal-freshness", "optimal-age", "lambda-crawl"])
def test_policies_that_know_what_matters_find_more_of_it(history: History, text: str) -> None:
    weight = np.where(np.arange(len(history)) % 10 == 0, 20.0, 1.0)
    weighted = replace(history, weight=weight / weight.mean())
    plain = Setup(budget=6, cycle=DAY, cycles=20, samples=1)
    told = Setup(budget=6, cycle=DAY, cycles=20, samples=1, weighted=True)
    before, after = (replay(weighted, make_policy(text), setup).summary() for setup in (plain, told))
    assert after["weighted_change_ratio"] > 1.3 * before["weighted_change_ratio"]
    assert after["weighted_freshness"] > after["freshness"] + 0.02
    assert before["weighted_freshness"] is None, "nobody asked"


def test_policies_that_know_the_cost_transfer_less(history: History) -> None:
    many = np.where(np.arange(len(history)) % 2 == 0, 50_000, 500)[history.page_of]
    heavy = replace(history, size=many)
    received = [
        replay(
            heavy, make_policy("optimal-age"), Setup(budget=6, cycle=DAY, cycles=20, samples=1, cost=cost)
        ).bytes.sum()
        for cost in ("visit", "bytes")
    ]
    assert received[1] < 0.7 * received[0]


def test_weights_of_a_file_are_measured_by(history: History, tmp_path: Path) -> None:
    path = tmp_path / "clicks.txt"
    path.write_text(f"{history.urls[3]}\n{history.urls[3]}\n{history.urls[4]},4\nhttps://elsewhere.example/\n")
    told, ignored = with_importance(history, f"clicks:{path}")
    assert told.weight is not None
    assert (told.weight / told.weight[0])[:5].tolist() == pytest.approx([1, 1, 1, 3, 5])
    assert ignored == "1 is for an unknown URL"
    assert with_importance(history, "pagerank")[0] is history
    with pytest.raises(UsageError, match="no links"):
        with_importance(replace(history, weight=None), "pagerank")


def test_the_lab_takes_importance_on_the_command_line(archive: Path, tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    base = ["lab", "run", archive, "--policy", "optimal-age", "--budget", 6, "--no-cache", "--workers", 1]
    (tmp_path / "w.csv").write_text("https://elsewhere.example/,-1\n")
    said = repo.run(*base, "--importance", f"file:{tmp_path / 'w.csv'}", "--cost", "bytes", "--json")
    assert "1 is for an unknown URL" in said.err
    assert json.loads(said.out)[0]["weighted_change_ratio"] > 0
    assert json.loads(said.out)[0]["weighted_freshness"] > 0
    complaint(repo.run(*base, "--importance", "odd", code=None), "importance must be even")
    complaint(repo.run(*base, "--cost", "love", code=None), "unknown cost 'love'; expected one of: bytes, visit")


# -- live ------------------------------------------------------------------------------------------------


@pytest.fixture
def live(tmp_path: Path) -> tuple[Repo, Site]:
    links = [f"/p{number}" for number in range(6)]
    site = Site({"/": page("Welcome", *links), **{link: page(link) for link in links}})
    return Repo.create(tmp_path / "repo", policy="optimal-age"), site


def visited(repo: Repo, site: Site) -> set[str]:
    """Paths asked for in the last cycle, robots.txt aside."""
    repo.later(days=1)
    before = len(site.log)
    repo.cycle(2)
    return {asked.path for asked in site.log[before:] if asked.path.startswith("/p") or asked.path == "/"}


def test_what_a_file_says_matters_is_visited_first(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        repo.crawl(site.url())
        (repo.folder / "weights.csv").write_text(
            f"url,weight\n{site.url('/p3')},50\n{site.url('/p5')},40\n{site.url('/p1')},inf\nnonsense,1\n"
        )
        repo.config(importance="file:weights.csv")
        assert visited(repo, site) == {"/p3", "/p5"}
        repo.later(days=1)
        told = repo.run("cycle", "--budget", 2)
        assert "of the weights in weights.csv, 1 is not a number or not a URL, 1 is infinite" in told.err
        assert "it ranks " in repo.run("why", site.url("/p3")).out


def test_pagerank_prefers_what_is_linked_to(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        for number in range(6):
            site[f"/p{number}"] = page(f"page {number}", "/p2", "/p4")
        repo.crawl(site.url())
        repo.config(importance="pagerank")
        assert visited(repo, site) == {"/p2", "/p4"}
        assert (repo.folder / "models" / "weights-of-cycle.npz").is_file()


def test_small_pages_come_first_when_bytes_count(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        for number in (0, 1, 2, 5):
            site[f"/p{number}"] = page("word " * 20_000)
        site["/"] = page("word " * 20_000, *(f"/p{number}" for number in range(6)))
        repo.crawl(site.url())
        repo.config(cost="bytes")
        assert visited(repo, site) == {"/p3", "/p4"}


def test_a_file_that_is_not_there_is_told_before_the_cycle_begins(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        repo.crawl(site.url())
        repo.config(importance="file:none.csv")
        complaint(repo.run("cycle", code=None), "none.csv", "setting 'importance'")
        with Storage(repo.folder) as repository:
            assert [row.kind for row in repository.store.cycles.newest()] == ["crawl"]
        complaint(repo.run("config", "importance", "love", code=None), "importance must be even")
        complaint(repo.run("config", "cost", "love", code=None), "use visit, bytes")


def test_a_cycle_that_is_resumed_goes_by_what_it_began_with(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        repo.crawl(site.url())
        (repo.folder / "weights.csv").write_text(f"{site.url('/p3')},50\n")
        repo.config(importance="file:weights.csv", cost="bytes")
        repo.later(days=1)
        repo.cycle(1)
        with Storage(repo.folder) as repository:
            last = repository.store.cycles.newest(1)[0]
            columns = []
            for lines in (None, f"{site.url('/p1')},7\n"):
                if lines:
                    (repo.folder / "weights.csv").write_text(lines)
                    connection(repository.store).execute("UPDATE pages SET size = size * 9 WHERE id % 2")
                book = _book(repository)
                weigh(book, repository, last, Weights("file:weights.csv", "bytes"), begin=True)
                columns.append((book.weight, book.cost))
            np.testing.assert_array_equal(columns[0], columns[1])
            book = _book(repository)
            weigh(book, repository, last._replace(id=last.id + 1), Weights("file:weights.csv", "bytes"), begin=False)
            assert not np.array_equal(book.weight, columns[0][0])


def test_priorities_of_sitemaps_are_weights_relative_to_their_site(tmp_path: Path) -> None:
    paths = ["/a", "/b", "/c"]
    with Site({"/": page("front", *paths), **{path: page(path) for path in paths}}) as site:
        listed = {"/a": "1.0", "/b": "0.1", "/c": "7"}  # 7 is no priority
        entries = "".join(f"<url><loc>{site.url(p)}</loc><priority>{n}</priority></url>" for p, n in listed.items())
        site["/sitemap.xml"] = Reply(f"<urlset>{entries}</urlset>".encode(), kind="application/xml")
        repo = Repo.create(tmp_path / "repo", importance="sitemap")
        repo.crawl(site.url("/"))
        assert repo.cycle(2)["visits"] == 2
        with Storage(repo.folder) as repository:
            book, last = _book(repository), repository.store.cycles.newest(1)[0]
            weigh(book, repository, last._replace(id=last.id + 1), Weights("sitemap"), begin=False)
            names = [url.rpartition("/")[2] for (url,) in repo.sql("SELECT url FROM pages ORDER BY id")]
    weight = dict(zip(names, (book.weight * (1.0 + 0.1 + 0.5 + 0.5) / 4).round(3).tolist(), strict=True))
    assert weight == {"": 0.5, "a": 1.0, "b": 0.1, "c": 0.5}


def test_a_site_of_highest_priority_gains_nothing() -> None:
    weight = priority_weights(np.array([1.0, 1.0, 1.0, 0.2, 0.4, np.nan]), np.array([0, 0, 0, 1, 1, 1]))
    assert weight[:3].tolist() == [1.0, 1.0, 1.0]
    assert weight[3:].mean() == pytest.approx(1.0)


def test_archives_have_no_priorities() -> None:
    with pytest.raises(UsageError, match="no sitemap priorities"):
        with_importance(History.__new__(History), "sitemap")


def _book(repository: Storage) -> Book:
    return load(repository.store, 0.0)


# -- new links ---------------------------------------------------------------------------------------------------------


def test_a_replay_learns_which_pages_bring_links(history: History) -> None:
    """What it has counted in the end is what the history says of the versions that were visited."""
    policy = make_policy("shock(objective=links)")
    setup = Setup(budget=len(history), cycle=DAY, cycles=20, samples=1)
    check(history, policy, setup)
    web = Web(history, setup)
    book = web.first_book()
    for k in range(1, 21):
        web.begin(k, book, needs_of(policy))
        list(drive(policy, web, book, setup.budget, k))
        for visits in web.recorded(book):
            note(policy, *visits)
    web.begin(21, book, needs_of(policy))
    assert history.links is not None
    assert book.arrivals.std() > 0
    assert (book.arrivals > 0).all()
    with pytest.raises(UsageError, match="arrivals"):
        check(replace(history, carries=frozenset({"forms"})), policy, setup)


def test_live_pages_that_bring_links_are_known(live: tuple[Repo, Site]) -> None:
    repo, site = live
    with site:
        site["/p1"] = page("front 0", "/a0")
        repo.crawl(site.url())
        for day in range(1, 4):
            repo.later(days=1)
            site["/p1"] = page(f"front {day}", *(f"/a{number}" for number in range(3 * day + 1)))
            site["/p2"] = page(f"no links {day}")
            repo.cycle(20)
        repo.later(days=1)
        repo.run("cycle", "--policy", "shock(objective=links)", "--budget", 3)
        with Storage(repo.folder) as repository:
            book = _book(repository)
            add_arrivals(book, repository.store, repository.store.cycles.newest(1)[0])
            numbers = dict(connection(repository.store).execute("SELECT url, id FROM pages"))
        brings = {path: float(book.arrivals[numbers[site.url(path)]]) for path in ("/p1", "/p2", "/p3")}
        assert brings["/p1"] == pytest.approx((9 + brings["/p3"]) / 4)
        assert brings["/p2"] < brings["/p3"] < brings["/p1"]
