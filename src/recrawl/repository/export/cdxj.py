"""CDXJ: one line for each capture, sorted by SURT key and time, by which replay tools find records.

org,example)/about 20261101120000 {"url": ..., "mime": ..., "status": ..., "digest": ..., "filename": ...}
"""

from __future__ import annotations

import heapq
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from recrawl.record.captures import Capture

_RUN = 200_000
"""Lines that are sorted in memory at once."""
_WWW = re.compile(r"^www\d*\.")
_SLASHES = re.compile("/{2,}")
_PORTS = {"http": 80, "https": 443}


def line(capture: Capture, filename: str = "", shift: int = 0) -> str:
    """The line of a capture; `filename` and `shift` tell where its record is if not in its own file."""
    fields = {
        "url": capture.url,
        "mime": capture.mime,
        **({"status": str(capture.status)} if capture.status else {}),
        **({"digest": capture.digest} if capture.digest else {}),
        "length": str(capture.end - capture.start),
        "offset": str(capture.start + shift),
        "filename": filename or capture.file,
    }
    return f"{_key(capture.url)} {timestamp(capture.at)} {json.dumps(fields, ensure_ascii=True)}\n"


def timestamp(at: float) -> str:
    """
    >>> timestamp(0)
    '19700101000000'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")


def write(captures: Iterable[Capture], file: Path) -> int:
    """Write the index of captures; returns the number of lines."""
    lines = 0
    with file.open("w") as out:
        for text in in_order((line(capture) for capture in captures if capture.replayed), file.parent):
            out.write(text)
            lines += 1
    return lines


def in_order(lines: Iterable[str], scratch: Path) -> Iterator[str]:
    """The lines sorted by their bytes; runs of them wait in files, so memory does not grow with their number.

    The files are in the folder `scratch` but have no names there: they go with the process.
    """
    rest = iter(lines)
    with ExitStack() as opened:
        runs = []
        while run := sorted(islice(rest, _RUN)):
            runs.append(opened.enter_context(tempfile.TemporaryFile("w+", dir=scratch)))
            runs[-1].writelines(run)
            runs[-1].seek(0)
        yield from heapq.merge(*runs)


def _key(url: str) -> str:
    """The URL as replay tools sort it (SURT): host reversed, all in lower case, parameters sorted.

    The rules are those of the Internet Archive for canonical URLs. The package that implements them for any URL is no
    longer maintained; the tests compare with it.

    >>> _key("https://www.example.org:8080/About/?y=1&X=2")
    'org,example:8080)/about?x=2&y=1'
    """
    parts = urlsplit(url.lower())
    host = ",".join(reversed(_WWW.sub("", parts.hostname or "").split(".")))
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    path = _SLASHES.sub("/", parts.path).removesuffix("/")
    query = "&".join(sorted(parts.query.split("&"), key=lambda pair: pair.partition("=")[::2]))
    return f"{host}{port}){path or '/'}" + (f"?{query}" if query else "")
