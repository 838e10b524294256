"""The registrable domain of a host: the part of its name that its owner registered, by the Public Suffix List."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_ADDRESS = re.compile(r"\[.*\]|[0-9.]+").fullmatch
"""An IPv6 or IPv4 address."""


@lru_cache(1 << 16)
def registrable_domain(host: str) -> str:
    """Return the registrable domain of a host, which may have a port; an address or a single label is its own.

    >>> registrable_domain("news.example.co.uk:8080"), registrable_domain("127.0.0.1:80"), registrable_domain("co.uk")
    ('example.co.uk', '127.0.0.1', 'co.uk')
    """
    name = re.sub(r":\d+$", "", host).rstrip(".").lower()
    if _ADDRESS(name):
        return name
    return _suffixes().privatesuffix(name) or name


@cache
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # lazy: reads the whole list

    return PublicSuffixList()
