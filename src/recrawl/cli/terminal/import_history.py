"""Convert git repositories and WARC files into archives, for `recrawl import`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from recrawl.cli.terminal.output import as_json, count, note, say
from recrawl.cli.terminal.progress import progress
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats import git_history, warc_files
from recrawl.lab.formats.source_kinds import CARRIES, Kind, guess
from recrawl.lab.formats.version_rows import Progress as Report
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.times import iso, stamp

_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a git repository or of WARC files to import."""

    base_url: str | None = None
    branch: str | None = None
    root: str | None = None
    window: Window = field(default_factory=Window)

    def check(self, kinds: set[str]) -> None:
        """Refuse options that do not apply to these kinds of source."""
        if "git" not in kinds and (self.base_url, self.branch, self.root) != (None, None, None):
            raise UsageError("--base-url, --branch and --root need a git repository, but none is given")
        if not kinds & {"git", "warc"} and self.window != Window():
            raise UsageError("--since, --until and --limit need a git repository or WARC files, but none is given")
        if "git" in kinds and self.base_url is None:
            raise UsageError("a git repository needs the URL of its pages: --base-url https://example.org/")


def kind_of(file: Path) -> Kind | None:
    """The kind of a file to import; None is a URL list."""
    if str(file) == "-":
        return None
    if not (file.is_file() or file.is_dir()):
        raise UsageError(f"file {file} does not exist")
    kind = guess(file)
    if kind is None and file.is_dir():
        raise BadArchive(f"{file} is not a git repository and holds no .parquet or WARC file")
    if kind == "cdx":
        raise BadArchive(f"cannot import {file}: a CDX listing holds no pages; 'recrawl lab run' replays it directly")
    return kind


def convert(kind: Kind, sources: Sequence[Path], out: Path, selection: Selection, *, quiet: bool) -> Taken:
    """Write the history as an archive and show progress."""
    with _line(quiet) as report:
        if kind == "warc":
            return warc_files.convert(sources, out, window=selection.window, progress=report)
        if len(sources) > 1:
            raise UsageError("import one git repository at a time: each needs its own --base-url")
        return git_history.convert(
            sources[0],
            out,
            base_url=selection.base_url or "",
            branch=selection.branch or "",
            root=selection.root or "",
            window=selection.window,
            progress=report,
        )


def to_archive(kinds: dict[Path, Kind | None], out: Path, selection: Selection, *, json: bool) -> None:
    """`recrawl import … --out`: write an archive and print what is in it."""
    if out.suffix != ".parquet" or not out.parent.is_dir():
        raise UsageError(f"invalid --out {out}: use a name that ends in .parquet, in an existing folder")
    other = next((file for file, kind in kinds.items() if kind not in ("git", "warc")), None)
    if other is not None:
        raise UsageError(f"--out needs a git repository or WARC files; {other} is neither")
    found = set(kinds.values())
    if len(found) > 1:
        raise UsageError("--out takes a git repository or WARC files, not both")
    kind = next(iter(found))
    assert kind is not None
    begun = time.monotonic()
    taken = convert(kind, list(kinds), out, selection, quiet=json)
    if json:
        as_json(_as_json(kind, out, taken, time.monotonic() - begun))
        return
    print_remarks(taken)
    size = out.stat().st_size / 1e6
    versions = count(taken.rows - taken.removals, "version")
    removals = count(taken.removals, "removal")
    say(f"wrote {out}: {versions} and {removals} of {count(taken.pages, 'page')}, {size:,.1f} MB")
    say(f"from {stamp(taken.start)} to {stamp(taken.end)}; contains {', '.join(CARRIES[kind])}")


def print_remarks(taken: Taken) -> None:
    """Print what the conversion noticed to standard error."""
    for what, number in taken.remarks.items():
        note(f"{number:,} {what}")


def _as_json(kind: Kind, out: Path, taken: Taken, seconds: float) -> dict[str, Any]:
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
        "seconds": round(seconds, 3),
    }


@contextmanager
def _line(quiet: bool) -> Iterator[Report]:
    """Show progress; yields the function to report it to."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress(*columns, quiet=quiet) as bars:
        task = bars.add_task("", total=None)
        last = 0.0

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                bars.update(task, description=f"{what}: {done:,}" + (f" of {total:,}" if total else ""))

        yield report
