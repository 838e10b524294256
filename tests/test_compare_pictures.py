"""Where two screenshots differ: aligned by rows, so that what only moved is not marked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.pictures import Box, Pixels, changed_regions

pytestmark = pytest.mark.quick
WIDTH = 60


def sheet(height: int) -> Pixels:
    return np.full((height, WIDTH, 3), 255, np.uint8)


def text(seed: int, height: int = 40) -> Pixels:
    """A stretch whose rows all differ from each other and from those of other seeds."""
    picture = sheet(height)
    picture[:, 10:50] = np.random.default_rng(seed).integers(0, 200, (height, 40, 3), np.uint8)
    return picture


def stacked(*parts: Pixels) -> Pixels:
    return np.concatenate(parts)


def test_the_same_pictures_have_no_regions() -> None:
    picture = stacked(text(1), sheet(30), text(2))
    assert changed_regions(picture, picture.copy()) == ([], [])


def test_a_changed_spot_is_boxed_exactly_in_both() -> None:
    before = stacked(text(1), sheet(30), text(2))
    after = before.copy()
    after[50:55, 20:30] = 0
    box = Box(20, 50, 30, 55)
    assert changed_regions(before, after) == ([box], [box])


def test_two_spots_in_the_same_rows_get_two_boxes() -> None:
    before = sheet(40)
    after = before.copy()
    after[5:9, 2:6] = after[5:9, 40:44] = 0
    assert changed_regions(before, after).after == [Box(2, 5, 6, 9), Box(40, 5, 44, 9)]


def test_an_inserted_part_moves_the_rest_without_marking_it() -> None:
    before = stacked(text(1), sheet(20), text(2), text(3))
    after = stacked(text(1), sheet(20), text(4), text(2), text(3))
    assert changed_regions(before, after) == ([], [Box(10, 60, 50, 100)])
    assert changed_regions(after, before) == ([Box(10, 60, 50, 100)], [])


def test_pictures_of_other_widths_are_compared() -> None:
    wide = np.pad(text(1), ((0, 0), (0, 5), (0, 0)), constant_values=255)
    assert changed_regions(text(1), wide) == ([], [])


@given(st.lists(st.integers(0, 6), max_size=6), st.lists(st.integers(0, 6), max_size=6))
def test_every_row_outside_the_boxes_is_in_both_in_the_same_order(old: list[int], new: list[int]) -> None:
    before, after = (stacked(sheet(1), *(text(seed, 3) for seed in seeds)) for seeds in (old, new))
    boxes = changed_regions(before, after)

    def kept(picture: Pixels, marked: list[Box]) -> list[bytes]:
        rows = [row.tobytes() for row in picture]
        return [row for at, row in enumerate(rows) if not any(box.top <= at < box.bottom for box in marked)]

    assert kept(before, boxes.before) == kept(after, boxes.after)
