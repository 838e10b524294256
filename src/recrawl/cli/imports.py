"""`recrawl import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from recrawl.cli.output import AsJson, as_json, note, say
from recrawl.cli.session import folder_of, load, options_of, writing
from recrawl.engine.importing import Importer
from recrawl.errors import UsageError
from recrawl.lab.archive import Archive

EXAMPLE = "Example: recrawl import history.parquet"
_FIRST, _LAST = -62135596800, 253402300799  # the years 1 and 9999


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="A URL list (one a line; - for standard input) or Parquet."),
    ],
    json: AsJson = False,
) -> None:
    """Take in addresses (a text file) or whole histories of pages (a Parquet archive: url, time, html).

    Addresses become known pages, whatever their site; the next crawl downloads them. Histories are recorded as if
    the pages had been visited at those times; pages that are known already are left alone.
    """
    folder = folder_of(ctx)
    values = load(folder)
    options = options_of(values)
    lists = [file for file in files if file.suffix != ".parquet" and not file.is_dir()]
    archives = [file for file in files if file not in lists]
    for file in lists:
        if str(file) != "-" and not file.is_file():
            raise UsageError(f"there is no file {file}")
    history = Archive.open(archives) if archives else None
    if history is not None and not (history.start >= _FIRST and history.end <= _LAST):
        raise UsageError("the times of this archive are no seconds since 1970; are they milliseconds?")
    pages = versions = 0
    bad: list[str] = []
    with writing(folder, "import", options, values) as repository:
        if lists:
            pages, bad = Importer(repository, options).urls(_lines(lists))
        if history is not None:
            histories = _histories(history, quiet=json)
            taken, versions = Importer(repository, options).histories(histories)
            pages += taken
    if json:
        as_json({"pages": pages, "versions": versions, "refused": bad})
        return
    for line in bad[:5]:
        note(f"not an address of a web page: {line[:200]}")
    say(f"took in {pages:,} new pages and {versions:,} versions" + (f"; refused {len(bad):,}" if bad else ""))


def _lines(files: list[Path]) -> Iterator[str]:
    for file in files:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="replace")
        yield from (line for line in text.splitlines() if line.strip() and not line.startswith("#"))


def _histories(archive: Archive, *, quiet: bool) -> Iterator[tuple[str, list[tuple[float, bytes | None]]]]:
    pages = range(len(archive))
    for page in pages if quiet or not sys.stderr.isatty() else track(pages, "importing", transient=True):
        rows = range(int(archive.first[page]), int(archive.first[page + 1]))
        yield (
            archive.urls[page],
            [(float(archive.times[row]), None if archive.removed[row] else archive.html(row)) for row in rows],
        )
