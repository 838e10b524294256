"""Import: URL lists, Parquet archives, WARC files and git histories."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, takewhile
from pathlib import Path

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.tally import RunCounts
from recrawl.errors import BadArchive, UsageError
from recrawl.extras import require_lab
from recrawl.lab.formats import git_history, warc_files
from recrawl.lab.formats.archive import Archive
from recrawl.lab.formats.source_kinds import Kind, guess
from recrawl.lab.formats.version_rows import Progress as ConversionProgress
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from recrawl.repository.results.runs import Import

_YEAR_1, _YEAR_9999 = -62135596800, 253402300799

History = tuple[str, list[tuple[float, bytes | None]]]
"""A URL and the states of its page by time; None for a removal."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a git repository or of WARC files is imported."""

    base_url: str | None = None
    """git: the URL at which the pages are published."""
    branch: str | None = None
    """git: the current branch by default."""
    root: str | None = None
    """git: the folder that holds the site."""
    window: Window = field(default_factory=Window)

    def check(self, kinds: set[str]) -> None:
        """Raise `UsageError` for options that do not apply to these kinds of files."""
        if "git" not in kinds and (self.base_url, self.branch, self.root) != (None, None, None):
            raise UsageError("--base-url, --branch and --root apply to git repositories only, and none was named")
        if not kinds & {"git", "warc"} and self.window != Window():
            raise UsageError("--since, --until and --limit apply to git and WARC histories only, and none was named")
        if "git" in kinds and self.base_url is None:
            raise UsageError("a git repository needs the URL of its pages: --base-url https://example.org/")


def kind_of(file: Path) -> Kind | None:
    """The kind of a file for import; None is a URL list."""
    if str(file) == "-":
        return None
    if not (file.is_file() or file.is_dir()):
        raise UsageError(f"there is no file {file}")
    kind = guess(file)
    if kind is None and file.is_dir():
        raise BadArchive(f"{file} is not a git repository and holds no .parquet or WARC file")
    if kind == "cdx":
        raise BadArchive(f"{file} is a CDX listing without page bodies; the lab replays it, but it cannot be imported")
    return kind


def convert(
    kind: Kind,
    sources: Sequence[Path],
    out: Path,
    selection: Selection,
    progress: ConversionProgress = lambda *_: None,
) -> Taken:
    """Write a git or WARC history as a Parquet archive."""
    require_lab()
    if kind == "warc":
        return warc_files.convert(sources, out, window=selection.window, progress=progress)
    if len(sources) > 1:
        raise UsageError("import one git repository at a time: each has its own --base-url")
    return git_history.convert(
        sources[0],
        out,
        base_url=selection.base_url or "",
        branch=selection.branch or "",
        root=selection.root or "",
        window=selection.window,
        progress=progress,
    )


@contextmanager
def opened_history(
    kinds: Mapping[Path, Kind | None], selection: Selection, progress: ConversionProgress = lambda *_: None
) -> Iterator[tuple[Archive | None, Taken | None]]:
    """All histories among these files as one archive, and a summary of those that had to be converted (git, WARC)."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        archives = [file for file, kind in kinds.items() if kind == "parquet"]
        converted: Taken | None = None
        formats: tuple[Kind, ...] = ("git", "warc")
        for kind in formats:
            sources = [file for file, found in kinds.items() if found == kind]
            if sources:
                archives.append(Path(scratch) / f"{kind}.parquet")
                taken = convert(kind, sources, archives[-1], selection, progress)
                converted = converted or taken
                for what, number in taken.remarks.items() if taken is not converted else ():
                    converted.remark(what, number)
        archive = Archive.open(archives) if archives else None
        if archive is not None and not (archive.start >= _YEAR_1 and archive.end <= _YEAR_9999):
            raise UsageError("the times of this archive are not seconds since 1970; they may be milliseconds")
        yield archive, converted


def histories(archive: Archive, progress: Callable[[int, int], None] = lambda *_: None) -> Iterator[History]:
    """The pages of an archive with their states; `progress` gets pages done and pages in all."""
    for page in range(len(archive)):
        rows = range(int(archive.first[page]), int(archive.first[page + 1]))
        states = [(float(archive.times[row]), None if archive.removed[row] else archive.html(row)) for row in rows]
        yield archive.urls[page], states
        progress(page + 1, len(archive))


def take_in(
    storage: Storage,
    options: CrawlOptions,
    urls: Iterable[str],
    archive: Archive | None,
    *,
    progress: Callable[[int, int], None] = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[RunCounts, list[str], bool]:
    """Record URLs and histories: counts, invalid URLs, and whether it is finished.

    `stop` is asked before each page. What is left then is recorded by the next import of the same.
    """
    from recrawl.crawl.importer import Importer  # lazy: loads the parser

    first = next(waiting := iter(urls), None)
    if first is None and archive is None:
        return RunCounts(), [], True
    importer = Importer(storage, options)
    refused = [] if first is None else importer.urls(chain([first], waiting))
    if archive is not None:
        importer.histories(takewhile(lambda _: not stop(), histories(archive, progress)))
    finished = not stop()
    importer.close(finished=finished)
    return importer.tally, refused, finished


def imported(found: int, outcomes: Mapping[Outcome, int], refused: Iterable[str]) -> Import:
    """What an import has recorded, by its counts: a visit has a version unless the page was removed or is not safe."""
    versions = sum(number for what, number in outcomes.items() if what not in (Outcome.GONE, Outcome.FAILED))
    return Import(found, versions, tuple(refused))


def lines_of(texts: Iterable[str]) -> Iterator[str]:
    """The URLs in lists, one on a line; empty lines and comments (#) are left out."""
    for text in texts:
        yield from (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
