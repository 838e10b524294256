"""Where pages lie: sites and directories, from addresses alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Directories


def places(urls: Sequence[str]) -> tuple[list[str], NDArray[np.int32], NDArray[np.int64], Directories]:
    """The sites, each page's site, each page's directory, and the tree of directories.

    Numbers are given in the order of the addresses: more addresses at the end leave them as they are.

    >>> sites, site, folder, folders = places(["http://a.example/x/y/z", "http://a.example/", "http://b.example/?q=/"])
    >>> sites, site.tolist(), folder.tolist(), folders.parent.tolist(), folders.level.tolist()
    (['a.example', 'b.example'], [0, 0, 1], [2, 0, 3], [-1, 0, 1, -1], [0, 1, 2, 0])
    """
    numbers: dict[str, int] = {}
    parent: list[int] = []
    level: list[int] = []

    def number(path: str, host_end: int) -> int:
        """The directory's number; it and those above it that are new are entered, the uppermost first."""
        new = []
        while path not in numbers and len(path) > host_end:
            new.append(path)
            path = path[: path.rfind("/", 0, -1) + 1]
        mother = numbers.get(path, -1)
        for below in reversed(new):
            numbers[below] = len(parent)
            parent.append(mother)
            level.append(0 if mother < 0 else level[mother] + 1)
            mother = numbers[below]
        return mother

    folder = np.empty(len(urls), np.int64)
    hosts: dict[str, int] = {}
    site = np.empty(len(urls), np.int32)
    for page, url in enumerate(urls):
        bare = url.partition("?")[0].partition("#")[0]
        scheme, _, rest = bare.partition("://")
        host = rest.partition("/")[0]
        host_end = len(scheme) + 3 + len(host)
        folder[page] = number(bare[: bare.rfind("/", host_end) + 1] or bare + "/", host_end)
        site[page] = hosts.setdefault(host, len(hosts))
    return list(hosts), site, folder, Directories(np.array(parent, np.int64), np.array(level, np.int32))
