"""How the records of archive files are compressed: gzip is written in `record.warc`, the alternative is here."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from isal import isal_zlib

from recrawl.extras import zstd

# --------------------------------------------------------------------------------------------------------------------
# Records of `.warc.zst` files: one Zstandard frame each, and a dictionary at the head of the file.
#
# The format is that of the Internet Archive (WARC Zstandard 1.0): a skippable frame with the dictionary, itself
# compressed, then the records. Pages of a site share most of their markup, which the dictionary holds: it is made from
# records of the file before. The first file of an archive has none, and ends as soon as there are records enough for
# one.
#
# Records arrive in gzip members, as `record.warc` makes them: that they are compressed twice costs less than a second
# form of every message between crawler and readers would.


SUFFIX = ".warc.zst"
FRAME = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame."""
_DICTIONARY = 0x184D2A5D
"""Marks the skippable frame with the dictionary."""
_LEVEL = 3
_DICTIONARY_BYTES = 1 << 16
_ENOUGH = 2_000_000
"""Bytes of records from which a dictionary is made."""
_SAMPLE = 20_000
"""Bytes of one record that count as a sample: the frame of a page is at its beginning and end."""


class ZstdPacker:
    """Compresses the records of one file after the other, and makes the dictionary of the next."""

    def __init__(self) -> None:
        self._samples: deque[bytes] = deque()
        self._size = 0
        self.begin(b"")

    @property
    def due(self) -> bool:
        """Whether a file without a dictionary should end: the next one can have one."""
        return not self._dictionary and self._size >= _ENOUGH

    def begin(self, dictionary: bytes) -> None:
        """Go on with a file that has this dictionary; empty if it has none."""
        self._dictionary = dictionary
        parameter = zstd.CompressionParameter
        options: dict[int, int] = {parameter.compression_level: _LEVEL, parameter.checksum_flag: 1}
        shared = zstd.ZstdDict(dictionary).as_digested_dict if dictionary else None
        self._compressor = zstd.ZstdCompressor(options=options, zstd_dict=shared)

    def head(self) -> bytes:
        """Begin a new file: its dictionary, from the last records; that of the file before if they are too few."""
        if self._size >= _ENOUGH:
            samples = [*self._samples]
            self.begin(zstd.train_dict(samples, _DICTIONARY_BYTES).dict_content)
        if not self._dictionary:
            return b""
        packed = zstd.compress(self._dictionary)
        return struct.pack("<II", _DICTIONARY, len(packed)) + packed

    def pack(self, blob: bytes) -> bytes:
        """Records in gzip members as frames."""
        return b"".join([self._frame(record) for record in _members(blob)])

    def _frame(self, record: bytes) -> bytes:
        self._samples.append(record[: _SAMPLE // 2] + record[_SAMPLE // 2 :][-_SAMPLE // 2 :])
        self._size += len(self._samples[-1])
        while self._size - len(self._samples[0]) >= _ENOUGH:
            self._size -= len(self._samples.popleft())
        frame: bytes = self._compressor.compress(record, mode=self._compressor.FLUSH_FRAME)
        return frame


def as_frame(blob: bytes) -> bytes:
    """Records in gzip members as frames that need no dictionary, and can be read with any."""
    return b"".join([zstd.compress(record) for record in _members(blob)])


def _members(blob: bytes) -> Iterator[bytes]:
    while blob:
        member = isal_zlib.decompressobj(wbits=31)
        yield member.decompress(blob)
        blob = member.unused_data


def read_records(path: Path, start: int, length: int) -> bytes:
    """The records at a place of an archive file, as FastWARC reads them: gzip as it is, frames decompressed.

    Raises `ValueError` if they are damaged.
    """
    with path.open("rb") as file:
        file.seek(start)
        blob = file.read(length)
    return unpack(path, blob) if path.name.endswith(SUFFIX) else blob


def unpack(path: Path, blob: bytes) -> bytes:
    """Decompress frames of a file."""
    try:
        records: bytes = zstd.decompress(blob, zstd_dict=_shared(str(path)))
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    return records


def decompressor(path: Path) -> Any:
    """An object that decompresses one frame of a file, with the interface of those of zlib."""
    return zstd.ZstdDecompressor(zstd_dict=_shared(str(path)))


def dictionary(path: Path) -> tuple[bytes, int]:
    """The dictionary of a file, empty if it has none, and where the records begin."""
    with path.open("rb") as file:
        head = file.read(8)
        if len(head) < 8 or struct.unpack("<I", head[:4])[0] != _DICTIONARY:
            return b"", 0
        size = struct.unpack("<I", head[4:])[0]
        found = file.read(min(size, 8 * _DICTIONARY_BYTES))
    try:
        return (zstd.decompress(found) if found.startswith(FRAME) else found), 8 + size
    except zstd.ZstdError:
        return b"", 8 + size  # then no record can be read, which `recrawl check` tells


def dictionary_bytes(path: Path) -> bytes:
    """The bytes of a file before its first record: its dictionary, as it is stored."""
    size = dictionary(path)[1]
    with path.open("rb") as file:
        return file.read(size)


@lru_cache(maxsize=64)
def _shared(path: str) -> Any:
    found = dictionary(Path(path))[0]
    return zstd.ZstdDict(found) if found else None
