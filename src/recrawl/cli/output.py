"""What people and machines see: tables on a terminal, tabs in a pipe, JSON when asked.

Text from the web is hostile here too: control characters could rewrite a terminal, square brackets are markup to
Rich. Everything goes through `clean` and is printed as plain text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from recrawl.repository.words import count

__all__ = ["AsJson", "as_json", "clean", "count", "json_line", "note", "say", "table"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """Text without anything that a terminal would obey.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def say(text: str = "") -> None:
    """A line for people."""
    typer.echo(clean(text) if text else "")


def note(text: str) -> None:
    """A line beside the output proper."""
    typer.echo(clean(text), err=True)


def as_json(value: Any) -> None:
    """A value for machines."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def json_line(value: Any) -> None:
    """A value for machines that read a stream: one line each."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Rows for people; `columns` is key to heading, a heading that starts with '>' is aligned right."""
    if not sys.stdout.isatty():
        for row in rows:
            cells = (_plain(row.get(key)) for key in columns)
            typer.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells))
        return
    from recrawl.cli.tables import show  # lazy: loads rich

    show(rows, columns, _cell)


def _plain(value: Any) -> str:
    """A cell for a pipe: numbers as programs read them."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return clean(value)
