"""URLs that often name one page.

That they do is never taken from the URLs alone: it lets pages count as copies whose content is nearly, not wholly, the
same.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = re.compile(r"(?:www\d?|m|mobile|amp|print)\.")
_INDEX = re.compile(r"/(?:index|default|home)\.(?:html?|php|aspx?|jsp)$", re.IGNORECASE)
_VIEW = re.compile(r"/(?:amp|print|printable|print-view|mobile|m)(?=/|$)", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:[._-](?:amp|print|printable))?(?:\.(?:html?|php))?$", re.IGNORECASE)
_PARAMETERS = frozenset({"amp", "print", "printable", "mobile", "view", "output", "format", "outputtype", "m"})
_VALUES = frozenset({"", "1", "true", "yes", "amp", "print", "mobile", "printable", "desktop"})


def plain_form(url: str) -> str:
    """A URL without what names a view of the page: equal for URLs that may name one page.

    >>> plain_form("https://www.a.example/print/b.html") == plain_form("http://a.example/b/?print=1")
    True
    >>> plain_form("https://a.example/b/index.html")
    'a.example/b'
    """
    parts = urlsplit(url)
    path = _SUFFIX.sub("", _VIEW.sub("", _INDEX.sub("/", parts.path)).rstrip("/"))
    query = "&".join(piece for piece in parts.query.split("&") if piece and not _is_view(piece))
    return f"{_HOST.sub('', parts.netloc, count=1)}{path}{'?' if query else ''}{query}"


def _is_view(piece: str) -> bool:
    name, _, value = piece.partition("=")
    return name.lower() in _PARAMETERS and value.lower() in _VALUES
