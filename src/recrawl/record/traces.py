"""The URLs that stand in bytes of any kind: in headers, HTML, JSON, sitemaps, database files.

Only absolute ones, as they are written: this finds where an address was copied to, not what a page links to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BEGIN = re.compile(rb"https?:(?=\\?/\\?/)", re.IGNORECASE)
_URL = re.compile(rb"https?:\\?/\\?/[^\s\"'<>`{}|^\x00-\x20\x7f]{1,2000}", re.IGNORECASE)
_ENDS = b".,;:!?)]*\\&="
"""What may follow a URL in a text; it may also be its last character."""
_PARTS = re.compile(rb"&amp;|&#38;|\\/")
_MEANT = {b"&amp;": b"&", b"&#38;": b"&", b"\\/": b"/"}


def urls_in(data: bytes) -> Iterator[str]:
    """Every URL in these bytes, and what it would be without the signs at its end; some more than once.

    >>> sorted(set(urls_in(b'see (https://a.example/b). {"u": "https:\\\\/\\\\/a.example\\\\/c"}')))
    ['https://a.example/b', 'https://a.example/b)', 'https://a.example/b).', 'https://a.example/c']
    """
    for begin in _BEGIN.finditer(data):
        found = _URL.match(data, begin.start())
        if found is None:
            continue
        url = _PARTS.sub(lambda part: _MEANT[part[0]], found[0])
        while url:
            yield url.decode("utf-8", "replace")
            if b"#" in url:
                url = url.partition(b"#")[0]
            elif url[-1] in _ENDS:
                url = url[:-1]
            else:
                break
