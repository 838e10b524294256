"""A site as a tree of directories, with the share of visits that found a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

MAX_PAGES = 5_000
"""Only the pages of a site that were discovered first are read."""
_MAX_CHILDREN = 40
_MAX_DEPTH = 6

PageCounts = tuple[int, str, int, int]
"""Page, URL, visits, changes."""


@dataclass(slots=True)
class Folder:
    """A directory: its pages and subdirectories, and totals over everything below it."""

    name: str
    pages: int = 0
    visits: int = 0
    """Visits without the first one of each page, which cannot find a change."""
    changes: int = 0
    folders: dict[str, Folder] = field(default_factory=dict)
    leaves: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Name, page, visits, changes; most changes first."""
    hidden: int = 0
    """Number of entries that are not listed."""

    @property
    def share(self) -> float | None:
        """Share of visits that found a change; None without such visits."""
        return self.changes / self.visits if self.visits else None


def tree(pages: Iterable[PageCounts], name: str) -> Folder:
    """Return pages as a tree.

    >>> top = tree([(0, "http://x/", 3, 3), (1, "http://x/a/b", 3, 1), (2, "http://x/a/c", 1, 1)], "x")
    >>> (top.share, top.folders["a"].pages, top.folders["a"].share)
    (0.5, 2, 0.0)
    """
    top = Folder(name)
    for page, url, visits, changes in pages:
        path, _, query = url.partition("?")  # stored URLs are canonical: no fragment, and a path that begins with /
        *folders, last = path.split("/")[3:] or [""]
        leaf = (unquote(last) or "/") + (f"?{query}" if query else "")
        compared, changed = max(0, visits - 1), max(0, changes - 1)
        here = top
        _count(here, compared, changed)
        for part in folders[:_MAX_DEPTH]:
            if part not in here.folders:
                here.folders[part] = Folder(unquote(part) or "/")
            here = here.folders[part]
            _count(here, compared, changed)
        here.leaves.append((leaf, page, compared, changed))
    _trim(top)
    return top


def _count(folder: Folder, visits: int, changes: int) -> None:
    folder.pages += 1
    folder.visits += visits
    folder.changes += changes


def _trim(folder: Folder) -> None:
    """Keep the entries that changed most and count the others."""
    folder.leaves.sort(key=lambda leaf: (-leaf[3], leaf[0]))
    ordered = sorted(folder.folders.items(), key=lambda item: (-item[1].changes, -item[1].pages, item[0]))
    folder.hidden = max(0, len(folder.leaves) - _MAX_CHILDREN) + max(0, len(ordered) - _MAX_CHILDREN)
    folder.leaves = folder.leaves[:_MAX_CHILDREN]
    folder.folders = dict(ordered[:_MAX_CHILDREN])
    for child in folder.folders.values():
        _trim(child)
