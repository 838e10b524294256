"""The facts of an archive's versions that replays need: digests, links, word counts.

Parsing a page takes almost a millisecond, and histories have millions of versions: so each file is parsed once, on all
cores, and its columns are cached under a digest of the file. Equal bodies of one page are parsed once.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from itertools import islice, repeat
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from turbohtml import Document, Element

from recrawl.child_processes import worker_pool
from recrawl.columns import Flags, Float32s, Int32s, Ints
from recrawl.compare import digest
from recrawl.compare.change_prior import change_prior
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.terms import BUCKETS, hashed, hashed_words, stacked
from recrawl.discover.links import LinkReader
from recrawl.discover.urls import key
from recrawl.durable_files import replacing
from recrawl.errors import BadArchive, Unreadable
from recrawl.extras import pa, pq, sparse
from recrawl.lab.formats.archive import COLUMNS, checked, files_of
from recrawl.words import words

# --------------------------------------------------------------------------------------------------------------------
# Columns computed from archive files: their cache, under a digest of the file, and the workers that compute them.


_NAMES = "names of columns"
_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, BadZipFile, zlib.error)
"""Errors of reading a damaged cache file."""


SMALL_READING = 2_000
"""Rows. Up to this, a worker process takes longer to start than the reading takes."""


def pool_of(workers: int | None, tasks: int, rows: int | None = None) -> AbstractContextManager[Executor]:
    """Return worker processes, by default one per core, for this many tasks; a thread where one worker is enough.

    `rows` is the number of rows that all tasks read, where it is known.
    """
    if workers is None and rows is not None and rows <= SMALL_READING:
        workers = 1
    needed = min(workers or os.cpu_count() or 1, tasks)
    return worker_pool(needed) if needed > 1 else ThreadPoolExecutor(1)


def file_name(file: Path, format_: str) -> str:
    """Return a cache name from a file's content and the format of the cached columns."""
    seal = hashlib.blake2b(format_.encode(), digest_size=16)
    with file.open("rb") as handle:
        while block := handle.read(1 << 22):
            seal.update(block)
    return seal.hexdigest()


def from_cache(name: Path | None) -> dict[str, NDArray[Any]] | None:
    """Return cached columns; None if there are none or they are damaged."""
    if name is None or not name.is_file():
        return None
    try:
        # Opened here: numpy would leave its own handle of a damaged file open.
        with name.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            columns = {key: kept[key] for key in kept.files}
            # Damage to the list of contents can hide columns without any error.
            return columns if columns.pop(_NAMES).tolist() == list(columns) else None
    except _DAMAGED:
        return None


def to_cache(name: Path | None, columns: dict[str, NDArray[Any]]) -> None:
    """Cache columns; the file appears only once it is complete."""
    if name is None:
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    with replacing(name, synced=False) as part, part.open("wb") as file:
        np.savez_compressed(file, **columns, **{_NAMES: np.array(list(columns))})  # type: ignore[arg-type]  # they are arrays, whatever their names


# --------------------------------------------------------------------------------------------------------------------


_PAGE_FACTS_CACHE_FORMAT = "facts 5"
"""Part of every name in the cache; change it when the facts change."""
_PAGE_FACTS_BATCH = 256


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """The facts of one file, as columns over its rows."""

    url: NDArray[Any]
    time: Ints
    raw: Ints
    """A digest of the bytes; 0 for a removal."""
    text: Ints
    """A digest of the text without markup (spec C1); 0 for a removal."""
    size: Ints
    words: Int32s
    images: Int32s
    shape: Ints
    """A digest of the page's outline; pages of one template mostly share it."""
    links: Int32s
    """Per row: the number of its list of links."""
    link_start: Ints
    """Start of each list in `link_key`, and the end of the last one."""
    link_key: Ints
    """Keys of URLs (`discover.urls.key`)."""
    word_start: Ints
    """Start of each row's words in `word`; only a page's first version in the file has any."""
    word: Int32s
    word_count: Int32s
    prior: Float32s
    """Per row: the change prior of the page; 0 but for the page's first version in the file."""

    def __len__(self) -> int:
        return len(self.time)


_Row = tuple[str, int, int, int, int, int, int, int, int, float]


@dataclass(frozen=True, slots=True)
class Read:
    """The facts of one version."""

    text: int
    words: int
    images: int
    shape: int
    links: tuple[int, ...]


def facts_of(
    paths: Iterable[Path],
    cache: Path | None,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    workers: int | None = None,
) -> list[Facts]:
    """Return the facts of every file; `progress` gets the rows done and the total."""
    files = [file for path in paths for file in files_of(path)]
    names = [cache / f"{file_name(file, _PAGE_FACTS_CACHE_FORMAT)}.npz" if cache else None for file in files]
    sizes = [_size(file) for file in files]
    total = sum(rows for rows, _ in sizes)
    done = 0
    found: list[Facts] = []
    with pool_of(workers, max((groups for _, groups in sizes), default=1), total) as pool:
        for file, name, (_, groups) in zip(files, names, sizes, strict=True):
            kept = from_cache(name)
            if kept is not None:
                facts = Facts(**kept)
            else:
                parts = []
                for part in pool.map(_read_group, repeat(file), range(groups)):
                    parts.append(part)
                    progress(done + sum(map(len, parts)), total)
                facts = _joined(parts)
                to_cache(name, {item.name: getattr(facts, item.name) for item in fields(Facts)})
            done += len(facts)
            progress(done, total)
            found.append(facts)
    return found


