"""Histories that lie elsewhere, in git or in WARC files, on their way into an archive."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from recrawl.cli.output import as_json, count, note, say
from recrawl.cli.progress import progress
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats import git_history, warc_files
from recrawl.lab.formats.source_kinds import CARRIES, Kind, guess
from recrawl.lab.formats.version_rows import Progress as Report
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.repository.times import iso, stamp

_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be taken from a git repository or from WARC files."""

    base_url: str | None = None
    branch: str | None = None
    root: str | None = None
    window: Window = field(default_factory=Window)

    def check(self, kinds: set[str]) -> None:
        """Refuse options that have nothing to do with what was named."""
        if "git" not in kinds and (self.base_url, self.branch, self.root) != (None, None, None):
            raise UsageError("--base-url, --branch and --root are for a git repository, and none is named")
        if not kinds & {"git", "warc"} and self.window != Window():
            raise UsageError("--since, --until and --limit are for git and WARC histories, and none is named")
        if "git" in kinds and self.base_url is None:
            raise UsageError("say where the repository's pages are published: --base-url https://example.org/")


def kind_of(file: Path) -> Kind | None:
    """What a file that is named for import holds; None is a list of addresses."""
    if str(file) == "-":
        return None
    if not (file.is_file() or file.is_dir()):
        raise UsageError(f"there is no file {file}")
    kind = guess(file)
    if kind is None and file.is_dir():
        raise BadArchive(f"{file} is no git repository, and holds no .parquet or WARC file")
    if kind == "cdx":
        raise BadArchive(f"{file} is a listing of captures: it holds no pages to take in; the lab replays it as it is")
    return kind


def convert(kind: Kind, sources: Sequence[Path], out: Path, wanted: Wanted, *, quiet: bool) -> Taken:
    """Write the history as an archive, and show how far it is."""
    with _line(quiet) as report:
        if kind == "warc":
            return warc_files.convert(sources, out, window=wanted.window, progress=report)
        if len(sources) > 1:
            raise UsageError("one git repository at a time: each has its own --base-url")
        return git_history.convert(
            sources[0],
            out,
            base_url=wanted.base_url or "",
            branch=wanted.branch or "",
            root=wanted.root or "",
            window=wanted.window,
            progress=report,
        )


def to_archive(kinds: dict[Path, Kind | None], out: Path, wanted: Wanted, *, json: bool) -> None:
    """`recrawl import … --out`: write an archive, and tell what is in it."""
    if out.suffix != ".parquet" or not out.parent.is_dir():
        raise UsageError(f"--out is a Parquet file in a folder that exists, as in site.parquet, not {out}")
    other = next((file for file, kind in kinds.items() if kind not in ("git", "warc")), None)
    if other is not None:
        raise UsageError(f"--out is for git repositories and WARC files; {other} is neither")
    found = set(kinds.values())
    if len(found) > 1:
        raise UsageError("--out takes a git repository or WARC files, not both at once")
    kind = next(iter(found))
    assert kind is not None
    begun = time.monotonic()
    taken = convert(kind, list(kinds), out, wanted, quiet=json)
    if json:
        as_json(_told(kind, out, taken, time.monotonic() - begun))
        return
    remarks(taken)
    size = out.stat().st_size / 1e6
    versions = count(taken.rows - taken.removals, "version")
    removals = count(taken.removals, "removal")
    say(f"wrote {out}: {versions} and {removals} of {count(taken.pages, 'page')}, {size:,.1f} MB")
    say(f"from {stamp(taken.start)} to {stamp(taken.end)}; carries {', '.join(CARRIES[kind])}")


def remarks(taken: Taken) -> None:
    """What people should hear of."""
    for what, number in taken.remarks.items():
        note(f"{number:,} {what}")


def _told(kind: Kind, out: Path, taken: Taken, seconds: float) -> dict[str, Any]:
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
    """A line on the terminal that says how far it is."""
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
