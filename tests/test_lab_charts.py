"""Charts: every format is what its suffix says, needs nothing from outside, and shows the rows."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from recrawl.errors import UsageError
from recrawl.lab import charts
from recrawl.lab.experiments.result import Picture

ROWS: list[dict[str, Any]] = [
    {"d": d, "ratio": 0.1 * d + shift, "low": 0.1 * d + shift - 0.05, "high": 0.1 * d + shift + 0.05,
     "policy": policy, "world": world}
    for world in ("made", "real")
    for policy, shift in (("DB", 0.2), ("LB", 0.1))
    for d in range(4)
]  # fmt: skip
LINE = Picture(
    "line", "d", "ratio", "Ratio by d", "distance d", "ChangeRatio", colour="policy", facet="world",
    low="low", high="high", notes=("two worlds",),
)  # fmt: skip
BAR = Picture("bar", "policy", "ratio", "Bars")
GROUPED = Picture("grouped", "policy", "ratio", "Side by side", colour="world")
CALIBRATION = Picture("calibration", "low", "high", "Said and came", "said", "came", colour="policy", size="d")


@pytest.mark.parametrize("picture", [LINE, BAR, GROUPED, CALIBRATION], ids=lambda picture: picture.kind)
def test_every_kind_becomes_a_png_and_an_svg(picture: Picture, tmp_path: Path) -> None:
    chart = charts.draw(picture, ROWS)
    charts.save(chart, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    charts.save(chart, tmp_path / "chart.svg")
    root = ET.parse(tmp_path / "chart.svg").getroot()
    assert root.tag.endswith("svg")
    drawn = "".join(root.itertext())
    assert picture.title in drawn
    assert picture.y_title in drawn


def test_lines_have_a_band_and_a_panel_for_each_world(tmp_path: Path) -> None:
    charts.save(charts.draw(LINE, ROWS), tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    assert drawn.count('aria-roledescription="area mark"') == 4  # two policies on two worlds
    assert {"made", "real", "DB", "LB", "two worlds"} <= set(re.findall(r">([^<]+)<", drawn))


def test_calibration_has_a_line_where_both_agree_and_points_for_counts(tmp_path: Path) -> None:
    charts.save(charts.draw(CALIBRATION, ROWS), tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    assert 'stroke-dasharray="4,4"' in drawn
    assert drawn.count('aria-roledescription="circle"') == len(ROWS)


def test_grouped_bars_are_one_for_each_world(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["d"] == 1]
    charts.save(charts.draw(GROUPED, rows), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().count('aria-roledescription="bar"') == 4


@pytest.mark.slow
def test_html_is_self_contained(tmp_path: Path) -> None:
    charts.save(charts.draw(BAR, ROWS), tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text()
    assert "<html" in page
    assert len(page) > 100_000, "the scripts are in the page itself"
    assert re.findall(r"<script[^>]+src\s*=", page) == []
    assert re.findall(r"<link[^>]+href\s*=", page) == []


def test_json_is_the_specification_with_the_rows(tmp_path: Path) -> None:
    charts.save(charts.draw(LINE, ROWS), tmp_path / "chart.json")
    spec = json.loads((tmp_path / "chart.json").read_text())
    assert "vega-lite" in spec["$schema"]
    assert spec["data"]["values"] == ROWS
    assert spec["config"]["range"]["category"] == charts.PALETTE


def test_rows_without_a_value_are_left_out() -> None:
    spec = charts.spec_of(charts.draw(BAR, [*ROWS, {"policy": "CB", "ratio": None}, {"policy": "XB"}]))
    assert {row["policy"] for row in spec["data"]["values"]} == {"DB", "LB"}


@pytest.mark.slow
def test_many_rows_are_drawn() -> None:
    spec = charts.spec_of(charts.draw(Picture("line", "x", "y", "t"), [{"x": x, "y": x % 7} for x in range(6000)]))
    assert len(spec["data"]["values"]) == 6000


def test_colours_keep_the_order_of_the_rows() -> None:
    """Not that of the alphabet, which would put DB(10) before DB(2)."""
    rows = [{"x": "a", "y": 1, "policy": name} for name in ("DB(2)", "DB(10)", "A")]
    spec = charts.spec_of(charts.draw(Picture("grouped", "x", "y", "t", colour="policy"), rows))
    assert spec["layer"][0]["encoding"]["xOffset"]["sort"] == ["DB(2)", "DB(10)", "A"]


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.html or \.json"):
        charts.save(charts.draw(BAR, ROWS), tmp_path / "chart.pdf")


def test_a_picture_shows_only_its_rows() -> None:
    picture = Picture("bar", "policy", "ratio", "t", only={"world": "made"})
    assert {row["world"] for row in picture.shown(ROWS)} == {"made"}