def _size(file: Path) -> tuple[int, int]:
    """Return the numbers of rows and row groups of a file; raise `BadArchive` if it is not an archive."""
    try:
        opened = pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise BadArchive(f"cannot read {file} as Parquet: {error}") from error
    checked(opened.schema_arrow.empty_table(), str(file))
    return int(opened.metadata.num_rows), int(opened.num_row_groups)


def _versions(file: Path, group: int) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield the rows of a row group: URL, time and body."""
    try:
        for batch in pq.ParquetFile(file).iter_batches(_PAGE_FACTS_BATCH, row_groups=[group], columns=list(COLUMNS)):
            for url, at, html in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True):
                if url is None or at is None:
                    raise BadArchive(f"{file} has rows without url or time")
                yield url, at, html.encode() if isinstance(html, str) else html
    except (pa.ArrowException, OSError) as error:
        raise BadArchive(f"{file} is damaged: {error}") from error


def _read_group(file: Path, group: int) -> Facts:
    """Read the facts of one row group."""
    reader = FactReader()
    columns: list[_Row] = []
    lists: dict[tuple[int, ...], int] = {}
    bags: list[tuple[Int32s, Int32s]] = []
    last_url = ""
    for url, at, body in _versions(file, group):
        raw, read = reader.read(url, body)
        new = url != last_url and body is not None
        bags.append(reader.bag() if new else _NO_WORDS)
        last_url = url if new else last_url
        place = lists.setdefault(read.links, len(lists))
        prior = reader.prior(at) if new else 0.0
        columns.append((url, at, raw, read.text, len(body or b""), read.words, read.images, read.shape, place, prior))
    return _columns(columns, lists, bags)


_NO_WORDS = (np.zeros(0, np.int32), np.zeros(0, np.int32))
_NOTHING = Read(0, 0, 0, 0, ())
_OUTLINE = 40
"""Elements in a page's outline."""
_OUTLINE_DEPTH = 3


class FactReader:
    """Reads the facts of versions; equal bodies of a page are parsed once."""

    def __init__(self) -> None:
        self._links = LinkReader()
        self._url = ""
        self._known: dict[int, Read] = {}
        self._text = ""

    def read(self, url: str, body: bytes | None) -> tuple[int, Read]:
        """Return a digest of the body, and its facts."""
        if url != self._url:
            self._url, self._known = url, {}
        if body is None:
            return 0, _NOTHING
        raw = _number(hashlib.blake2b(body, digest_size=8).digest())
        if raw not in self._known:
            self._known[raw] = self._parse(url, body, raw)
        return raw, self._known[raw]

    def bag(self) -> tuple[Int32s, Int32s]:
        """Return the hashed words of the version read last, and their counts."""
        return hashed_words(self._text)

    def prior(self, at: float) -> float:
        """Return the change prior of the version read last, downloaded at this time."""
        return change_prior(self._url, self._text, at)

    def _parse(self, url: str, body: bytes, raw: int) -> Read:
        try:
            tree = parse(decode(body).text)
        except Unreadable:
            self._text = ""
            return Read(raw, 0, 0, 0, ())
        links = tuple(sorted({key(link) for link in self._links.read(tree, url).urls}))
        images = len(tree.find_all("img"))
        shape = _number(hashlib.blake2b(outline(tree).encode("utf-8", "replace"), digest_size=8).digest())
        self._text = text.visible(tree)
        return Read(_number(digest.of_text(self._text)[:8]), len(words(self._text)), images, shape, links)


def outline(tree: Document) -> str:
    """Return the topmost elements of a page with their classes, which its template determines, not its content.

    >>> outline(parse("<body class=a><div class=b><p>x</div><p>y"))
    'body.a/0 div.b/1 p/2 p/1'
    """
    found: list[str] = []
    body = tree.find("body")
    waiting = [(body, 0)] if body is not None else []
    while waiting and len(found) < _OUTLINE:
        node, depth = waiting.pop()
        kind = node.attr("class") or ""
        found.append(f"{node.tag}{'.' if kind else ''}{kind}/{depth}")
        if depth < _OUTLINE_DEPTH:
            elements = (child for child in node.children if isinstance(child, Element))
            waiting.extend(reversed([(child, depth + 1) for child in islice(elements, _OUTLINE)]))
    return " ".join(found)


def _number(seal: bytes) -> int:
    """Return a positive number from a digest; 0 is reserved for removals."""
    return (int.from_bytes(seal[:8], "big") >> 1) or 1


