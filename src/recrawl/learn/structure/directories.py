"""Sites and directories from URLs, and groups of pages by directory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.book import Book, Directories
from recrawl.columns import Int32s, Ints

MIN_PAGES = 8
"""A directory with fewer pages is merged with its parent."""


def places(urls: Sequence[str]) -> tuple[list[str], Int32s, Ints, Directories]:
    """Return the sites, each page's site, each page's directory, and the tree of directories.

    Numbers are given in the order of the URLs: appending URLs does not change the numbers of earlier ones.

    >>> sites, site, folder, folders = places(["http://a.example/x/y/z", "http://a.example/", "http://b.example/?q=/"])
    >>> sites, site.tolist(), folder.tolist(), folders.parent.tolist(), folders.level.tolist()
    (['a.example', 'b.example'], [0, 0, 1], [2, 0, 3], [-1, 0, 1, -1], [0, 1, 2, 0])
    """
    numbers: dict[str, int] = {}
    parents: list[int] = []
    level: list[int] = []

    def number(path: str, host_end: int) -> int:
        """Return the directory's number; add it and its parents if they are new, the topmost first."""
        new = []
        while path not in numbers and len(path) > host_end:
            new.append(path)
            path = path[: path.rfind("/", 0, -1) + 1]
        parent = numbers.get(path, -1)
        for below in reversed(new):
            numbers[below] = len(parents)
            parents.append(parent)
            level.append(0 if parent < 0 else level[parent] + 1)
            parent = numbers[below]
        return parent

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
    return list(hosts), site, folder, Directories(np.array(parents, np.int64), np.array(level, np.int32))


def directory_groups(book: Book, min_pages: int = MIN_PAGES) -> Ints:
    """Return, per page, the number of the deepest directory above it with enough pages; the site's top if none.

    >>> book = Book.blank(3)
    >>> book.folder[:] = [1, 1, 2]
    >>> book.folders = Directories(np.array([-1, 0, 0]), np.array([0, 1, 1], np.int32))
    >>> directory_groups(book, min_pages=2).tolist()
    [1, 1, 0]
    """
    tree = book.folders
    if tree is None:
        return np.unique(book.site, return_inverse=True)[1].astype(np.int64)
    group = np.arange(len(tree.parent))
    size = np.bincount(book.folder, minlength=len(group))
    # From the deepest level up, small directories are merged with their parents.
    for level in range(int(tree.level.max(initial=0)), 0, -1):
        here = np.flatnonzero(tree.level == level)
        small = here[size[here] < min_pages]
        np.add.at(size, tree.parent[small], size[small])
        size[small] = 0
        group[small] = tree.parent[small]
    # A parent may have been merged itself; parents are one level higher, so this loop ends.
    while not np.array_equal(group, group[group]):
        group = group[group]
    return np.unique(group[book.folder], return_inverse=True)[1].astype(np.int64)
