"""The charts of the start page: freshness, updates and visits by cycle, and the ages of pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recrawl.repository.reports.overview import CycleFigures
from recrawl.repository.results.words import count, size
from recrawl.serve.dashboard.charts import lines_and_columns as charts
from recrawl.serve.dashboard.render import number, percent
from recrawl.times import stamp

Values = dict[str, Any]
"""Variables for a template."""
TIME = "Start of the cycle (UTC)"
_NO_CHART: Values = {"chart": None, "rows": [], "summary": ""}


def freshness(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of freshness at the end of each cycle."""
    rows = [row for row in cycles if row.fresh is not None]
    if not rows:
        return _NO_CHART
    parts = [(row.fresh or 0.0, row.low or 0.0, row.high or 0.0) for row in rows]
    fresh, low, high = (list(column) for column in zip(*parts, strict=True))
    texts = [f"{_when(row)}\n{percent(row.fresh)} fresh\n{percent(row.low)} to {percent(row.high)}" for row in rows]
    axes = charts.Axes(TIME, "Fresh pages (%)")
    chart = charts.curve([row.started for row in rows], fresh, low, high, texts=texts, axes=axes, top=1.0)
    summary = f"From {percent(fresh[0])} to {percent(fresh[-1])} over {count(len(rows), 'cycle')}."
    table = [(stamp(row.started), percent(row.fresh), percent(row.low), percent(row.high)) for row in rows]
    return {"chart": chart, "summary": summary, "rows": table}


def updates(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of updates found, beside the expected number."""
    if not cycles:
        return _NO_CHART
    columns = [[("changed", row.changed), ("new", row.new), ("gone", row.gone)] for row in cycles]
    texts = [
        f"{_when(row)}\n{row.changed:,} changed, {row.new:,} new, {row.gone:,} gone\n{row.expected:,.0f} expected"
        for row in cycles
    ]
    axes = charts.Axes(TIME, f"Updates{_per(cycles)} (pages)")
    times, marks = [row.started for row in cycles], [row.expected for row in cycles]
    chart = charts.bars(columns, texts=texts, times=times, marks=marks, axes=axes)
    summary = f"{count(sum(row.found for row in cycles), 'update')} in {count(_total(cycles), 'cycle')}."
    table = [
        (stamp(row.started), *(number(value) for value in (row.changed, row.new, row.gone)), number(row.expected))
        for row in cycles
    ]
    return {"chart": chart, "summary": summary, "rows": table}


def visits(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of visits by outcome."""
    if not cycles:
        return _NO_CHART
    columns = [
        [
            *(("changed", row.found), ("unchanged", row.unchanged)),
            *(("missing", row.missing), ("skipped", row.skipped), ("failed", row.failed)),
        ]
        for row in cycles
    ]
    texts = [
        f"{_when(row)}\n{count(row.visits, 'visit')}, {size(row.received)}\n"
        f"{row.found:,} updates, {row.unchanged:,} unchanged\n"
        f"{row.missing:,} missing, {row.skipped:,} skipped, {row.failed:,} failed"
        for row in cycles
    ]
    axes = charts.Axes(TIME, f"Visits{_per(cycles)}")
    chart = charts.bars(columns, texts=texts, times=[row.started for row in cycles], axes=axes)
    received = size(sum(row.received for row in cycles))
    summary = f"{count(sum(row.visits for row in cycles), 'visit')}, {received} received."
    table = [
        (
            stamp(row.started),
            *(number(value) for value in (row.visits, row.found, row.unchanged)),
            *(number(value) for value in (row.missing, row.skipped, row.failed, row.unmodified)),
            size(row.received),
        )
        for row in cycles
    ]
    return {"chart": chart, "summary": summary, "rows": table}


def ages(classes: Sequence[tuple[str, int]]) -> Values:
    """Return the chart of pages by time since their last visit."""
    if not sum(pages for _, pages in classes):
        return _NO_CHART
    texts = [f"{'up to ' if name != 'longer' else ''}{name}\n{count(pages, 'page')}" for name, pages in classes]
    columns = [[("plain", float(pages))] for _, pages in classes]
    axes = charts.Axes("Time since the last visit, up to", "Pages")
    chart = charts.bars(columns, texts=texts, labels=[name for name, _ in classes], axes=axes)
    most = max(classes, key=lambda row: row[1])
    summary = f"At the end of the last cycle, most pages ({most[1]:,}) are in the class up to {most[0]}."
    return {"chart": chart, "summary": summary, "rows": [(name, number(pages)) for name, pages in classes]}


def _when(row: CycleFigures) -> str:
    more = "" if row.cycles == 1 else f", {row.cycles} cycles"
    return f"{stamp(row.started)[:16]}{more}"


def _per(cycles: Sequence[CycleFigures]) -> str:
    most = max(row.cycles for row in cycles)
    return "" if most == 1 else f" per {most} cycles"


def _total(cycles: Sequence[CycleFigures]) -> int:
    return sum(row.cycles for row in cycles)