def _columns(
    rows: list[_Row],
    lists: dict[tuple[int, ...], int],
    bags: list[tuple[Int32s, Int32s]],
) -> Facts:
    url, time, raw, text_, size, count, images, shape, place, prior = zip(*rows, strict=True) if rows else ((),) * 10
    lengths = np.array([len(links) for links in lists], np.int64)
    return Facts(
        url=np.array(url, np.str_),
        time=np.array(time, np.int64),
        raw=np.array(raw, np.int64),
        text=np.array(text_, np.int64),
        size=np.array(size, np.int64),
        words=np.array(count, np.int32),
        images=np.array(images, np.int32),
        shape=np.array(shape, np.int64),
        links=np.array(place, np.int32),
        link_start=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        link_key=np.array([target for links in lists for target in links], np.int64),
        word_start=np.concatenate(([0], np.cumsum([len(found) for found, _ in bags]))).astype(np.int64),
        word=np.concatenate([_NO_WORDS[0], *(found for found, _ in bags)]),
        word_count=np.concatenate([_NO_WORDS[1], *(counts for _, counts in bags)]),
        prior=np.array(prior, np.float32),
    )


def _joined(parts: list[Facts]) -> Facts:
    """Concatenate facts and renumber their lists; word bags and lists keep their order, so only the starts change."""
    if not parts:
        return _columns([], {}, [])

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    def starts(name: str) -> Ints:
        lengths = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)

    before = np.cumsum([0, *(len(part.link_start) - 1 for part in parts[:-1])])
    moved = [part.links + np.int32(shift) for part, shift in zip(parts, before, strict=True)]
    plain = {item.name: joined(item.name) for item in fields(Facts) if not item.name.endswith("_start")}
    return Facts(
        **plain
        | {"links": np.concatenate(moved), "link_start": starts("link_start"), "word_start": starts("word_start")}
    )


# --------------------------------------------------------------------------------------------------------------------
# Hashed word counts of every version in an archive, extracted once and cached.
#
# The facts of an archive hold the words of each page's first version only; prediction from content (spec L2) needs
# those of all versions. Consecutive versions with the same text share one row.


_CACHE_FORMAT = "bags 1"
_BATCH = 2_000


def word_counts_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    cache: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    workers: int | None = None,
) -> tuple[sparse.csr_array, Ints]:
    """Text by word: counts; and the text number of every row of the concatenated files."""
    parts: list[sparse.csr_array] = []
    of_row: list[Ints] = []
    texts = done = 0
    total = sum(map(len, facts))
    for file, part in zip(files, facts, strict=True):
        first = np.append(True, (part.url[1:] != part.url[:-1]) | (part.text[1:] != part.text[:-1]))[: len(part)]
        name = cache / f"{file_name(file, _CACHE_FORMAT)}.npz" if cache else None
        cached = from_cache(name)
        if cached is None:
            bags = stacked(_count_file(file, first, workers))
            cached = {"data": bags.data, "indices": bags.indices, "indptr": bags.indptr}
            to_cache(name, cached)
        columns = (cached["data"], cached["indices"], cached["indptr"])
        parts.append(sparse.csr_array(columns, shape=(len(cached["indptr"]) - 1, BUCKETS)))
        of_row.append(texts + np.cumsum(first) - 1)
        texts += parts[-1].shape[0]
        done += len(part)
        progress(done, total)
    whole = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
    return whole, np.concatenate(of_row)


def texts_of(file: Path, selected: Flags, groups: list[int] | None = None) -> Iterator[str]:
    """The visible texts of the selected rows of a file or of its row groups, in order; empty for a removal."""
    offset = 0
    for batch in pq.ParquetFile(file).iter_batches(_BATCH, row_groups=groups, columns=["html"]):
        rows = np.flatnonzero(selected[offset : offset + len(batch)])
        offset += len(batch)
        for html in batch.column("html").take(rows).to_pylist():
            yield visible_text(html)


def visible_text(html: bytes | str | None) -> str:
    """The visible text of a page; empty if it cannot be parsed."""
    if html is None:
        return ""
    try:
        return text.visible(parse(html if isinstance(html, str) else decode(html).text))
    except Unreadable:
        return ""


def _count_file(file: Path, selected: Flags, workers: int | None) -> Iterator[sparse.csr_array]:
    """The counts of a file, batch by batch."""
    parquet = pq.ParquetFile(file)
    ends = np.cumsum([0, *(parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups))])
    groups = [selected[ends[n] : ends[n + 1]] for n in range(parquet.num_row_groups)]
    with pool_of(workers, len(groups), int(selected.sum())) as pool:
        yield from pool.map(_count_row_group, [file] * len(groups), range(len(groups)), groups)


def _count_row_group(file: Path, group: int, selected: Flags) -> sparse.csr_array:
    """The counts of one row group."""
    return hashed(texts_of(file, selected, [group]))
