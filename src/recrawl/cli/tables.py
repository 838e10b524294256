"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], cell: Callable[[Any], str]) -> None:
    """Print rows; a heading that starts with '>' is aligned right."""
    view = Table(box=None, header_style="bold", pad_edge=False)
    for heading in columns.values():
        view.add_column(heading.lstrip(">"), justify="right" if heading.startswith(">") else "left", overflow="fold")
    for row in rows:
        view.add_row(*(Text(cell(row.get(key))) for key in columns))
    Console().print(view)
