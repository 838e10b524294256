"""Hints on a real server: sitemaps, feeds, tags, headers and pushes, gathered, used and learned from; and bad ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.crawl import hints
from recrawl.crawl.hints import KINDS, pack_hints, unpack_hints
from recrawl.crawl.state.array_files import read_arrays
from recrawl.crawl.state.policy_memory import file_of
from recrawl.discover.links import updates_days
from recrawl.errors import UsageError
from recrawl.record.storage import Storage
from tests.world import Reply, Repo, Site, connection, page

DAY = 86400.0
PAGES = 12


def dated(site: Site, dates: Mapping[str, float | str]) -> Reply:
    """A sitemap with dates."""
    inside = "".join(f"<url><loc>{site.url(path)}</loc><lastmod>{stamp(dates[path])}</lastmod></url>" for path in dates)
    return Reply(f"<urlset>{inside}</urlset>".encode(), kind="application/xml")


def feed(site: Site, dates: dict[str, float]) -> bytes:
    """An Atom feed with these entries."""
    items = "".join(
        f'<entry><link href="{site.url(path)}"/><updated>{stamp(date)}</updated></entry>'
        for path, date in dates.items()
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{items}</feed>'.encode()


def stamp(date: float | str) -> str:
    return date if isinstance(date, str) else datetime.fromtimestamp(date, UTC).isoformat(timespec="seconds")


@pytest.fixture
def site() -> Iterator[Site]:
    paths = [f"/p{number}" for number in range(PAGES)]
    with Site({"/": page("front", *paths), **{path: page(f"text of {path}") for path in paths}}) as made:
        yield made


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path / "repo", policy="ncis", sitemap_hours=1)


def now(repo: Repo) -> float:
    """The repository's time; `time.time` is its own while a command runs."""
    return time.time_ns() / 1e9 + repo.ahead


def signals(repo: Repo, kind: str) -> dict[str, int]:
    rows = repo.sql("SELECT url, signals FROM hints JOIN pages ON id = page WHERE kind = ?", kind)
    return {url.rpartition("/")[2]: number for url, number in rows}


def test_a_date_in_the_sitemap_brings_its_page_to_the_front(site: Site, repo: Repo) -> None:
    old = {f"/p{number}": now(repo) - 9 * DAY for number in range(PAGES)}
    site["/sitemap.xml"] = dated(site, old)
    repo.crawl(site.url("/"))
    right = []
    for turn in range(6):
        repo.later(days=2)
        changed = f"/p{turn * 2}"
        site[changed] = page(f"news of turn {turn}")
        old[changed] = now(repo) - 3600
        site["/sitemap.xml"] = dated(site, old)
        done = repo.cycle(1)
        right.append(done["changed"])
    assert sum(right) >= 4, f"one visit a turn, of 13 pages: {right}"
    assert sum(signals(repo, "lastmod").values()) == 6 - sum(right), "a visit answers a signal"
    told = repo.sql("SELECT hints & 15 FROM visits WHERE outcome = 1")
    assert told == [(1,)] * sum(right)


def test_what_was_learned_can_be_learned_again_from_visits(site: Site, repo: Repo) -> None:
    dates = {f"/p{number}": now(repo) - 9 * DAY for number in range(PAGES)}
    site["/sitemap.xml"] = dated(site, dates)
    repo.crawl(site.url("/"))
    for turn in range(4):
        repo.later(days=2)
        dates[f"/p{turn}"] = now(repo) - 60
        site["/sitemap.xml"] = dated(site, dates)
        repo.cycle(3)
    with Storage(repo.folder) as opened:
        file = file_of(opened, make_policy("ncis"))
    before = read_arrays(file)
    assert before is not None
    assert before["kept hints.lastmod.counts"][0, 0] > 0.5
    file.unlink()
    repo.cycle(1)
    after = read_arrays(file)
    assert after is not None
    # One visit more, and evidence fades: but all of the past is there.
    assert after["kept hints.lastmod.counts"].sum() == pytest.approx(
        before["kept hints.lastmod.counts"].sum() + 1, abs=0.2
    )


def test_bad_dates_are_ignored_and_said_to_be(site: Site, repo: Repo) -> None:
    ahead = {f"/p{number}": now(repo) + 400 * DAY for number in range(3)}
    ancient: dict[str, float | str] = {"/p3": "1066-10-14", "/p4": "when it is done", "/p5": "2024-02-31"}
    site["/sitemap.xml"] = dated(site, {**ahead, **ancient})
    summary = repo.crawl(site.url("/"))
    (warning,) = summary["warnings"]
    assert "3 dates lie in the future" in warning
    assert "3 dates cannot be read" in warning
    repo.later(days=2)
    assert repo.cycle(5)["warnings"] == [warning]
    assert not any(signals(repo, "lastmod").values())
    (hint,) = (row for row in repo.json("sites")[0]["hints"] if row["kind"] == "lastmod")
    assert hint["ignored"] == 6


def test_a_sitemap_that_always_says_now_is_told_of_and_not_believed(site: Site, repo: Repo) -> None:
    paths = [f"/p{number}" for number in range(PAGES)]
    site["/sitemap.xml"] = lambda _: dated(site, dict.fromkeys(paths, now(repo)))
    repo.crawl(site.url("/"))
    for _ in range(8):
        repo.later(days=2)
        repo.cycle(6)
    (hint,) = (row for row in repo.json("sites")[0]["hints"] if row["kind"] == "lastmod")
    assert hint["signals"] > 50
    assert hint["precision"] < 0.1
    shown = repo.run("sites").out
    assert "lastmod" in shown


