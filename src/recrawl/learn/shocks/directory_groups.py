"""Groups of pages that may change together, from the tree of directories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book

FEWEST = 8
"""A directory with fewer pages is counted to the one above it."""


def directories(book: Book, fewest: int = FEWEST) -> NDArray[np.int64]:
    """One per page: the deepest directory above it that holds enough pages, numbered from 0; the site's top if none.

    >>> from recrawl.book import Folders
    >>> book = Book.blank(3)
    >>> book.folder[:] = [1, 1, 2]
    >>> book.folders = Folders(np.array([-1, 0, 0]), np.array([0, 1, 1], np.int32))
    >>> directories(book, fewest=2).tolist()
    [1, 1, 0]
    """
    tree = book.folders
    if tree is None:
        return np.unique(book.site, return_inverse=True)[1].astype(np.int64)
    own = np.arange(len(tree.parent))
    held = np.bincount(book.folder, minlength=len(own))
    # From the deepest level up: what is too small moves into its parent.
    for level in range(int(tree.level.max(initial=0)), 0, -1):
        here = np.flatnonzero(tree.level == level)
        small = here[held[here] < fewest]
        np.add.at(held, tree.parent[small], held[small])
        held[small] = 0
        own[small] = tree.parent[small]
    # A folder's heir may have moved on itself; parents stand one level higher, so this ends.
    while not np.array_equal(own, own[own]):
        own = own[own]
    return np.unique(own[book.folder], return_inverse=True)[1].astype(np.int64)
