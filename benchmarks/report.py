"""Tables for the terminal and for the documentation, and a description of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Bar:
    """A ratio that must reach `least`: pages per CPU-second of `ours` by those of `theirs`."""

    ours: str
    theirs: str
    least: float | None
    goal: float | None


@dataclass(frozen=True)
class Table:
    title: str
    heads: list[str]
    rows: list[list[str]]

    def show(self) -> None:
        if not self.rows:
            return
        table = RichTable(*self.heads, title=self.title, title_justify="left", box=box.SIMPLE)
        for at, column in enumerate(table.columns):
            column.justify = "right" if at else "left"
        for row in self.rows:
            table.add_row(*row)
        # A file or a pipe gets whole lines, not ones folded to a terminal's width.
        Console(width=None if os.isatty(1) else 160).print(table)

    def markdown(self) -> str:
        if not self.rows:
            return ""
        lines = [
            f"### {self.title}",
            "",
            "| " + " | ".join(self.heads) + " |",
            "|---" + "|---:" * (len(self.heads) - 1) + "|",
            *("| " + " | ".join(row) + " |" for row in self.rows),
        ]
        return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Three significant digits, without an exponent.

    >>> number(0.33812), number(8.9651), number(1234.5)
    ('0.338', '8.97', '1234')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _file_system(folder: Path) -> str:
    """Return the type of a folder's file system; the cost of many small files depends on it."""
    asked = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "an unknown file system"


def machine(work: Path) -> dict[str, str]:
    """Return a description of the machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = []
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "disk": _file_system(work),
    }
