"""Charts from rows: lines with bands, bars, grouped bars, calibration; as PNG, SVG, HTML or JSON by the file's suffix.

Altair builds a Vega-Lite specification and vl-convert draws it, without a browser or the network; an HTML file contains
its scripts. Both load slowly, so import this module only to draw a chart; a `Picture` describes the chart without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from recrawl.durable_files import replace_file
from recrawl.errors import UsageError
from recrawl.extras import alt, vlc
from recrawl.lab.experiments.result import Picture

Rows = Sequence[Mapping[str, Any]]
Chart: TypeAlias = "alt.TopLevelMixin"
"""Anything that `save` can write."""

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
"""Okabe and Ito's colours, distinguishable with any kind of colour vision."""

_FONT = "Helvetica, Arial, sans-serif"
_PNG_SCALE = 2.0
_WIDTH, _HEIGHT = 420, 260


def draw(picture: Picture, rows: Rows) -> Chart:
    """Return the chart of a picture; rows without x or y are omitted."""
    shown = [dict(row) for row in rows if row.get(picture.x) is not None and row.get(picture.y) is not None]
    make = {"line": line, "bar": bar, "grouped": grouped, "calibration": calibration}[picture.kind]
    return make(shown, picture)


def line(rows: Rows, picture: Picture) -> Chart:
    """Draw lines with points, and a band from `low` to `high` if the picture has them."""
    x = alt.X(picture.x, type="quantitative", title=picture.x_title, axis=alt.Axis(tickMinStep=1, grid=False))
    base = alt.Chart().encode(x=x, color=_colour(picture))
    y = alt.Y(picture.y, type="quantitative", title=picture.y_title, scale=alt.Scale(zero=picture.zero))
    layers: list[alt.Chart] = [base.mark_line(point=True).encode(y=y, tooltip=_tooltip(picture))]
    if picture.low and picture.high:
        band = base.mark_area(opacity=0.2).encode(
            y=alt.Y(picture.low, type="quantitative", title=picture.y_title), y2=alt.Y2(picture.high)
        )
        layers.insert(0, band)
    return _finished(alt.layer(*layers), rows, picture)


def calibration(rows: Rows, picture: Picture) -> Chart:
    """Draw observed against predicted frequencies, from 0 to 1, with a dashed diagonal. Points grow with `size`."""
    whole = alt.Scale(domain=[0, 1])
    x = alt.X(picture.x, type="quantitative", title=picture.x_title, scale=whole)
    y = alt.Y(picture.y, type="quantitative", title=picture.y_title, scale=whole)
    base = alt.Chart().encode(x=x, y=y, color=_colour(picture), tooltip=_tooltip(picture))
    size = alt.Size(picture.size, type="quantitative", title=picture.size, scale=alt.Scale(type="sqrt"))
    ends = alt.InlineData(values=[{picture.x: 0, picture.y: 0}, {picture.x: 1, picture.y: 1}])
    agreed = alt.Chart(ends).mark_line(strokeDash=[4, 4], color="#999999").encode(x=x, y=y)
    return _finished(
        alt.layer(agreed, base.mark_line(), base.mark_circle(opacity=0.8).encode(size=size)), rows, picture
    )


def bar(rows: Rows, picture: Picture) -> Chart:
    """Draw one bar per value of x, in the order of the rows."""
    return _bars(rows, picture, beside=False)


def grouped(rows: Rows, picture: Picture) -> Chart:
    """Draw bars side by side: for each value of x, one bar per colour."""
    return _bars(rows, picture, beside=True)


def _bars(rows: Rows, picture: Picture, *, beside: bool) -> Chart:
    order = list(dict.fromkeys(str(row[picture.x]) for row in rows))
    base = alt.Chart().encode(
        x=alt.X(picture.x, type="nominal", title=picture.x_title, sort=order, axis=alt.Axis(labelAngle=-30))
    )
    if beside and picture.colour:
        base = base.encode(xOffset=alt.XOffset(picture.colour, type="nominal", sort=_order(rows, picture.colour)))
    y = alt.Y(picture.y, type="quantitative", title=picture.y_title)
    layers = [base.mark_bar().encode(y=y, color=_colour(picture), tooltip=_tooltip(picture))]
    if picture.low and picture.high:
        whisker = base.mark_rule(color="#333333").encode(
            y=alt.Y(picture.low, type="quantitative", title=picture.y_title), y2=alt.Y2(picture.high)
        )
        layers.append(whisker)
    return _finished(alt.layer(*layers), rows, picture)


