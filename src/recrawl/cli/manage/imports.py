"""`recrawl import`: URL lists and histories of pages into the repository or an archive."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, say, table
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.parameters import ImportOptions, Wait
from recrawl.times import iso, moment, stamp

if TYPE_CHECKING:
    from recrawl.lab.formats.source_kinds import Kind
    from recrawl.lab.formats.version_rows import Taken
    from recrawl.repository.exchange import Selection
    from recrawl.repository.repository import Repository

EXAMPLE = "Example: recrawl import git site --base-url https://example.org --out site.parquet"
_WORDS: dict[str, Literal["git", "warc"]] = {"git": "git", "warc": "warc"}
_UPDATE_EVERY = 0.2


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
    wait: Wait = False,
    json: AsJson = False,
    **options: Unpack[ImportOptions],
) -> None:
    """Import URLs (a text file) or histories of pages (Parquet, WARC, a site's git repository).

    URLs become known pages, whatever their site; the next crawl downloads them. Histories are recorded as if the
    pages had been visited at those times; pages that were visited before are skipped. With --out, the history is
    written as a Parquet archive (url, time, html) for the lab, and no repository is needed.

    Of WARC, WACZ and ARC files, the answers that a crawl would keep are taken, with their headers: pages of all
    content types that the settings name, and 404 and 410. Digests are computed; those that the files state are
    compared, never believed. At the end a table says what became of the records of each type.

    In a git repository, every commit on the branch that changes an .html or .htm file adds a version of that page, at
    the time of the commit; index.html is the page of its folder. The words git and warc are optional.
    """
    from recrawl.lab.formats.version_rows import Window  # lazy: the help does without
    from recrawl.repository import exchange  # lazy: the help does without
    from recrawl.repository.exchange import Selection  # lazy: the help does without

    word = _WORDS.get(str(files[0])) if len(files) > 1 else None
    files = files[1:] if word else files
    kinds: dict[Path, Kind | None] = {file: word or exchange.kind_of(file) for file in files}
    if out is not None:
        times = (options.get("since"), options.get("until"))
        first, last = (None if text is None else int(moment(text, time.time())) for text in times)
        window = Window(first, last, options.get("limit"))
        selection = Selection(options.get("base_url"), options.get("branch"), options.get("root"), window)
        _to_archive(kinds, out, selection, json=json)
        return
    _to_repository(repository(ctx), kinds, {"kind": word, "wait": wait, **options}, json=json)


def _to_repository(repo: Repository, kinds: dict[Path, Kind | None], options: dict[str, Any], *, json: bool) -> None:
    from recrawl.repository import exchange  # lazy: the help does without

    lists = [file for file, kind in kinds.items() if kind is None]
    histories = [file for file, kind in kinds.items() if kind is not None]
    with repo, _conversion_line(quiet=json) as on_converted, _page_bar(quiet=json) as on_page:
        urls = exchange.lines_of(map(_read, lists))
        imported = repo.import_history(*histories, urls=urls, converting=on_converted, progress=on_page, **options)
    if json:
        as_json(imported.as_dict())
        return
    for line in imported.refused[:5]:
        note(f"not a valid URL: {line[:200]}")
    _print_remarks(imported.remarks or {})
    if imported.records is not None:
        _print_records(imported.records)
        _print_became(imported.became or {})
    refused = f"; refused {len(imported.refused):,}" if imported.refused else ""
    say(f"imported {imported.pages:,} new pages and {imported.versions:,} versions{refused}")


def _read(file: Path) -> str:
    return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig", errors="replace")


def _to_archive(kinds: dict[Path, Kind | None], out: Path, selection: Selection, *, json: bool) -> None:
    """`--out`: write an archive and print what is in it."""
    from recrawl.lab.formats.source_kinds import CARRIES  # lazy: the help does without
    from recrawl.repository import exchange  # lazy: the help does without

    selection.check({kind for kind in kinds.values() if kind})
    if out.suffix != ".parquet" or not out.parent.is_dir():
        raise UsageError(f"invalid --out {out}: use a name that ends in .parquet, in an existing folder")
    other = next((file for file, kind in kinds.items() if kind not in ("git", "warc")), None)
    if other is not None:
        raise UsageError(f"--out needs a git repository or WARC files; {other} is neither")
    if len(set(kinds.values())) > 1:
        raise UsageError("--out takes a git repository or WARC files, not both")
    kind = next(iter(kinds.values()))
    assert kind is not None
    begun = time.monotonic()
    with _conversion_line(quiet=json) as on_converted:
        taken = exchange.convert(kind, list(kinds), out, selection, on_converted)
    if json:
        as_json(_described(kind, out, taken, time.monotonic() - begun))
        return
    _print_remarks(taken.remarks)
    if taken.records:
        _print_records(taken.as_dict())
    versions, removals = count(taken.rows - taken.removals, "version"), count(taken.removals, "removal")
    size = out.stat().st_size / 1e6
    say(f"wrote {out}: {versions} and {removals} of {count(taken.pages, 'page')}, {size:,.1f} MB")
    say(f"from {stamp(taken.start)} to {stamp(taken.end)}; contains {', '.join(CARRIES[kind])}")


def _print_records(records: dict[str, Any]) -> None:
    """How many records of WARC files were taken or left out, by type."""
    rows: list[dict[str, Any]] = []
    for kind, counts in records.items():
        rows.append({"type": kind, "records": counts["read"], "taken": counts["taken"], "left": None, "why": ""})
        reasons = sorted(counts["left_out"].items(), key=lambda one: -one[1])
        rows += [{"type": kind, "left": number, "why": why} for why, number in reasons]
    table(rows, {"type": "type", "records": ">records", "taken": ">taken", "left": ">left out", "why": "because"})


def _print_became(counts: dict[str, int]) -> None:
    """What became of the records that were taken."""
    words = {
        "new": "new pages",
        "changed": "changes",
        "unchanged": "unchanged",
        "gone": "removals",
        "failed": "failures",
    }
    words["known"] = "of pages that were visited before"
    became = [f"{number:,} {words[what]}" for what, number in counts.items() if number]
    say(f"taken records: {', '.join(became) or 'none'}")


def _print_remarks(remarks: dict[str, int]) -> None:
    for what, number in remarks.items():
        note(f"{number:,} {what}")


def _described(kind: Kind, out: Path, taken: Taken, seconds: float) -> dict[str, Any]:
    from recrawl.lab.formats.source_kinds import CARRIES  # lazy: the help does without

    return {
        "archive": str(out),
        "kind": kind,
        "carries": list(CARRIES[kind]),
        "pages": taken.pages,
        "versions": taken.rows - taken.removals,
        "removals": taken.removals,
        "start": iso(taken.start),
        "end": iso(taken.end),
        "bytes": out.stat().st_size,
        "remarks": taken.remarks,
        **({"records": taken.as_dict()} if taken.records else {}),
        "seconds": round(seconds, 3),
    }


@contextmanager
def _conversion_line(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show the progress of a conversion; yields the function to report it to."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # lazy: the help does without

    from recrawl.cli.terminal.progress import progress  # lazy: the help does without

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress(*columns, quiet=quiet) as bars:
        task = bars.add_task("", total=None)
        last = 0.0

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _UPDATE_EVERY:
                last = now
                bars.update(task, description=f"{what}: {done:,}" + (f" of {total:,}" if total else ""))

        yield report


@contextmanager
def _page_bar(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show the imported pages; yields the function to report them to."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # lazy: the help does without

    from recrawl.cli.terminal.progress import progress  # lazy: the help does without

    with progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), quiet=quiet) as bars:
        task = bars.add_task("importing pages", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
