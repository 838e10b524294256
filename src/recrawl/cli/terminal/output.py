"""Standard output: tables on a terminal, tab-separated values with a heading in a pipe, JSON with `--json`.

Text from the web is untrusted: control characters could rewrite the terminal, and Rich reads square brackets as
markup. Everything goes through `clean` and is printed as plain text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.errors import UsageError
from recrawl.repository.results.words import count, percent

__all__ = [
    "AsJson",
    "as_json",
    "clean",
    "count",
    "json_line",
    "note",
    "percent",
    "say",
    "table",
    "when",
    "write_picture",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """Replace control characters that a terminal would interpret.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def say(text: str = "") -> None:
    """Print a line to standard output."""
    typer.echo(clean(text) if text else "")


def note(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(clean(text), err=True)


def as_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json_text(value, indent=2))


def write_picture(file: Path, picture: bytes, *, json: bool, **facts: Any) -> None:
    """Write a picture to a file and print where it is."""
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    if json:
        as_json({"file": str(file), "bytes": len(picture), **facts})
    else:
        regions = f", {count(facts['regions'], 'changed region')}" if "regions" in facts else ""
        say(f"{file}: {len(picture):,} bytes{regions}")


def json_line(value: Any) -> None:
    """Print a value as one line of JSON, for programs that read a stream."""
    typer.echo(json_text(value))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON in which control characters that a terminal would interpret are escaped; it means the same.

    >>> print(json_text({"title": "a\\x9b31mb"}))
    {"title": "a\\u009b31mb"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # they stand only within strings


def when(time: datetime | None) -> str:
    """A time in UTC, to the second.

    >>> from datetime import UTC
    >>> when(datetime(2026, 3, 1, tzinfo=UTC)), when(None)
    ('2026-03-01 00:00:00Z', 'never')
    """
    return "never" if time is None else time.strftime("%Y-%m-%d %H:%M:%SZ")


_HEADER = [True]
_SHORT_CELL = 20
"""Columns with cells up to this length are not wrapped."""


def show_header(shown: bool) -> None:
    """Whether tables in a pipe begin with a line of headings."""
    _HEADER[0] = shown


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Print rows; `columns` maps key to heading, and a heading that starts with '>' is aligned right."""
    if not sys.stdout.isatty():
        for number, row in enumerate(rows):
            if _HEADER[0] and not number:
                typer.echo("\t".join(heading.lstrip(">") for heading in columns.values()))
            cells = (_plain(row.get(key)) for key in columns)
            typer.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells))
        return
    from rich.console import Console  # lazy: rich loads slowly
    from rich.table import Table  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    view = Table(box=None, header_style="bold", pad_edge=False)
    lines = [[_cell(row.get(key)) for key in columns] for row in rows]
    for place, heading in enumerate(columns.values()):
        name, right = heading.lstrip(">"), heading.startswith(">")
        longest = max((len(line[place]) for line in lines), default=0)
        # Long texts fold; numbers, dates and words stay whole.
        view.add_column(
            name, justify="right" if right else "left", overflow="fold", no_wrap=right or longest <= _SHORT_CELL
        )
    for line in lines:
        view.add_row(*map(Text, line))
    Console().print(view)


def _plain(value: Any) -> str:
    """A cell for a pipe: integers without thousands separators."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return clean(value)
