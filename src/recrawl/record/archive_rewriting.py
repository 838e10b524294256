"""Archive files without the records that are to go: all other records stay byte for byte, in a file of another name.

What goes is decided record by record (`ArchiveCut`):

- the records of versions, screenshots and requisites that are erased, wherever their URL points;
- of erased addresses every other record too: revisits, redirects, failures, requests;
- answers that no page has as its version (redirects, robots.txt, sitemaps, missing pages), if an erased address stands
  in them;
- revisits of bytes that are gone.

Bytes that several requisites or screenshots share stay if one of them does: their record gets the address of the first
that stays (the *heir*), and so does every revisit that pointed to them. Nothing is replaced here: the new files are
beside the old ones until a transaction of the store names them.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from recrawl.durable_files import sync_folder
from recrawl.errors import RepositoryError
from recrawl.record import warc
from recrawl.record.archive_check import raw_records
from recrawl.record.packing import SUFFIX, as_frame
from recrawl.record.traces import urls_in
from recrawl.times import moment

Extent = tuple[int, int]
"""Start and end of records in a file."""
_ROBOTS = "/robots.txt"
_PICTURE = "urn:fullPage:"
_EVER = float("inf")


class Heir(NamedTuple):
    """The row that takes over bytes which an erased one had recorded."""

    url: str
    at: float
    picture: bool
    """Whether it is a screenshot; else a requisite."""


class FilePlaces(NamedTuple):
    """A rewritten file: its name, its length, and where its records are now."""

    name: str
    length: int
    starts: dict[int, tuple[int, int]]
    """New start and length of each record, by its old start."""
    dropped: int
    dropped_bytes: int


@dataclass(slots=True)
class ArchiveCut:
    """What is taken out of the archive."""

    horizons: dict[str, float] = field(default_factory=dict)
    """By address: its records before this time go; infinite for one that is erased altogether."""
    sites: frozenset[str] = frozenset()
    """Origins that are erased altogether."""
    gone: dict[int, list[Extent]] = field(default_factory=dict)
    """By file: records of rows that are erased."""
    kept: dict[int, list[Extent]] = field(default_factory=dict)
    """By file: records of rows that stay."""
    heirs: dict[tuple[int, int], Heir] = field(default_factory=dict)
    """By file and start: who takes over the bytes."""
    originals: dict[str, warc.Original] = field(default_factory=dict)
    """By digest as records name it: what revisits of bytes that were taken over point to."""

    def erased(self, url: str) -> bool:
        """Whether an address is erased altogether."""
        return self.horizons.get(url) == _EVER or (bool(self.sites) and _origin(url) in self.sites)

    def paths(self) -> dict[str, list[bytes]]:
        """The paths of erased addresses, by origin."""
        found: dict[str, list[bytes]] = {}
        for url, horizon in self.horizons.items():
            path = url[len(_origin(url)) :]
            if horizon == _EVER and len(path) > 1:
                found.setdefault(_origin(url), []).append(path.encode())
        return found


class ArchiveCutter:
    """Applies a cut to one file after the other."""

    def __init__(self, folder: Path, cut: ArchiveCut, gone: Iterable[str] = ()) -> None:
        """`gone` are ids of records that went before."""
        self._folder = folder
        self._cut = cut
        self._paths = cut.paths()
        self._gone = {f"<urn:uuid:{identity}>" for identity in gone}
        """Ids of the records that went; those of revisits come after them."""

    def rewrite(self, file: int, name: str, length: int, mark: str) -> FilePlaces | None:
        """Write a file without what goes from it; None if nothing does. `mark` makes its name another one."""
        path, fresh = self._folder / name, new_name(name, mark)
        changes, dropped_bytes, info = self._changes(file, path, length)
        if not changes:
            return None
        dropped = sum(not blob for blob in changes.values())
        changes |= {start: warc.with_fields(record, _renamed(record, fresh)) for start, record in info.items()}
        packed = name.endswith(SUFFIX)
        starts: dict[int, tuple[int, int]] = {}
        place = 0
        with path.open("rb") as source, (self._folder / fresh).open("wb") as target:
            for start, end, record in raw_records(path, length):
                blob = changes.get(start)
                if blob is None and not packed:
                    source.seek(start)
                    blob = source.read(end - start)
                elif packed and blob != b"":  # the dictionary was made from records, among them those that go
                    blob = as_frame(blob or warc.gzip_member(record or b""))
                if blob:
                    starts[start] = place, len(blob)
                    target.write(blob)
                    place += len(blob)
            target.flush()
            os.fsync(target.fileno())
        sync_folder(self._folder)
        return FilePlaces(fresh, place, starts, dropped, dropped_bytes)

    def _changes(self, file: int, path: Path, length: int) -> tuple[dict[int, bytes], int, dict[int, bytes]]:
        """By start: records that change, empty if they go; the bytes that go; the first records of the file."""
        cut, changes, dropped_bytes = self._cut, dict[int, bytes](), 0
        gone, kept = _Extents(cut.gone.get(file, ())), _Extents(cut.kept.get(file, ()))
        info: dict[int, bytes] = {}
        partners: set[str] = set()
        for start, end, record in raw_records(path, length):
            changed: bytes | None = None
            if record is None:
                if kept.covers(start):
                    raise RepositoryError(
                        f"archive/{path.name} is damaged at byte {start:,}: run 'recrawl check --repair' before you "
                        "erase anything"
                    )
                changed = b""
            elif heir := cut.heirs.get((file, start)):
                changed = _inherited(record, heir)
                self._gone.add(warc.fields_of(record)["WARC-Record-ID"])
            elif gone.covers(start):
                changed = b""
                self._gone.add(warc.fields_of(record)["WARC-Record-ID"])
            elif not kept.covers(start):
                changed = self._free(record, partners)
                if record.startswith(b"WARC/1.1\r\nWARC-Type: warcinfo"):
                    info[start] = record
            if changed is not None:
                changes[start] = changed
                dropped_bytes += 0 if changed else end - start
        return changes, dropped_bytes, info

    def _free(self, record: bytes, partners: set[str]) -> bytes | None:
        """What becomes of a record that no row names: itself (None), nothing, or another one."""
        cut, fields = self._cut, warc.fields_of(record)
        kind, url = fields.get("WARC-Type", ""), fields.get("WARC-Target-URI", "").removeprefix(_PICTURE)
        identity = fields.get("WARC-Record-ID", "")
        if not url:
            return None
        if url in cut.horizons or cut.sites:
            horizon = _EVER if cut.erased(url) else cut.horizons.get(url, 0.0)
            if horizon and moment(fields["WARC-Date"], 0.0) < horizon:
                partners.add(identity)
                self._gone.add(identity)
                return b""
        if fields.get("WARC-Concurrent-To", "-") in partners:
            return b""
        if kind == "revisit" and fields.get("WARC-Refers-To", "") in self._gone:
            heir = cut.originals.get(fields.get("WARC-Payload-Digest", ""))
            if heir is None:
                return b""
            if (heir.url, warc.warc_date(heir.at)) == (url, fields["WARC-Date"]):
                return b""  # the record of the heir takes its place
            return warc.with_fields(record, {
                "WARC-Refers-To": f"<urn:uuid:{warc.record_id(heir.url, heir.at, 'response')}>",
                "WARC-Refers-To-Target-URI": heir.url,
                "WARC-Refers-To-Date": warc.warc_date(heir.at),
            })  # fmt: skip
        if self._mentions(url, record):
            partners.add(identity)
            return b""
        return None

    def _mentions(self, url: str, record: bytes) -> bool:
        """Whether an erased address stands in an answer; in robots.txt also its path."""
        paths = self._paths.get(url.removesuffix(_ROBOTS), ()) if url.endswith(_ROBOTS) else ()
        return any(path in record for path in paths) or any(map(self._cut.erased, urls_in(record)))


class _Extents:
    """Stretches of a file."""

    def __init__(self, extents: Iterable[Extent]) -> None:
        self._extents = sorted(extents)
        self._starts = [start for start, _ in self._extents]

    def covers(self, place: int) -> bool:
        """Whether a place is in one of them."""
        at = bisect.bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._extents[at][1]


def new_name(name: str, mark: str) -> str:
    """The name of a rewritten file; its number stays the last part.

    >>> new_name("recrawl-20260101000000-00012.warc.gz", "e3")
    'recrawl-20260101000000-e3-00012.warc.gz'
    >>> new_name("recrawl-20260101000000-e3-00012.warc.gz", "e4")
    'recrawl-20260101000000-e4-00012.warc.gz'
    """
    stem, dot, suffix = name.partition(".")
    *parts, number = stem.split("-")
    if generation(name):
        parts.pop()
    return f"{'-'.join([*parts, mark, number])}{dot}{suffix}"


def generation(name: str) -> int:
    """How often a file was written anew, counted over all files.

    >>> generation("recrawl-20260101000000-e3-00012.warc.gz"), generation("recrawl-20260101000000-00012.warc.gz")
    (3, 0)
    """
    mark = name.partition(".")[0].split("-")[-2]
    return int(mark[1:]) if mark[:1] == "e" and mark[1:].isdigit() else 0


def _renamed(record: bytes, name: str) -> dict[str, str | None]:
    """The fields of the first record of a file that depend on its name."""
    at = moment(warc.fields_of(record)["WARC-Date"], 0.0)
    return {"WARC-Filename": name, "WARC-Record-ID": f"<urn:uuid:{warc.record_id(name, at, 'warcinfo')}>"}


def _inherited(record: bytes, heir: Heir) -> bytes:
    """A record under the address of the row that takes over its bytes."""
    kind, prefix = ("screenshot", _PICTURE) if heir.picture else ("response", "")
    return warc.with_fields(record, {
        "WARC-Target-URI": f"{prefix}{heir.url}",
        "WARC-Date": warc.warc_date(heir.at),
        "WARC-Record-ID": f"<urn:uuid:{warc.record_id(heir.url, heir.at, kind)}>",
        "WARC-Concurrent-To": None,
        "WARC-IP-Address": None,
    })  # fmt: skip


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
