"""Traps (spec K3): endless address spaces end, and real sites are left alone."""

from __future__ import annotations

import calendar
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.discover.traps import TrapGuard, TrapLimits
from recrawl.discover.urls import canonical

SITES = Path(__file__).parents[1].parent / "shared" / "data" / "sites"
NOW = 1_750_000_000  # June 2025
SITE = "https://a.example"
REASONS = {"repeating-path", "path-too-deep", "calendar", "session-id", "directory-growth", "query-growth"}


def guard(**limits: int) -> TrapGuard:
    return TrapGuard(TrapLimits(**limits), NOW)


def admitted(guard: TrapGuard, urls) -> int:
    return sum(guard.admits(url) is None for url in urls)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a/b/a/c/a", "repeating-path"),
        ("/a/a/a/", "repeating-path"),
        ("/docs/en/docs/en/x.html", "repeating-path"),
        ("/x/1/2/x/1/2", "repeating-path"),
        ("/a/a/b", None),
        ("/a/b/a/c", None),
        ("/2011/11/11/11/post", None),
        ("/" + "/".join(map(str, range(25))) + "/", None),
        ("/" + "/".join(map(str, range(26))), "path-too-deep"),
        ("/", None),
    ],
)
def test_paths_that_grow(path, reason):
    assert guard().admits(SITE + path) == reason


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/2026/01/31/post", False),
        ("/2027/01/31/", True),
        ("/1990-01-01.html", False),
        ("/1989-12-31-wall/", True),
        ("/calendar/2031", True),
        ("/calendar/2026/5", False),
        ("/Kalender/ansicht/2031-5", True),
        ("/events/month/1815-06/", True),
        ("/cal?year=2031&month=4", True),
        ("/cal?month=4&year=2025", False),
        ("/cal?date=20310512", True),
        ("/cal?tribe-bar-date=2031-05", True),
        ("/cal?event[month]=203105", True),
        ("/cal?from=2031-05-12T10", True),
        ("/list?start=3000", False),
        ("/list?update=3000", False),
        ("/list?id=3000-01x", False),
        ("/issues/3025/10", False),
        ("/rfc/1149/", False),
        ("/price/9999/01/01x", False),
    ],
)
def test_years_that_no_page_is_about(path, refused):
    url = canonical(SITE + path)
    assert url is not None
    assert guard().admits(url) == ("calendar" if refused else None)


def test_the_years_can_be_set():
    assert guard(first_year=1800).admits(SITE + "/1815/06/18/") is None
    assert guard(years_ahead=10).admits(SITE + "/2031/06/18/") is None


def test_a_calendar_ends():
    months = [f"{SITE}/events/{year}/{month:02}/" for year in range(1990, 2027) for month in range(1, 13)]
    guarded = guard(dates=100)
    assert admitted(guarded, months) == 100
    assert guarded.admits(SITE + "/events/2024/02/") == "calendar"
    assert guarded.admits(SITE + "/events/2024/02/opening-night") is None
    assert guarded.admits(SITE + "/other/2024/02/") is None


def test_ten_years_of_daily_posts_are_no_calendar():
    days = [
        f"{SITE}/{year}/{month:02}/{day:02}/post"
        for year in range(2015, 2025)
        for month in range(1, 13)
        for day in range(1, calendar.monthrange(year, month)[1] + 1)
    ]
    assert admitted(guard(), days) == len(days) > 3650


def test_session_ids_in_paths_end():
    guarded = guard(tokens=10)
    sessions = [f"{SITE}/s/{i:032x}a1/about" for i in range(50)]
    uuids = [f"{SITE}/s/{i:08x}-0000-4000-8000-00000000000a/cart?x=1" for i in range(50)]
    assert admitted(guarded, sessions) == 10
    assert admitted(guarded, uuids) == 10
    assert guarded.admits(sessions[-1]) == "session-id"
    # As the last segment a hash names content: a commit, a picture, a paste.
    assert admitted(guarded, [f"{SITE}/commit/{i:040x}" for i in range(50)]) == 50


