"""The files of a full-text index: are they all there, are they as tantivy wrote them, and up to which visit are they?

tantivy checks little when it opens an index: a changed byte can make a later search fail, or end the process. Every
file of a segment ends with a footer that has a checksum of the rest; here it is verified.

The store says up to which visit the index is complete. Where the store is in a database, the next writer may be on
another machine, with an older index or none: so the index has a mark of its own.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from recrawl.durable_files import replace_file

META = "meta.json"
INDEXED = "indexed"
"""The name of the last visit that was indexed, in the store and in the folder of an index; -1 before the first."""
_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_MAGIC = 1337
_QUICK_BYTES = 50_000_000
"""An index up to this size is verified whenever it is opened: that takes less than 0.1 s."""
_TRIES = 3


def indexed_up_to(folder: Path, known: int) -> int:
    """The last visit that the index in a folder has; `known` is what the store says. -1 without an index."""
    if not folder.is_dir():
        return -1
    mark = _mark(folder)
    return known if mark is None else min(mark, known)


def is_complete(folder: Path, known: int) -> bool:
    """Whether the index in a folder has all that the store knows to be indexed."""
    mark = _mark(folder)
    return mark is not None and mark >= known >= 0


def mark_indexed(folder: Path, visit: int) -> None:
    """Note that the index in a folder is complete up to a visit; without an index there is nothing to note."""
    if folder.is_dir():
        replace_file(folder / INDEXED, str(visit))


def _mark(folder: Path) -> int | None:
    try:
        return int((folder / INDEXED).read_text(encoding="ascii"))
    except FileNotFoundError:  # the index of an earlier version, or one that was never complete
        return None
    except ValueError:
        return -1


def damage(folder: Path, *, thorough: bool = False) -> str:
    """What is wrong with the files of an index, as a phrase; empty if nothing is, or if they are too many to read.

    A writer may replace files meanwhile: then the new ones are verified.
    """
    for _ in range(_TRIES):
        try:
            meta = (folder / META).read_bytes()
        except FileNotFoundError:
            return f"{META} is missing" if any(folder.glob("*.store")) else ""
        problem = _damage(folder, meta, thorough)
        if not problem or (folder / META).read_bytes() == meta:
            return problem
    return ""


def _damage(folder: Path, meta: bytes, thorough: bool) -> str:
    try:
        names = [name for segment in json.loads(meta)["segments"] for name in _files(segment)]
    except (ValueError, KeyError, TypeError):
        return f"{META} cannot be read"
    try:
        total = sum((folder / name).stat().st_size for name in names)
        bad = (name for name in names if not _sound((folder / name).read_bytes()))
        name = next(bad, "") if thorough or total <= _QUICK_BYTES else ""
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    return f"{name} is damaged" if name else ""


def _files(segment: dict[str, Any]) -> list[str]:
    """The files of a segment: its parts, and the documents that were deleted since."""
    stem = segment["segment_id"].replace("-", "")
    deleted = segment["deletes"]
    return [f"{stem}.{part}" for part in _PARTS] + ([f"{stem}.{deleted['opstamp']}.del"] if deleted else [])


def _sound(data: bytes) -> bool:
    """Whether a file is as its footer says: JSON with the checksum, the length of the JSON, a magic number."""
    try:
        length, magic = struct.unpack("<II", data[-8:])
        footer = json.loads(data[-8 - length : -8])
        return magic == _MAGIC and bool(zlib.crc32(data[: -8 - length]) == footer["crc"])
    except (struct.error, ValueError, KeyError, TypeError):
        return False
