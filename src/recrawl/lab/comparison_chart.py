"""The chart of a comparison: policies side by side at each budget, with the spread over seeds as whiskers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recrawl.lab.charts import draw, save
from recrawl.lab.experiments.result import Picture

_TITLES = {
    "change_ratio": "change ratio (found per visit)",
    "share_of_clairvoyant": "share of the clairvoyant's finds",
    "age_days": "mean age, days",
    "found": "updates found",
}


def compared(results: Sequence[Mapping[str, Any]], metric: str, path: Path) -> None:
    """Write a chart of the rows of `runner.over_seeds`, in the format of the path's suffix."""
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
