"""Parse the lines of capture listings, in the formats of web archives:

- CDX, columns in words (`urlkey timestamp original mimetype statuscode digest length`, the Wayback server's) or in
  letters (` CDX N b a m s k r M S V g`), with or without a header line;
- the same as JSON, an array of arrays (the Wayback server's `output=json`);
- CDXJ, `urlkey timestamp {"url": …}` (pywb, Common Crawl's index files);
- one JSON object per line (Common Crawl's index server).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

COLUMNS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""The columns of a CDX line without a header."""

_LETTERS = {
    "N": "urlkey", "b": "timestamp", "a": "original", "m": "mimetype", "s": "statuscode", "k": "digest", "S": "length",
}  # fmt: skip
_NAMES = {**{name: name for name in COLUMNS}, "url": "original", "mime": "mimetype", "status": "statuscode"}


class ListedCapture(NamedTuple):
    """One line of a listing; missing fields are empty."""

    url: str
    time: int
    mime: str
    status: str
    digest: str
    length: int


def captures(lines: Iterable[str]) -> Iterator[ListedCapture | None]:
    """Yield the capture of each line, None for an invalid one; skip lines without a capture."""
    columns: Sequence[str] = COLUMNS
    for line in lines:
        text = line.strip()
        if not text or text.startswith(("!", "#")) or text in ("[", "]", "[]"):
            continue
        if text.startswith("CDX "):
            columns = [_LETTERS.get(letter, "") for letter in text.split()[1:]]
        elif text.startswith("["):
            for row in _rows(text):
                if row is not None and _is_header(row):
                    columns = [_NAMES.get(name, "") for name in row]
                else:
                    yield None if row is None else _capture(dict(zip(columns, row, strict=False)))
        elif text.endswith("}"):
            yield _of_object(text)
        elif _is_header(fields := text.split(" ")):
            columns = [_NAMES.get(name, "") for name in fields]
        else:
            yield _capture(dict(zip(columns, fields, strict=False)))


def _is_header(fields: Sequence[str]) -> bool:
    return "timestamp" in fields


def _rows(text: str) -> Iterator[list[str] | None]:
    """Yield the rows on a line of an array of arrays: mostly one per line, all rows if there are no line breaks."""
    text = text.rstrip(",")
    text = text[1:] if text.startswith("[[") else text
    text = text[:-1] if text.endswith("]]") else text
    try:
        rows = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        rows = [None]
    for row in rows:
        valid = isinstance(row, list) and all(isinstance(field, str) for field in row)
        yield row if valid else None


def _of_object(text: str) -> ListedCapture | None:
    """Parse a CDXJ line, or a JSON object alone."""
    head, brace, rest = text.partition("{")
    try:
        values = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    fields: dict[str, Any] = {_NAMES.get(str(name), str(name)): str(value) for name, value in values.items()}
    before = head.split()
    if len(before) > 1:
        fields["timestamp"] = before[1]
    if fields.get("mimetype", "-") in ("-", "unk") and "mime-detected" in fields:
        fields["mimetype"] = fields["mime-detected"]
    return _capture(fields)


def _capture(fields: Mapping[str, str]) -> ListedCapture | None:
    url, stamp = fields.get("original", ""), fields.get("timestamp", "")
    time = seconds(stamp)
    if not url or time is None or "digest" not in fields:
        return None
    length = fields.get("length", "")
    return ListedCapture(
        url=url,
        time=time,
        mime=_value(fields.get("mimetype", "")).partition(";")[0].strip().lower(),
        status=_value(fields.get("statuscode", "")),
        digest=_value(fields["digest"]).rpartition(":")[2].upper(),
        length=int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else 0,
    )


def _value(field: str) -> str:
    return "" if field == "-" else field


def seconds(stamp: str) -> int | None:
    """Return the seconds since 1970 of a 14-digit timestamp; None if it is invalid.

    >>> seconds("19700102000010"), seconds("19700230000000"), seconds("yesterday")
    (86410, None, None)
    """
    if len(stamp) != 14 or not (stamp.isascii() and stamp.isdecimal()):
        return None
    day, hour, minute, second = _day(stamp[:8]), int(stamp[8:10]), int(stamp[10:12]), int(stamp[12:])
    if day is None or hour > 23 or minute > 59 or second > 60:
        return None
    return day + 3600 * hour + 60 * minute + second


@lru_cache(maxsize=4096)
def _day(text: str) -> int | None:
    try:
        return int(datetime(int(text[:4]), int(text[4:6]), int(text[6:]), tzinfo=UTC).timestamp())
    except ValueError:
        return None