def _order(rows: Rows, key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows if key in row))


def _colour(picture: Picture) -> Any:
    if not picture.colour:
        return alt.value(PALETTE[0])
    # In the order of the rows, not alphabetical: "DB(2)" comes before "DB(10)".
    return alt.Color(picture.colour, type="nominal", title=picture.colour_title or None, sort=None)


def _tooltip(picture: Picture) -> list[alt.Tooltip]:
    """Return the tooltip of a mark."""
    along: Any = "quantitative" if picture.kind in ("line", "calibration") else "nominal"
    named: list[tuple[str, Any]] = [(picture.colour, "nominal"), (picture.x, along)]
    named += [(name, "quantitative") for name in (picture.y, picture.low, picture.high, picture.size)]
    return [alt.Tooltip(name, type=kind) for name, kind in named if name]


def _finished(layers: Any, rows: Rows, picture: Picture) -> Chart:
    """Add data, size, facets, title and the common style."""
    data = alt.InlineData(values=[dict(row) for row in rows])
    sized = layers.properties(width=_WIDTH, height=_HEIGHT)
    whole: Any
    if picture.facet:
        column = alt.Facet(picture.facet, type="nominal", title=None, sort=_order(rows, picture.facet))
        whole = sized.facet(facet=column, columns=picture.columns, data=data)
    else:
        whole = sized.properties(data=data)
    title = alt.TitleParams(text=picture.title, subtitle=list(picture.notes), anchor="start")
    finished: Chart = (
        whole.properties(title=title)
        .configure(font=_FONT, background="white")
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#e5e5e5")
        .configure_legend(labelFontSize=12, titleFontSize=12, labelLimit=300, symbolOpacity=1)
        .configure_title(fontSize=15, subtitleFontSize=12, subtitleColor="#555555")
        .configure_header(labelFontSize=13)
        .configure_range(category=PALETTE)
        .configure_view(stroke=None)
    )
    return finished


def spec_of(chart: Chart) -> dict[str, Any]:
    """Return the Vega-Lite specification, with the rows inline."""
    with alt.data_transformers.enable("default", consolidate_datasets=False, max_rows=None):
        spec: dict[str, Any] = chart.to_dict()
    return spec


def save(chart: Chart, path: Path) -> None:
    """Write a chart as .png, .svg, .html (self-contained) or .json.

    >>> from pathlib import Path
    >>> save(draw(Picture("bar", "x", "y", "title"), [{"x": "a", "y": 1}]), Path("chart.gif"))
    Traceback (most recent call last):
    recrawl.errors.UsageError: invalid chart file 'chart.gif'; use .png, .svg, .html or .json
    """
    spec = spec_of(chart)
    match path.suffix.lower():
        case ".png":
            replace_file(path, vlc.vegalite_to_png(spec, scale=_PNG_SCALE))
        case ".svg":
            replace_file(path, vlc.vegalite_to_svg(spec))
        case ".html":
            replace_file(path, vlc.vegalite_to_html(spec, bundle=True))
        case ".json":
            replace_file(path, json.dumps(spec, indent=1))
        case _:
            raise UsageError(f"invalid chart file '{path.name}'; use .png, .svg, .html or .json")


_TITLES = {
    "change_ratio": "change ratio (found per visit)",
    "share_of_clairvoyant": "share of the clairvoyant's finds",
    "age_days": "mean age, days",
    "found": "updates found",
}


def compared(results: Sequence[Mapping[str, Any]], metric: str, path: Path) -> None:
    """Write a chart of the rows of `runner.over_seeds`: policies side by side, the spread over seeds as whiskers."""
    picture = Picture(
        "grouped",
        x="budget",
        y=metric,
        title=f"{results[0]['pages']:,} pages on {results[0]['sites']:,} sites, {results[0]['change']} change",
        x_title="visits per cycle",
        y_title=_TITLES.get(metric, metric.replace("_", " ")),
        colour="policy",
        facet="cycle" if len({result["cycle_days"] for result in results}) > 1 else "",
        low="low",
        high="high",
    )
    save(draw(picture, [_row(result, metric) for result in results]), path)


def _row(result: Mapping[str, Any], metric: str) -> dict[str, Any]:
    value = result[metric]
    around = (result.get("spread") or {}).get(metric) or 0.0
    return {
        "policy": result["policy"],
        "budget": f"{result['budget']:,}",
        "cycle": f"cycles of {result['cycle_days']:g} days",
        metric: value,
        "low": None if value is None else value - around,
        "high": None if value is None else value + around,
    }
