"""Import into a cluster: the command divides URLs and histories by shard, the workers record them.

They are handed over by the object store, under the prefix of each shard: imports/NAME.txt has URLs, one on a line, and
imports/NAME.parquet an archive of histories. Whoever takes over a shard in the middle gets them again. The worker
removes them after its part is done, the command those of shards that have failed.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recrawl.cluster.layout import Layout
from recrawl.discover.urls import UrlRules, canonical
from recrawl.errors import RepositoryError
from recrawl.lab.formats.archive import Archive, write_pages
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.remote import open_blobs
from recrawl.record.blobs.target import parse

_URLS, _HISTORIES = "txt", "parquet"


@dataclass(frozen=True, slots=True)
class DividedImport:
    """What is to be imported, by shard."""

    urls: dict[int, list[str]]
    histories: dict[int, list[int]]
    """Pages of the archive."""
    refused: list[str]
    """Lines that are not URLs."""
    name: str = field(default_factory=lambda: secrets.token_hex(8))

    def __bool__(self) -> bool:
        return bool(self.urls or self.histories)

    def as_options(self) -> dict[str, Any]:
        """The options of the run: which shards have which files."""
        return {"name": self.name, _URLS: sorted(self.urls), _HISTORIES: sorted(self.histories)}


def divide(layout: Layout, rules: UrlRules, urls: Iterable[str], archive: Archive | None) -> DividedImport:
    """Find the shard of each URL and of each page of an archive."""
    found = DividedImport({}, {}, [])
    for line in urls:
        url = canonical(line.strip(), rules=rules)
        if url is None:
            found.refused.append(line.strip())
        else:
            found.urls.setdefault(layout.shard_of_url(url), []).append(url)
    for page, name in enumerate([] if archive is None else archive.urls):
        url = canonical(name, rules=rules)
        if url is not None:
            found.histories.setdefault(layout.shard_of_url(url), []).append(page)
    return found


def hand_over(layout: Layout, divided: DividedImport, archive: Archive | None) -> None:
    """Put the files of all shards."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        for shard, urls in divided.urls.items():
            path = Path(scratch) / _URLS
            path.write_text("\n".join(urls), encoding="utf-8")
            _blobs(layout, shard).put(_object(divided.name, _URLS), path)
        for shard, pages in divided.histories.items():
            path = Path(scratch) / _HISTORIES
            assert archive is not None
            write_pages(path, archive, pages)
            _blobs(layout, shard).put(_object(divided.name, _HISTORIES), path)


@contextmanager
def handed_over(blobs: Blobs, shard: int, given: dict[str, Any]) -> Iterator[tuple[list[str], Archive | None]]:
    """The URLs and the archive of a shard."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        files = {kind: Path(scratch) / kind for kind in (_URLS, _HISTORIES) if shard in given[kind]}
        try:
            for kind, path in files.items():
                blobs.fetch(_object(given["name"], kind), path)
        except FileNotFoundError as error:
            raise RepositoryError(f"what is to be imported is no longer in {blobs.name}: import it again") from error
        urls = files[_URLS].read_text(encoding="utf-8").splitlines() if _URLS in files else []
        yield urls, Archive.open([files[_HISTORIES]]) if _HISTORIES in files else None


def forget(blobs: Blobs, shard: int, given: dict[str, Any]) -> None:
    """Remove the files of a shard, if they are there."""
    for kind in (_URLS, _HISTORIES):
        if shard in given[kind]:
            blobs.remove(_object(given["name"], kind))


def forget_all(layout: Layout, divided: DividedImport) -> None:
    """Remove the files of all shards, if they are there."""
    for shard in sorted({*divided.urls, *divided.histories}):
        forget(_blobs(layout, shard), shard, divided.as_options())


def _blobs(layout: Layout, shard: int) -> Blobs:
    return open_blobs(parse(layout.archive_of(shard)))


def _object(name: str, kind: str) -> str:
    return f"imports/{name}.{kind}"
