"""Import into a cluster: the command divides URLs and histories by shard, the workers record them.

They are handed over by the object store, under the prefix of each shard: imports/NAME.txt has URLs, one on a line, and
imports/NAME.parquet the answers in histories (url, at, body, head). Whoever takes over a shard in the middle gets them
again. The worker removes them after its part is done, the command those of shards that have failed.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from recrawl.cluster.layout import Layout
from recrawl.discover.urls import UrlRules, canonical
from recrawl.errors import RepositoryError
from recrawl.extras import pa, pq
from recrawl.model import PastAnswer
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.remote import open_blobs
from recrawl.record.blobs.target import parse
from recrawl.repository.exchange import History

_URLS, _HISTORIES = "txt", "parquet"
_ROW_GROUP = 16 << 20
"""Bytes of bodies that are written at once."""
_ROWS = 256
"""Rows that are read at once."""


@cache
def _schema() -> pa.Schema:
    columns = {"url": pa.string(), "at": pa.float64(), "body": pa.large_binary(), "head": pa.large_binary()}
    return pa.schema(columns.items())


@dataclass(slots=True)
class DividedImport:
    """What is to be imported, by shard."""

    urls: set[int] = field(default_factory=set)
    """Shards that get URLs."""
    histories: set[int] = field(default_factory=set)
    """Shards that get histories."""
    pages: int = 0
    """Pages with a history."""
    refused: list[str] = field(default_factory=list)
    """Lines that are not URLs."""
    name: str = field(default_factory=lambda: secrets.token_hex(8))

    def __bool__(self) -> bool:
        return bool(self.urls or self.histories)

    def as_options(self) -> dict[str, Any]:
        """The options of the run: which shards have which files."""
        return {"name": self.name, _URLS: sorted(self.urls), _HISTORIES: sorted(self.histories)}


def divided_import(layout: Layout, rules: UrlRules, urls: Iterable[str], histories: Iterable[History]) -> DividedImport:
    """Put each URL and each history where the worker of its shard finds it."""
    divided = DividedImport()
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        with ExitStack() as stack:
            lists = _PerShard(
                lambda shard: stack.enter_context((Path(scratch) / f"{shard}.{_URLS}").open("w", encoding="utf-8"))
            )
            files = _PerShard(
                lambda shard: stack.enter_context(_HistoryWriter(Path(scratch) / f"{shard}.{_HISTORIES}"))
            )
            for line in urls:
                url = canonical(line.strip(), rules=rules)
                if url is None:
                    divided.refused.append(line.strip())
                else:
                    lists[layout.shard_of_url(url)].write(f"{url}\n")
            for name, answers in histories:
                url = canonical(name, rules=rules)
                if url is not None:
                    files[layout.shard_of_url(url)].add(url, answers)
                    divided.pages += 1
        divided.urls, divided.histories = set(lists), set(files)
        for kind, shards in ((_URLS, divided.urls), (_HISTORIES, divided.histories)):
            for shard in sorted(shards):
                _blobs(layout, shard).put(_object(divided.name, kind), Path(scratch) / f"{shard}.{kind}")
    return divided


class _PerShard(dict[int, Any]):
    """Files by shard, opened when they are first used."""

    def __init__(self, opening: Callable[[int], Any]) -> None:
        super().__init__()
        self._opening = opening

    def __missing__(self, shard: int) -> Any:
        self[shard] = self._opening(shard)
        return self[shard]


class _HistoryWriter:
    """A Parquet file of histories: a row for each answer of a page, page by page."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetWriter(path, _schema(), compression="zstd", use_dictionary=["url"])
        self._rows: list[tuple[str, float, bytes | None, bytes | None]] = []
        self._bytes = 0

    def __enter__(self) -> _HistoryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        self._file.close()

    def add(self, url: str, answers: Iterable[PastAnswer]) -> None:
        """Add the answers of a page."""
        for it in answers:
            body = None if it.body is None else it.body()
            self._rows.append((url, it.at, body, it.head))
            self._bytes += len(body or b"")
            if self._bytes > _ROW_GROUP:
                self._write()

    def _write(self) -> None:
        rows = [dict(zip(_schema().names, row, strict=True)) for row in self._rows]
        self._file.write_table(pa.Table.from_pylist(rows, _schema()))
        self._rows, self._bytes = [], 0


def _histories_in(path: Path) -> Iterator[History]:
    """The histories in a file that `_HistoryWriter` has written."""
    batches = pq.ParquetFile(path).iter_batches(batch_size=_ROWS)
    rows = (row for batch in batches for row in zip(*(batch.column(at).to_pylist() for at in range(4)), strict=True))
    for url, some in groupby(rows, key=itemgetter(0)):
        yield url, [PastAnswer(at, None if body is None else partial(bytes, body), head) for _, at, body, head in some]


@contextmanager
def handed_over(blobs: Blobs, shard: int, given: dict[str, Any]) -> Iterator[tuple[list[str], Iterable[History]]]:
    """The URLs and the histories of a shard."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        files = {kind: Path(scratch) / kind for kind in (_URLS, _HISTORIES) if shard in given[kind]}
        try:
            for kind, path in files.items():
                blobs.fetch(_object(given["name"], kind), path)
        except FileNotFoundError as error:
            raise RepositoryError(f"what is to be imported is no longer in {blobs.name}: import it again") from error
        urls = files[_URLS].read_text(encoding="utf-8").splitlines() if _URLS in files else []
        yield urls, _histories_in(files[_HISTORIES]) if _HISTORIES in files else ()


def forget(blobs: Blobs, shard: int, given: dict[str, Any]) -> None:
    """Remove the files of a shard, if they are there."""
    for kind in (_URLS, _HISTORIES):
        if shard in given[kind]:
            blobs.remove(_object(given["name"], kind))


def forget_all(layout: Layout, divided: DividedImport) -> None:
    """Remove the files of all shards, if they are there."""
    for shard in sorted(divided.urls | divided.histories):
        forget(_blobs(layout, shard), shard, divided.as_options())


def _blobs(layout: Layout, shard: int) -> Blobs:
    return open_blobs(parse(layout.archive_of(shard)))


def _object(name: str, kind: str) -> str:
    return f"imports/{name}.{kind}"