def test_feeds_make_pages_known_and_signal_once(site: Site, repo: Repo) -> None:
    link = '<link rel="alternate" type="application/atom+xml" href="/feed">'
    site["/"] = page("front", *(f"/p{number}" for number in range(PAGES))).replace(
        b"<title>", link.encode() + b"<title>"
    )
    told = {"/p1": now(repo) - 5 * DAY}
    site["/feed"] = lambda _: Reply(
        feed(site, told), kind="application/atom+xml", etag=f'"{len(told)}-{max(told.values())}"'
    )
    repo.crawl(site.url("/"))
    repo.later(days=1)
    told["/new"] = now(repo) - 60
    site["/new"] = page("an item")
    repo.cycle(1)
    assert repo.states()[site.url("/new")] == "found"
    repo.later(days=1)
    told["/p1"] = now(repo) - 60
    repo.cycle(1)
    assert signals(repo, "feed")["p1"] == 1
    for _ in range(3):
        repo.later(hours=3)
        repo.cycle(1)
    assert signals(repo, "feed")["p1"] <= 1, "the same item again is no news"
    asked = site.requests("/feed")
    assert "if-none-match" in asked[-1].headers, "it is asked whether it has changed"


def test_the_tag_and_the_header_are_kept(site: Site, repo: Repo) -> None:
    tag = b'<meta content="PERIODIC=7" NAME="Change-Frequency-Based"><title>'
    site["/p1"] = Reply(page("periodic").replace(b"<title>", tag), modified="Thu, 02 Nov 2023 10:00:00 GMT")
    repo.crawl(site.url("/"))
    rows = repo.sql("SELECT kind, value FROM hints ORDER BY kind")
    assert rows == [("modified", 1698919200.0), ("updates", 7 * DAY)]
    repo.later(days=15)
    with Storage(repo.folder) as opened:
        (bits,) = pack_hints(opened.store, range(20), now(repo)).values()
    assert bits >> (8 * KINDS.index("updates")) == 2 + 16 * 15, "two periods have gone by"


def test_pushes_are_bounded_and_heard(site: Site, repo: Repo) -> None:
    repo.crawl(site.url("/"))
    repo.later(days=3)
    known, new = site.url("/p7"), site.url("/pushed")
    site["/p7"], site["/pushed"] = page("changed"), page("new")
    with Storage(repo.folder) as opened:
        said = [known, known + "#part", new, "no address", "http://elsewhere.example/"]
        got = hints.accept(opened, said, "indexnow", "somebody", now(repo))
        assert got == hints.Accepted(taken=2, repeated=1, bad=1, foreign=1)
        flood = (site.url(f"/f{number}") for number in range(hints.PER_HOUR + 5))
        got = hints.accept(opened, flood, "websub", "somebody", now(repo))
        assert (got.taken, got.refused) == (hints.PER_HOUR - 5, 10)
        assert hints.accept(opened, [known], "websub", "somebody", now(repo)).refused == 1
        assert hints.accept(opened, [known], "websub", "another", now(repo)).taken == 1
        assert hints.accept(opened, [site.url("/g")], "websub", "somebody", now(repo) + 3600).taken == 1
        with pytest.raises(UsageError, match="indexnow or websub"):
            hints.accept(opened, [known], "rumour", "somebody", now(repo))
        connection(opened.store).execute("DELETE FROM pushes WHERE kind = 'websub'")
    done = repo.cycle(1)
    assert done["changed"] == 1, "the page that was named"
    assert repo.states()[new] == "found"
    assert repo.sql("SELECT count(*) FROM pushes") == [(0,)]


def test_a_push_about_what_a_visit_has_just_seen_says_nothing(site: Site, repo: Repo) -> None:
    repo.crawl(site.url("/"))
    with Storage(repo.folder) as opened:
        hints.accept(opened, [site.url("/p7")], "websub", "hub", now(repo) + 20)
    repo.cycle(1)
    assert not any(signals(repo, "websub").values())


@given(st.integers(0, 2**32))
def test_visits_carry_what_was_said(seed: int) -> None:
    """Packed and unpacked it is the same, to a fifteenth of the time."""
    rng = np.random.default_rng(seed)
    book = Book.blank(5, now=100 * DAY)
    book.last_visit[:] = 90 * DAY
    said, share = rng.integers(0, 16, (len(KINDS), 5)), rng.integers(0, 16, (len(KINDS), 5))
    bits = sum((said[row] + 16 * share[row]) << (8 * row) for row in range(len(KINDS)))
    hints = unpack_hints(np.arange(5), np.asarray(bits), book)
    for row, kind in enumerate(hints.kinds):
        place = KINDS.index(kind)
        assert np.array_equal(hints.signals[row], said[place])
        covered = np.where(np.isfinite(hints.until[row]), (hints.until[row] - 90 * DAY) / (10 * DAY), 0)
        assert covered == pytest.approx(share[place] / 15)


@given(st.text(max_size=200))
def test_any_tag_gives_days(content: str) -> None:
    assert 0 <= updates_days(content) <= 3650
