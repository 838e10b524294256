"""Import: URL lists, Parquet archives, WARC files and git histories."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby, islice, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.tally import RunCounts
from recrawl.discover.links import SKIP_SUFFIXES
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats import git_history, warc_files
from recrawl.lab.formats.archive import Archive
from recrawl.lab.formats.source_kinds import Kind, guess
from recrawl.lab.formats.url_lists import no_url_list
from recrawl.lab.formats.version_rows import Progress as ConversionProgress
from recrawl.lab.formats.version_rows import Taken, Window
from recrawl.model import Outcome, PastAnswer
from recrawl.record.storage import Storage
from recrawl.repository.results.runs import Import

_YEAR_1, _YEAR_9999 = -62135596800, 253402300799

_PARTS = ("text/css", "text/javascript")
"""Types of files that pages need; crawls do not follow links to them."""
Item = TypeVar("Item")
History = tuple[str, list[PastAnswer]]
"""A URL and the answers for its page by time."""


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
    if kind is None:
        problem = no_url_list(file)
        if problem:
            raise BadArchive(f"{file} is no list of URLs: {problem}")
    return kind


def convert(
    kind: Kind,
    sources: Sequence[Path],
    out: Path,
    selection: Selection,
    progress: ConversionProgress = lambda *_: None,
) -> Taken:
    """Write a git or WARC history as a Parquet archive."""
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


class ToImport:
    """The histories of pages in some files, to be gone through once."""

    def __init__(self, sources: Sequence[Iterable[History]], pages: int, taken: Taken | None) -> None:
        self._sources = sources
        self.pages = pages
        """About how many there are; a page that several kinds of files have is counted for each."""
        self.taken = taken
        """What was converted, and what was left out; None if there were neither git nor WARC histories."""
        self.answers = 0
        """Answers of the pages that were passed on."""

    def __iter__(self) -> Iterator[History]:
        """The pages by URL, each with its answers by time."""
        merged = heapq.merge(*self._sources, key=itemgetter(0))
        for url, parts in groupby(merged, key=itemgetter(0)):
            answers = sorted(chain.from_iterable(some for _, some in parts), key=lambda it: it.at)
            self.answers += len(answers)
            yield url, answers

    def __bool__(self) -> bool:
        return self.pages > 0


@contextmanager
def opened_history(
    kinds: Mapping[Path, Kind | None],
    selection: Selection,
    progress: ConversionProgress = lambda *_: None,
    refuses: warc_files.Refuses = warc_files.html_only,
) -> Iterator[ToImport]:
    """All histories among these files; `refuses` says why a page of a WARC file is left out."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch, ExitStack() as stack:
        archives = [file for file, kind in kinds.items() if kind == "parquet"]
        repositories = [file for file, kind in kinds.items() if kind == "git"]
        files = [file for file, kind in kinds.items() if kind == "warc"]
        taken = Taken() if files else None
        sources: list[Iterable[History]] = []
        pages = 0
        if repositories:
            archives.append(Path(scratch) / "git.parquet")
            converted = convert("git", repositories, archives[-1], selection, progress)
            for what, number in converted.remarks.items():
                (taken or converted).remark(what, 0 if taken is None else number)
            taken = taken or converted
        if archives:
            archive = Archive.open(archives)
            if not (archive.start >= _YEAR_1 and archive.end <= _YEAR_9999):
                raise UsageError("the times of this archive are not seconds since 1970; they may be milliseconds")
            sources.append(_of_archive(archive))
            pages += len(archive)
        if files:
            assert taken is not None
            captures = stack.enter_context(warc_files.opened(files, refuses=refuses, taken=taken, progress=progress))
            sources.append(captures.histories(selection.window))
            pages += captures.pages
            if not captures.pages and not archives:
                raise BadArchive(f"{files[0]} contains no page that a crawl would keep: {_left_out(taken)}")
        yield ToImport(sources, pages, taken)


def _left_out(taken: Taken) -> str:
    """What the records were, in words."""
    found = [
        f"{number:,} {kind} ({why})"
        for kind, counts in taken.records.items()
        for why, number in counts.left_out.items()
    ]
    return ", ".join(found[:8]) or "it has no records"


def _of_archive(archive: Archive) -> Iterator[History]:
    """The pages of an archive with their states."""
    for page in range(len(archive)):
        rows = range(int(archive.first[page]), int(archive.first[page + 1]))
        yield (
            archive.urls[page],
            [
                PastAnswer(float(archive.times[row]), None if archive.removed[row] else partial(archive.html, row))
                for row in rows
            ],
        )


def refused_by(options: CrawlOptions) -> warc_files.Refuses:
    """Why a crawl with these options would keep no page of a URL and a content type; empty if it would."""

    def why(url: str, kind: str) -> str:
        path = urlsplit(url).path.lower()
        if path == "/robots.txt":
            return "robots.txt"
        if not options.accepts(kind):
            return f"not in content_types ({warc_files.named(kind)})"
        if path.rpartition(".")[2] in SKIP_SUFFIXES - {"pdf"} or kind.startswith(_PARTS):
            return "files that pages need"
        return ""

    return why


def take_in(
    storage: Storage,
    options: CrawlOptions,
    urls: Iterable[str],
    histories: Iterable[History],
    *,
    progress: Callable[[int], None] = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[RunCounts, list[str], bool]:
    """Record URLs and histories: counts, invalid URLs, and whether it is finished. `progress` gets pages done.

    `stop` is asked before each page. What is left then is recorded by the next import of the same.
    """
    from recrawl.crawl.importer import Importer  # lazy: loads the parser

    waiting, pages = _unless_empty(urls), _unless_empty(histories)
    if waiting is None and pages is None:
        return RunCounts(), [], True
    importer = Importer(storage, options)
    refused = [] if waiting is None else importer.urls(waiting)
    if pages is not None:
        importer.histories(_counted(takewhile(lambda _: not stop(), pages), progress))
    finished = not stop()
    importer.close(finished=finished)
    return importer.tally, refused, finished


def _unless_empty(items: Iterable[Item]) -> Iterator[Item] | None:
    first = list(islice(rest := iter(items), 1))
    return chain(first, rest) if first else None


def _counted(pages: Iterable[History], progress: Callable[[int], None]) -> Iterator[History]:
    for number, page in enumerate(pages, 1):
        yield page
        progress(number)


def imported(counts: RunCounts, refused: Iterable[str], histories: ToImport) -> Import:
    """What an import has recorded, with what became of git and WARC histories."""
    done = Import(counts.found, counts.versions, tuple(refused))
    if histories.taken is None:
        return done
    done = replace(done, remarks=histories.taken.remarks)
    if not histories.taken.records:
        return done
    became = {what.name.lower(): counts.outcomes.get(what, 0) for what in Outcome}
    became["known"] = max(0, histories.answers - sum(became.values()))
    return replace(done, records=histories.taken.as_dict(), became=became)


def lines_of(texts: Iterable[str]) -> Iterator[str]:
    """The URLs in lists, one on a line; empty lines and comments (#) are left out."""
    for text in texts:
        yield from (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
