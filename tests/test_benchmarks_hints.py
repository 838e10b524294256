"""The classes of sources in `python -m benchmarks.hints`, on sources made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.hints import Source, from_first_hint, measure_source

from recrawl.lab.formats.hint_files import read_hints
from recrawl.lab.histories.history import History, assemble
from tests.test_lab_recorded_hints import BEGIN, MAP, URL, Row, write

DAY = 86400.0
DAYS = 40


def world() -> History:
    """Four pages; page a changes every other day, the others never; d is born on day 20."""
    rows = [(0, day) for day in range(0, DAYS, 2)] + [(1, 0), (2, 0), (3, 20)]
    page, day = (np.array(column) for column in zip(*rows, strict=True))
    urls = [URL + name for name in "abcd"]
    return assemble(urls, page, BEGIN + day * DAY, np.arange(len(rows)), change="text", carries=frozenset())


def date(day: float) -> str:
    return str(np.datetime64(int(BEGIN + day * DAY), "s")) + "Z"


def measured(tmp_path: Path, rows: list[Row]) -> Source:
    return measure_source(world(), read_hints(write(tmp_path / "hints", rows)), 0, "a")


def test_an_honest_source_is_informative(tmp_path: Path) -> None:
    rows: list[Row] = [(MAP, "sitemap", 0, page, date(0), True) for page in "abc"]
    rows += [(MAP, "sitemap", day, "a", date(day), True) for day in range(2, DAYS, 2)]
    found = measured(tmp_path, rows)
    assert (found.moves, found.precision) == (19, 1.0)
    assert found.base == pytest.approx(1 / 3)
    assert found.verdict() == "informative"


def test_a_source_that_redates_everything_is_as_good_as_guessing(tmp_path: Path) -> None:
    rows: list[Row] = [(MAP, "sitemap", day, page, date(day), True) for day in range(DAYS) for page in "abc"]
    found = measured(tmp_path, rows)
    assert found.precision == pytest.approx(found.base)
    assert found.verdict() == "redates everything"


def test_false_frozen_and_missing_dates(tmp_path: Path) -> None:
    first: list[Row] = [(MAP, "sitemap", 0, page, date(0), True) for page in "abc"]
    false: list[Row] = [(MAP, "sitemap", day, "b", date(day), True) for day in range(1, DAYS)]
    assert measured(tmp_path, first + false).verdict() == "mostly false"
    assert measured(tmp_path, first + false[:5]).verdict() == "dates hardly move"
    assert measured(tmp_path, first).verdict() == "dates never move"
    assert measured(tmp_path, [(MAP, "sitemap", 0, "a", None, True)]).verdict() == "no dates"


def test_new_entries_of_new_pages_are_counted(tmp_path: Path) -> None:
    rows: list[Row] = [(MAP, "sitemap", day, page, None, True) for day, page in ((0, "a"), (20.5, "d"), (25, "b"))]
    found = measured(tmp_path, rows)
    assert (found.new, found.born) == (2, 1)


def test_replays_start_thirty_days_before_the_first_hint(tmp_path: Path) -> None:
    rows: list[Row] = [(MAP, "sitemap", 35, "a", date(35), True)]
    later = from_first_hint(world(), write(tmp_path / "hints", rows))
    assert later.begins.tolist() == [BEGIN + 5 * DAY]
