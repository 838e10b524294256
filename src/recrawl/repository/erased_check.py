"""Prove that nothing of what was erased is left: read every file of a repository, as it is and as what it means.

Looked for are the addresses that tombstones keep away, wherever a URL stands, and texts that the user names. Files are
read as bytes, so that what a database has deleted and not overwritten is found, too; archives are decompressed, PDFs in
them as well; rows, arrays and the words of the index are read as such.

Other pages may link to an erased one, and servers go on naming it: what was recorded of them is told, and is no
problem. An address in a record that was made before it was erased, and that is no version of a page, is one.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

from recrawl.discover.urls import origin
from recrawl.errors import DamagedIndex
from recrawl.record import warc
from recrawl.record.archive_check import raw_records
from recrawl.record.check import Findings
from recrawl.record.storage import Storage
from recrawl.record.tombstones import Tombstones
from recrawl.record.traces import urls_in
from recrawl.repository.erasing import UNFINISHED, log
from recrawl.times import moment

_BLOCK, _OVERLAP = 1 << 24, 1 << 13
_STREAM = re.compile(rb"stream\r?\n")
_PICTURE = "urn:fullPage:"
_MOST = 1 << 27
"""Bytes of a decompressed part of a PDF, at most."""


@dataclass(slots=True)
class _Search:
    """What is looked for, and what was found."""

    tombstones: Tombstones
    needles: dict[bytes, str]
    """Spellings of the texts, in lower case, each with the text."""
    times: dict[int, float]
    findings: Findings
    mentions: Counter[str] = field(default_factory=Counter)
    """By page: its stored versions that link to an erased address."""
    later: int = 0
    """Records from after an erasure in which servers named the address."""
    files: int = 0
    size: int = 0

    def problem(self, what: str) -> None:
        """Note a trace, each once."""
        if not any(known.what == what for known in self.findings.problems):
            self.findings.add("erased", what)

    def texts(self, data: bytes, where: str) -> None:
        """Look for texts."""
        if self.needles:
            lower = data.lower()
            for needle, text in self.needles.items():
                if needle in lower:
                    self.problem(f"'{text}' is in {where}")

    def erasures(self, data: bytes) -> set[int]:
        """The erasures of which an address stands in these bytes."""
        if not self.tombstones:
            return set()
        return {number for url in set(urls_in(data)) if (number := self.tombstones.covers(url, origin))}

    def both(self, data: bytes, where: str) -> None:
        """Look for texts and addresses."""
        self.texts(data, where)
        if self.erasures(data):
            self.problem(f"an erased address is in {where}")


def check_erased(
    storage: Storage, findings: Findings, texts: Sequence[str], go_on: Callable[[], None] = lambda: None
) -> None:
    """Read every file of a repository; what is left of erased pages are problems."""
    times = {int(row["number"]): float(row["at"]) for row in log(storage)}
    search = _Search(Tombstones(storage.store.meta), _spellings(texts), times, findings)
    if storage.store.meta.get(UNFINISHED, ""):
        waiting = storage.store.erasing.waiting_deletions()
        told = ", ".join(f"{name} ({number:,})" for name, number in waiting)
        rest = f"addresses wait for sinks that have not taken deletions: {told}" if waiting else "erase or crawl again"
        findings.notes.append(f"an erasure is not finished: {rest}")
    for path in sorted(storage.folder.rglob("*")):
        if path.is_file():
            go_on()
            _read_file(search, storage, path)
    _read_rows(search, storage)
    _read_index(search, storage, texts)
    findings.bytes += search.size
    for url, number in sorted(search.mentions.items()):
        findings.notes.append(f"{number:,} stored versions of {url} link to an erased address: they are its contents")
    if search.later:
        findings.notes.append(f"servers have named erased addresses in {search.later:,} answers since")
    wanted = f"{len(search.tombstones):,} addresses and {len(texts)} texts"
    findings.notes.append(f"read {search.files:,} files for {wanted}")


def _spellings(texts: Iterable[str]) -> dict[bytes, str]:
    """The ways in which a text is written in files."""
    found: dict[bytes, str] = {}
    for text in texts:
        for form in (text, quote(text), json.dumps(text)[1:-1]):
            found[form.lower().encode()] = text
        found[text.lower().encode("utf-16-le")] = text
        found[text.lower().encode("utf-32-le")] = text
    return found


def _read_file(search: _Search, storage: Storage, path: Path) -> None:
    where = str(path.relative_to(storage.folder))
    archived = path.parent == storage.archive.folder and ".warc." in path.name
    search.files += 1
    before = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            search.size += len(block)
            if where.startswith("recrawl.db"):
                search.texts(before + block, where)  # addresses are looked for in its rows
                _deleted_addresses(search, before + block, storage, where)
            else:
                search.both(before + block, where)
            before = block[-_OVERLAP:]
    if archived:
        _read_archive(search, storage, path)
    elif path.suffix == ".npz":
        for part in _arrays(path):
            search.both(part, where)


def _deleted_addresses(search: _Search, data: bytes, storage: Storage, where: str) -> None:
    """Addresses in the bytes of the database that no row has; those that wait for sinks are told by `check_erased`."""
    if search.erasures(data) and not storage.store.erasing.waiting_deletions():
        search.problem(f"an erased address is in {where}")


def _arrays(path: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(path) as parts:
            for name in parts.namelist():
                array = np.lib.format.read_array(io.BytesIO(parts.read(name)), allow_pickle=False)
                yield "\n".join(array.ravel().tolist()).encode() if array.dtype.kind == "U" else array.tobytes()
    except (OSError, ValueError, zipfile.BadZipFile):
        return


def _read_archive(search: _Search, storage: Storage, path: Path) -> None:
    """Every record of a file; `path` may also be one that the store does not know."""
    numbers = {name: number for number, name in storage.archive.names.items()}
    own = numbers.get(path.name, -1)
    rows = storage.store.erasing.places("versions")
    here = rows["warc"] == own
    starts = set(rows["start"][here].tolist())
    for start, _, record in raw_records(path, path.stat().st_size):
        if record is None:
            continue
        fields = warc.fields_of(record)
        url = fields.get("WARC-Target-URI", "").removeprefix(_PICTURE)
        where = f"archive/{path.name} at byte {start:,}"
        search.texts(record, where)
        for part in _inflated(record) if search.needles else ():
            search.texts(part, f"{where}, compressed in a file")
        head = record.partition(b"\r\n\r\n")[0]
        if search.erasures(head):
            search.problem(f"an erased address has a record in {where}")
        elif found := search.erasures(record):
            made = moment(fields["WARC-Date"], 0.0)
            if start in starts or fields.get("WARC-Type") in ("conversion", "request"):
                search.mentions[url] += 1
            elif any(made < search.times.get(number, 0.0) for number in found):
                search.problem(f"an erased address stands in {where}")
            else:
                search.later += 1


def _inflated(record: bytes) -> Iterator[bytes]:
    """The compressed parts of a PDF."""
    if b"%PDF-" not in record:
        return
    for begin in _STREAM.finditer(record):
        try:
            yield zlib.decompressobj().decompress(record[begin.end() :], _MOST)
        except zlib.error:
            continue


def _read_rows(search: _Search, storage: Storage) -> None:
    waiting = bool(storage.store.erasing.waiting_deletions())
    for table, value in storage.store.erasing.texts():
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        search.texts(data, f"the table {table}")
        if search.erasures(data) and not (table == "outbox" and waiting):
            search.problem(f"an erased address is in the table {table}")


def _read_index(search: _Search, storage: Storage, texts: Iterable[str]) -> None:
    """The documents of the index, and its words, those of deleted documents too."""
    folder = storage.folder / "index"
    if not folder.is_dir():
        return
    try:
        for data in storage.index.stored_texts():
            search.both(data, "the index")
        for text in texts:
            if storage.index.knows_words(text):
                search.problem(f"'{text}' is among the words of the index")
    except DamagedIndex as error:
        search.problem(str(error))
