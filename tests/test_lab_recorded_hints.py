"""Recorded sitemaps and feeds in replays: what hint files say, with all that real ones do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.choose import make_policy
from recrawl.crawl.hints import add_claim
from recrawl.discover.dates import parse_date
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.histories.history import History, LinkLists, assemble, without_start
from recrawl.lab.replays.hint_sources import RecordedHints, SimulatedSitemap, hints_key
from recrawl.lab.replays.replay import Setup, replay
from recrawl.serve.jobs.job_specs import Command, job_spec
from recrawl.serve.jobs.uploads import Uploads
from tests.test_lab_simulated_hints import DAY, living
from tests.world import command

BEGIN = 1_600_000_000.0
"""2020-09-13T12:26:40Z, in the middle of a day."""
URL = "https://a.example/"
MAP, FEED = URL + "sitemap.xml", URL + "feed.xml"

Row = tuple[str, str, float, str, str | None, bool]
"""Source, kind, day of publication, page, date, whether it is listed."""


def write(folder: Path, rows: list[Row]) -> Path:
    folder.mkdir(exist_ok=True)
    source, kind, day, page, lastmod, listed = zip(*rows, strict=True)
    columns = {
        "source": source,
        "kind": kind,
        "time": [int(BEGIN + number * DAY) for number in day],
        "url": [page if "://" in page else URL + page for page in page],
        "lastmod": pa.array(lastmod, pa.string()),
        "listed": listed,
    }
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return folder


def history(pages: str = "abc", births: dict[str, float] | None = None) -> History:
    """Pages of one site that never change; some are born later."""
    times = np.array([BEGIN + (births or {}).get(page, 0) * DAY for page in pages])
    urls = [URL + page for page in pages]
    return assemble(urls, np.arange(len(pages)), times, np.arange(len(pages)), change="text", carries=frozenset())


def signals(source: RecordedHints, day: float, last: float = 0.0) -> list[list[int]]:
    """The signals of sitemaps and of feeds on a day, for pages last visited on another."""
    pages = source._sites.shape[0]
    counted: list[list[int]] = source.read(day * DAY, np.full(pages, last * DAY)).signals.tolist()
    return counted


def test_new_dates_signal_once_and_visits_clear_them(tmp_path: Path) -> None:
    rows: list[Row] = [
        (MAP, "sitemap", 0, "a", "2020-09-01", True),
        (MAP, "sitemap", 2, "a", "2020-09-15T09:00:00Z", True),
        (FEED, "feed", 3, "b", "Wed, 16 Sep 2020 09:00:00 GMT", True),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert signals(source, 1) == [[0, 0, 0], [0, 0, 0]]
    assert signals(source, 2) == [[1, 0, 0], [0, 0, 0]]
    assert signals(source, 3) == [[1, 0, 0], [0, 1, 0]]
    assert signals(source, 4, last=3) == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "dates",
    [
        ("2020-09-01T00:00:00+01:00", "2020-09-01T00:00:00-08:00"),  # another time zone on an old date
        ("2020-09-01", "4016-01-12"),
        ("2020-09-01", "2021-09-01"),  # in the future
        ("2020-09-01", "{{ page.date }}"),
        ("Mon, 01 Jan 0001 00:00:00 +0000", "Mon, 01 Jan 0001 00:00:00 +0000"),
        (None, None),
        (None, "2020-09-01"),  # a date of long ago
        ("2020-09-01", None),
        ("2020-09-01", "2020-08-01"),
    ],
)
def test_what_is_no_news(tmp_path: Path, dates: tuple[str | None, str | None]) -> None:
    rows: list[Row] = [(MAP, "sitemap", day, "a", date, True) for day, date in zip((0, 4), dates, strict=True)]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert signals(source, 3, last=0) == [[0, 0, 0]] * 2
    assert signals(source, 5, last=3) == [[0, 0, 0]] * 2


@pytest.mark.parametrize("again", ["2020-09-15T08:00:00Z", "Tue, 15 Sep 2020 08:00:00 UT", "2020-09-15T08:00+00:00"])
def test_the_same_instant_in_another_spelling_is_no_news(tmp_path: Path, again: str) -> None:
    rows: list[Row] = [
        (MAP, "sitemap", 2, "a", "2020-09-15T10:00:00+02:00", True),
        (MAP, "sitemap", 4, "a", again, True),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert [signals(source, day)[0][0] for day in (1, 3, 5)] == [0, 1, 1]


def test_a_date_without_a_time_covers_its_day(tmp_path: Path) -> None:
    """The clock of the site starts in the middle of a day; dates are in UTC all the same."""
    rows: list[Row] = [
        (MAP, "sitemap", 0, "a", "2020-09-01", True),
        (MAP, "sitemap", 2.1, "a", "2020-09-15", True),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert signals(source, 3, last=2.0)[0] == [1, 0, 0], "day 2.0 is 12:26 of the 15th"
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert signals(source, 3, last=2.5)[0] == [0, 0, 0], "day 2.5 is 00:26 of the 16th"


def test_of_several_sources_the_newest_date_counts(tmp_path: Path) -> None:
    other = URL + "other.xml"
    rows: list[Row] = [
        (MAP, "sitemap", 1, "a", "2020-09-14T13:00:00Z", True),
        (other, "sitemap", 1, "a", "2020-09-01", True),
        (other, "sitemap", 2, "a", "2019-09-01", True),
        (URL + "future.xml", "sitemap", 2, "a", "2044-01-01", True),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert [signals(source, day)[0][0] for day in (1, 2, 3)] == [1, 1, 1]


def test_silence_counts_while_a_source_is_there(tmp_path: Path) -> None:
    rows: list[Row] = [
        (MAP, "sitemap", 0, "a", "2020-09-01", True),
        (MAP, "sitemap", 0, "b", None, True),
        (MAP, "sitemap", 2, "a", None, False),  # dropped, but the source is still there
        (MAP, "gone", 4, "b", None, False),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    last = np.zeros(3)
    assert source.read(1 * DAY, last).until[0].tolist() == [DAY, -np.inf, -np.inf], "only dates can be silent"
    assert source.listed().tolist() == [0, 1]
    assert source.read(3 * DAY, last).until[0, 0] == 3 * DAY
    assert source.listed().tolist() == [1]
    assert source.read(5 * DAY, last).until[0, 0] == 3 * DAY
    assert source.listed().tolist() == []


def test_an_entry_that_comes_back_with_its_old_date_says_nothing(tmp_path: Path) -> None:
    rows: list[Row] = [
        (MAP, "sitemap", 1, "a", "2020-09-14T13:00:00Z", True),
        (MAP, "sitemap", 2, "a", None, False),
        (MAP, "sitemap", 3, "a", "2020-09-14T13:00:00Z", True),
    ]
    source = RecordedHints(history(), write(tmp_path / "hints", rows))
    assert [signals(source, day)[0][0] for day in (1, 2, 3)] == [1, 1, 1]


def test_skipped_time_is_read_as_the_state_at_the_start(tmp_path: Path) -> None:
    rows: list[Row] = [
        (MAP, "sitemap", 1, "a", "2020-09-14T13:00:00Z", True),
        (MAP, "sitemap", 5, "a", "2020-09-18T12:30:00Z", True),
    ]
    page = np.array([0, 0, 1])
    whole = assemble([URL + "a", URL + "b"], page, BEGIN + np.array([0, 9, 0]) * DAY, page, change="text",
                     carries=frozenset())  # fmt: skip
    source = RecordedHints(without_start(whole, 3 * DAY), write(tmp_path / "hints", rows))
    assert signals(source, 1)[0] == [0, 0]
    assert signals(source, 2)[0] == [1, 0]


def test_a_file_that_says_what_an_honest_sitemap_says(tmp_path: Path) -> None:
    """The same signals as from the simulated sitemap, whatever is visited."""
    world = living(pages=40)
    rows: list[Row] = []
    for page, url in enumerate(world.urls):
        for at in world.time[world.first[page] : world.first[page + 1]]:
            date = np.datetime_as_string(np.datetime64(0, "s") + np.timedelta64(int(at), "s")) + "Z"
            rows.append((url.replace(str(page), "sitemap.xml"), "sitemap", (at - BEGIN) / DAY, url, date, True))
    recorded = RecordedHints(world, write(tmp_path / "hints", rows))
    simulated = SimulatedSitemap(world, "sitemap:honest", 1)
    rng, last = np.random.default_rng(1), np.zeros(40)
    for day in range(1, 50):
        one, two = recorded.read(day * DAY, last), simulated.read(day * DAY, last)
        assert np.array_equal(one.signals[0], two.signals[0])
        assert np.allclose(one.claimed[0], two.claimed[0], atol=1)
        last[rng.random(40) < 0.2] = day * DAY


def test_listed_pages_are_found_sooner(tmp_path: Path) -> None:
    """Nothing links to the new pages; one is in the sitemap, one in the feed, one in neither."""
    births = {"b": 3.0, "c": 3.0, "d": 3.0}
    world = history("abcd", births)
    empty = LinkLists(np.zeros(4, np.int32), np.zeros(2, np.int64), np.zeros(0, np.int32))
    world = assemble(world.urls, np.arange(4), BEGIN + world.time, world.version, change="text", carries=frozenset(),
                     links=empty)  # fmt: skip
    folder = write(tmp_path / "hints", [(MAP, "sitemap", 4.5, "b", None, True), (FEED, "feed", 6.5, "c", None, True)])
    setup: dict[str, Any] = {"budget": 4, "cycle": DAY, "cycles": 23, "discover": "links"}
    for policy in ("round-robin", "shock"):
        without = replay(world, make_policy(policy), Setup(**setup))
        told = replay(world, make_policy(policy), Setup(**setup, hints=str(folder)))
        assert without.new_pages == told.new_pages == 3
        end = 23 - 3
        assert without.discovery == pytest.approx(end, abs=0.1), "none was ever visited"
        assert told.discovery == pytest.approx((2 + 4 + end) / 3, abs=0.1)


def test_errors(tmp_path: Path) -> None:
    setup: dict[str, Any] = {"budget": 1, "cycle": DAY, "cycles": 1}
    with pytest.raises(UsageError, match="use a folder of hint files, or sitemap:"):
        Setup(**setup, hints="nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no hint files"):
        Setup(**setup, hints=str(tmp_path / "empty"))
    pq.write_table(pa.table({"url": ["x"]}), tmp_path / "empty" / "x.parquet")
    with pytest.raises(BadArchive, match="lacks the column source"):
        RecordedHints(history(), tmp_path / "empty")
    (tmp_path / "empty" / "x.parquet").write_text("x")
    with pytest.raises(BadArchive, match="cannot read"):
        RecordedHints(history(), tmp_path / "empty")
    with pytest.raises(UsageError, match="name no page"):
        RecordedHints(history("xyz"), write(tmp_path / "hints", [(MAP, "sitemap", 1, "a", None, True)]))


def test_results_depend_on_the_content_of_the_files(tmp_path: Path) -> None:
    one = hints_key(str(write(tmp_path / "hints", [(MAP, "sitemap", 1, "a", None, True)])))
    assert hints_key(str(write(tmp_path / "hints", [(MAP, "sitemap", 1, "b", None, True)]))) != one
    assert hints_key("sitemap:honest") == "sitemap:honest"


def test_the_command_replays_recorded_hints(tmp_path: Path) -> None:
    rows = {"url": [URL + "a", URL + "a", URL + "b"], "time": [int(BEGIN), int(BEGIN + 9 * DAY), int(BEGIN)]}
    archive = tmp_path / "a.parquet"
    pq.write_table(pa.table({**rows, "html": [b"<p>one", b"<p>two", b"<p>b"]}), archive)
    folder = write(tmp_path / "hints", [(MAP, "sitemap", 9.5, "a", "2020-09-22T18:00:00Z", True)])
    words = ["lab", "run", str(archive), "--policy", "shock", "--budget", "1", "--no-cache", "--json"]
    found = json.loads(command(*words, "--hints", str(folder)).out)
    assert found[0]["found"] == 1
    assert found[0]["new_pages"] == 0


def test_requests_over_http_name_no_folders_of_the_server(tmp_path: Path) -> None:
    command = Command(name="lab-run", words=("lab", "run"))
    with pytest.raises(UsageError, match="over HTTP use a simulated sitemap"):
        job_spec(command, {"hints": str(tmp_path)}, tmp_path, Uploads(tmp_path))


def test_of_several_dates_of_a_page_the_newest_possible_counts() -> None:
    now = 100 * DAY
    dates: dict[int, float] = {}
    for date in (300 * DAY, 50 * DAY, 60 * DAY, 55 * DAY, 200 * DAY):
        add_claim(dates, 1, date, now)
    assert dates == {1: 60 * DAY}
    add_claim(dates, 2, 300 * DAY, now)
    assert dates[2] == 300 * DAY, "kept, so that it is reported"


def test_a_year_of_four_zeros_is_no_date() -> None:
    assert parse_date("Mon, 01 Jan 0001 00:00:00 +0000") is None
    assert parse_date("Mon, 01 Jan 01 00:00:00 +0000") == parse_date("2001-01-01")
