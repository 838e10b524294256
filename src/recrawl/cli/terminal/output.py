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
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recrawl
from recrawl.durable_files import replace_file
from recrawl.errors import UsageError
from recrawl.repository.results.addresses import readable_url
from recrawl.repository.results.words import count, percent

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

__all__ = [
    "AsJson",
    "as_json",
    "clean",
    "count",
    "json_line",
    "note",
    "percent",
    "repository",
    "say",
    "show_markdown",
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


def show_markdown(text: str) -> None:
    """Print Markdown: rendered on a terminal, as it is in a pipe."""
    if not sys.stdout.isatty():
        say(text)
        return
    from rich.console import Console  # lazy: rich loads slowly
    from rich.markdown import Markdown  # lazy: rich loads slowly

    Console().print(Markdown(clean(text)))


def note(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(clean(text), err=True)


def as_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json_text(value, indent=2))


def repository(ctx: typer.Context) -> Repository:
    """The repository in or above the current folder, or the one that `-C` names."""
    return recrawl.open(ctx.obj or Path(), notify=note)


def write_picture(file: Path, picture: bytes, *, json: bool, **facts: Any) -> None:
    """Write a picture to a file and print where it is."""
    try:
        replace_file(file, picture)
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


_HEADER, _WIDE = [True], [False]
_GAP = 2
"""Columns between two columns of a table."""
_LEAST_TEXT = 12
_LEAST_URL = 20
"""Characters that a column of text keeps at least, and one of URLs."""


def show_header(shown: bool) -> None:
    """Whether tables in a pipe begin with a line of headings."""
    _HEADER[0] = shown


def show_wide(wide: bool) -> None:
    """Whether tables on a terminal may be wider than it."""
    _WIDE[0] = wide


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Print rows; `columns` maps key to heading, and a heading that starts with '>' is aligned right."""
    if not sys.stdout.isatty():
        for number, row in enumerate(rows):
            if _HEADER[0] and not number:
                typer.echo("\t".join(heading.lstrip(">") for heading in columns.values()))
            cells = (_plain(row.get(key)) for key in columns)
            typer.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in cells))
        return
    from rich.cells import cell_len  # lazy: rich loads slowly
    from rich.console import Console  # lazy: rich loads slowly
    from rich.table import Table  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    names, right = [it.lstrip(">") for it in columns.values()], [it.startswith(">") for it in columns.values()]
    lines = [[_shown(key, row.get(key)) for key in columns] for row in rows]
    longest = [max((cell_len(line[place]) for line in lines), default=0) for place in range(len(names))]
    natural = [max(length, len(name)) for length, name in zip(longest, names, strict=True)]
    room = sum(natural) + _GAP * len(natural) if _WIDE[0] else Console().width
    urls = [any(_is_url(line[place]) for line in lines) for place in range(len(names))]
    least = [
        max(
            max(map(len, name.split()), default=0),
            length if number else min(length, _LEAST_URL if url else _LEAST_TEXT),
        )
        for name, length, number, url in zip(names, longest, right, urls, strict=True)
    ]
    widths = _fitted(natural, least, room)
    if sum(widths) + _GAP * (len(widths) - 1) > room:
        _print_records(names, lines, room)
        return
    view = Table(box=None, header_style="bold", pad_edge=False)
    for name, width, number in zip(names, widths, right, strict=True):
        view.add_column(name, justify="right" if number else "left", overflow="fold", width=width)
    for line in lines:
        view.add_row(*(Text(_one_line(cell, width)) for cell, width in zip(line, widths, strict=True)))
    Console(width=max(room, 1)).print(view)


def _fitted(natural: list[int], least: list[int], room: int) -> list[int]:
    """Widths of columns in a line: the widest give first, none more than it can.

    >>> _fitted([60, 5, 40], [24, 5, 12], 80), _fitted([10, 5], [10, 5], 12)
    ([35, 5, 36], [10, 5])
    """
    widths = [max(min(width, room), fewest) for width, fewest in zip(natural, least, strict=True)]
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        free = [place for place, width in enumerate(widths) if width > least[place]]
        if not free:
            break
        widths[max(free, key=lambda place: widths[place])] -= 1
    return widths


def _one_line(cell: str, width: int) -> str:
    """A URL shortened in its middle, so that it takes one line; other text is as it is, and folds.

    >>> _one_line("https://a.example/one/two/three", 20), _one_line("one two three", 5)
    ('https://a.…two/three', 'one two three')
    """
    from rich.cells import cell_len  # lazy: rich loads slowly

    def beginning(text: str, room: int) -> str:
        used = accumulate(map(cell_len, text))  # letters of some scripts take two columns
        return text[: sum(1 for columns in used if columns <= room)]

    if cell_len(cell) <= width or not _is_url(cell):
        return cell
    return f"{beginning(cell, width // 2)}…{beginning(cell[::-1], width - 1 - width // 2)[::-1]}"


def _is_url(cell: str) -> bool:
    return cell.startswith(("https://", "http://")) and " " not in cell


def _print_records(names: list[str], lines: list[list[str]], room: int) -> None:
    """Rows that are too wide for the terminal: each begins with its first cell, the others follow by name."""
    for first, *others in lines:
        say(_one_line(first, room))
        parts = (f"{name} {_one_line(cell, room // 2)}" for name, cell in zip(names[1:], others, strict=True) if cell)
        for line in wrap(", ".join(parts), max(room, 20), initial_indent="  ", subsequent_indent="    "):
            say(line)


def _plain(value: Any) -> str:
    """A cell for a pipe: integers without thousands separators."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _cell(value)


def _shown(key: str, value: Any) -> str:
    """A cell on a terminal: URLs with words and hosts in their own letters."""
    return _cell(readable_url(value) if key == "url" and isinstance(value, str) else value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return clean(value)