def test_a_directory_grows_to_its_limit():
    guarded = guard(children=20)
    assert admitted(guarded, [f"{SITE}/d/{i}" for i in range(15)]) == 15
    assert admitted(guarded, [f"{SITE}/d/dir{i}/" for i in range(15)]) == 5
    assert guarded.admits(SITE + "/d/new") == "directory-growth"
    assert guarded.admits(SITE + "/d/dir1/new") is None
    assert guarded.admits("http://a.example/d/new") is None


def test_a_path_takes_so_many_queries():
    guarded = guard(queries=20)
    assert admitted(guarded, [f"{SITE}/shop?colour={i}" for i in range(30)]) == 20
    assert guarded.admits(SITE + "/shop?size=1") == "query-growth"
    assert guarded.admits(SITE + "/shop") is None
    assert guarded.admits(SITE + "/shop/?size=1") is None


def test_sites_do_not_count_against_each_other():
    assert admitted(guard(children=5), [f"https://{i}.example/" for i in range(50)]) == 50


def test_known_pages_are_noted_not_refused():
    guarded = guard(children=20)
    for i in range(30):
        guarded.note(f"{SITE}/d/{i}")
    assert guarded.admits(SITE + "/d/new") == "directory-growth"


def test_a_refused_address_is_not_counted():
    guarded = guard(children=2, queries=1)
    assert admitted(guarded, [f"{SITE}/d/2099/01/01"] * 5) == 0
    assert admitted(guarded, [f"{SITE}/d/1", f"{SITE}/d/2", f"{SITE}/d/3"]) == 2


@given(st.lists(st.sampled_from([f"{SITE}/{d}/{n}{q}" for d in "ab" for n in range(4) for q in ("", "?x", "?y")])))
def test_a_guard_rebuilt_from_its_pages_says_the_same(urls):
    limits = {"children": 3, "queries": 2}
    first = guard(**limits)
    pages = [url for url in dict.fromkeys(urls) if first.admits(url) is None]
    second = guard(**limits)
    for url in pages:
        second.note(url)
    new = [f"{SITE}/a/new", f"{SITE}/b/new", f"{SITE}/a/1?new", f"{SITE}/b/3?new"]
    assert [first.admits(url) for url in new] == [second.admits(url) for url in new]


@given(st.lists(st.text("a1/?=&-_.[]%20", max_size=40), max_size=20))
def test_any_address_gets_a_word_or_none(texts):
    guarded = guard()
    for text in texts:
        url = canonical(f"{SITE}/{text}")
        if url is not None:
            assert guarded.admits(url) in {None, *REASONS}


LOOPING = """day 1/ a- / date= &year 2024- a1 ? ?a[ 00000000- day/2024/ /2024-01 _date= [.-_"""


@pytest.mark.parametrize("piece", LOOPING.split())
def test_long_addresses_are_judged_at_once(piece):
    guarded, long = guard(segments=10**6), piece * (20_000 // len(piece))
    if long.count("/") > 1000:
        guarded = guard()
    start = time.process_time()
    for url in (f"{SITE}/{long}", f"{SITE}/x?{long}"):
        assert guarded.admits(url) in {None, *REASONS}
    assert time.process_time() - start < 5.0, "a pattern goes back and forth"


@pytest.mark.skipif(not SITES.is_dir(), reason="no shared/data beside the checkout")
def test_real_sites_are_left_alone():
    pq = pytest.importorskip("pyarrow.parquet")
    said: Counter[str | None] = Counter()
    for path in sorted(SITES.glob("*.parquet")):
        guarded = TrapGuard(TrapLimits(), 1_790_000_000)
        said.update(map(guarded.admits, pq.read_table(path, columns=["url"])["url"].unique().to_pylist()))
    assert said.total() > 10_000
    assert said.total() - said[None] < said.total() / 1000
