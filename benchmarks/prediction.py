"""Prediction: what it costs at the size of Radinsky and Bennett's data, 54,816 pages watched for 184 days.

Each part runs in a process of its own: the choice of experts and a day of multiple experts for all pages
(`lab_experts`, two threads), the pooled model (`lab_pooled`), and the chi-squared test (`lab_significance`). The bars
are for a machine with two free cores; half of the CPU seconds is what it would need.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks import lab_experts, lab_pooled, lab_significance
from benchmarks.report import Table, number

Figures = dict[str, dict[str, float]]
CORES = 2
GIB = 12.0
CHEAPER = 100.0


def measure(scale: float = 1.0) -> Figures:
    """All of it; `scale` makes it smaller, to try it out."""
    pages = str(max(500, round(lab_experts.PAGES * scale)))
    return {
        "experts": _child("lab_experts", pages),
        "pooled": _child("lab_pooled", pages),
        "significance": _child("lab_significance", str(max(1000, round(lab_significance.PAIRS * scale)))),
    }


def _child(module: str, *words: str) -> dict[str, float]:
    print(f"  {module} ...", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def tables(figures: Figures) -> list[Table]:
    """What was measured beside the bars."""
    experts, pooled, test = figures["experts"], figures["pooled"], figures["significance"]
    select, apply = experts["select_cpu_seconds"] / CORES, experts["experts_cpu_seconds"] / CORES
    learned = pooled["CPU seconds, trained in all"]
    # A model lasts for four weeks of daily predictions; experts are trained for each day.
    daily = learned / lab_pooled.LASTS + pooled["CPU seconds, applied to all pages"]
    ratio = experts["experts_cpu_seconds"] / daily
    checks: list[tuple[str, str, str, Any]] = [
        ("choice of 20 experts by cross-correlation, two cores", f"{number(select)} s",
         f"{lab_experts.SELECT_SECONDS:g} s", select < lab_experts.SELECT_SECONDS),
        ("multiple experts, trained and applied for a day, two cores", f"{number(apply)} s",
         f"{lab_experts.EXPERTS_SECONDS:g} s", apply < lab_experts.EXPERTS_SECONDS),
        ("memory of both", f"{experts['most_gib']:.1f} GiB", f"{GIB:g} GiB", experts["most_gib"] < GIB),
        (f"pooled, trained on {pooled['rows learned from']:,.0f} rows, one core", f"{number(learned)} s",
         f"{lab_pooled.TRAINED:g} s", learned < lab_pooled.TRAINED),
        ("pooled, applied to all pages", f"{number(pooled['CPU seconds, applied to all pages'])} s",
         f"{lab_pooled.APPLIED:g} s", pooled["CPU seconds, applied to all pages"] < lab_pooled.APPLIED),
        ("a day of pooled against a day of multiple experts", f"{ratio:.0f} times less", f"{CHEAPER:g} times less",
         ratio >= CHEAPER),
        (f"chi-squared test of {test['pairs']:,.0f} pairs of versions", f"{number(test['CPU seconds'])} s",
         f"{lab_significance.SECONDS:g} s", test["CPU seconds"] < lab_significance.SECONDS),
    ]  # fmt: skip
    rows = [[about, measured, bar, "yes" if kept else "NO"] for about, measured, bar, kept in checks]
    title = f"Prediction: {experts['pages']:,.0f} pages, {experts['days']:,.0f} days, from CPU seconds"
    return [Table(title, ["", "measured", "bar", "kept"], rows)]
