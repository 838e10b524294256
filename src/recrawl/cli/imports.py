"""`recrawl import`: URL lists and histories of pages into the repository or an archive."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from recrawl.cli.terminal import import_history
from recrawl.cli.terminal.import_history import Selection
from recrawl.cli.terminal.output import AsJson, as_json, note, say
from recrawl.cli.terminal.progress import progress
from recrawl.cli.terminal.session import folder_of, load, options_of, writing
from recrawl.crawl.importer import Importer
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.formats.source_kinds import Kind
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.times import moment

EXAMPLE = "Example: recrawl import git site --base-url https://example.org --out site.parquet"
_FIRST, _LAST = -62135596800, 253402300799  # the years 1 and 9999
_WORDS: dict[str, Kind] = {"git": "git", "warc": "warc"}


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[git | warc] FILE...",
            help="A URL list (one per line; - for standard input), Parquet or WARC files, or a git repository.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.parquet", help="Write the history (git or WARC) to this archive instead."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="git: URL at which the pages are published.")
    ] = None,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="git: branch. Default: the current one.")] = None,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="git: folder that holds the site. Default: all.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="git, WARC: start with the pages as of this time.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="git, WARC: ignore later versions.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="PAGES", help="git, WARC: import at most this many pages, oldest first."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait if another command is writing to the repository.")] = False,
    json: AsJson = False,
) -> None:
    """Import URLs (a text file) or histories of pages (Parquet, WARC, a site's git repository).

    URLs become known pages, whatever their site; the next crawl downloads them. Histories are recorded as if the
    pages had been visited at those times; pages that are already known are skipped. With --out, the history is
    written as a Parquet archive (url, time, html) for the lab, and no repository is needed.

    In a git repository, every commit on the branch that changes an .html or .htm file adds a version of that page, at
    the time of the commit; index.html is the page of its folder. The words git and warc are optional.
    """
    kinds = _kinds(files)
    now = time.time()
    window = Window(_second(since, now), _second(until, now), limit)
    selection = Selection(base_url, branch, root, window)
    selection.check({kind for kind in kinds.values() if kind})
    if out is not None:
        import_history.to_archive(kinds, out, selection, json=json)
    else:
        _to_repository(folder_of(ctx), kinds, selection, wait=wait, json=json)


def _kinds(files: list[Path]) -> dict[Path, Kind | None]:
    """The kind of each file, by the first word or by content; None is a URL list."""
    word = _WORDS.get(str(files[0])) if len(files) > 1 else None
    return dict.fromkeys(files[1:], word) if word else {file: import_history.kind_of(file) for file in files}


def _second(text: str | None, now: float) -> int | None:
    return None if text is None else int(moment(text, now))


def _to_repository(
    folder: Path, kinds: dict[Path, Kind | None], selection: Selection, *, wait: bool, json: bool
) -> None:
    values = load(folder)
    options = options_of(values)
    lists = [file for file, kind in kinds.items() if kind is None]
    pages = versions = 0
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="recrawl-") as aside:
        history, converted = _history(kinds, Path(aside), selection, quiet=json)
        with writing(folder, "import", options, values, wait=wait) as repository:
            if lists:
                pages, bad = Importer(repository, options).urls(_lines(lists))
            if history is not None:
                histories = _histories(history, quiet=json)
                taken, versions = Importer(repository, options).histories(histories)
                pages += taken
    if json:
        result: dict[str, Any] = {"pages": pages, "versions": versions, "refused": bad}
        as_json(result | ({"remarks": converted.remarks} if converted else {}))
        return
    for line in bad[:5]:
        note(f"not a valid URL: {line[:200]}")
    if converted:
        import_history.print_remarks(converted)
    say(f"imported {pages:,} new pages and {versions:,} versions" + (f"; refused {len(bad):,}" if bad else ""))


def _history(
    kinds: dict[Path, Kind | None], aside: Path, selection: Selection, *, quiet: bool
) -> tuple[Archive | None, Taken | None]:
    """All given histories as one archive, and the report of the conversion if there was one."""
    archives = [file for file, kind in kinds.items() if kind == "parquet"]
    converted: Taken | None = None
    for word, kind in _WORDS.items():
        sources = [file for file, found in kinds.items() if found == kind]
        if sources:
            archives.append(aside / f"{word}.parquet")
            taken = import_history.convert(kind, sources, archives[-1], selection, quiet=quiet)
            converted = converted or taken
            for what, number in taken.remarks.items() if taken is not converted else ():
                converted.remark(what, number)
    if not archives:
        return None, None
    history = Archive.open(archives)
    if not (history.start >= _FIRST and history.end <= _LAST):
        raise UsageError("invalid times in this archive: expected seconds since 1970 (milliseconds?)")
    return history, converted


def _lines(files: list[Path]) -> Iterator[str]:
    for file in files:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="replace")
        yield from (line for line in text.splitlines() if line.strip() and not line.startswith("#"))


def _histories(archive: Archive, *, quiet: bool) -> Iterator[tuple[str, list[tuple[float, bytes | None]]]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with progress(*columns, quiet=quiet) as bars:
        task = bars.add_task("importing pages", total=len(archive))
        for page in range(len(archive)):
            rows = range(int(archive.first[page]), int(archive.first[page + 1]))
            yield (
                archive.urls[page],
                [(float(archive.times[row]), None if archive.removed[row] else archive.html(row)) for row in rows],
            )
            bars.update(task, completed=page + 1)
