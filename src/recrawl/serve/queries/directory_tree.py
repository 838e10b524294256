"""A site as a tree of directories, each with how often its pages were found changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

MOST_PAGES = 5_000
"""Pages of a site that are looked at: those found first, which lie near its top."""
_MOST_CHILDREN = 40
_DEEPEST = 6

Found = tuple[int, str, int, int]
"""Page, URL, visits, changes."""


@dataclass(slots=True)
class Folder:
    """A directory: its pages and directories, and sums over all below it."""

    name: str
    pages: int = 0
    visits: int = 0
    """Visits at which a change could have been seen: all but each page's first."""
    changes: int = 0
    folders: dict[str, Folder] = field(default_factory=dict)
    leaves: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Name, page, visits, changes; the most changed first."""
    hidden: int = 0
    """Entries that are not listed."""

    @property
    def share(self) -> float | None:
        """The share of visits that found a change; None before there was one that could."""
        return self.changes / self.visits if self.visits else None


def tree(pages: Iterable[Found], name: str) -> Folder:
    """Pages as a tree.

    >>> top = tree([(0, "http://x/", 3, 3), (1, "http://x/a/b", 3, 1), (2, "http://x/a/c", 1, 1)], "x")
    >>> (top.share, top.folders["a"].pages, top.folders["a"].share)
    (0.5, 2, 0.0)
    """
    top = Folder(name)
    for page, url, visits, changes in pages:
        parts = urlsplit(url)
        *folders, last = parts.path.split("/")[1:] or [""]
        leaf = (unquote(last) or "/") + (f"?{parts.query}" if parts.query else "")
        compared, changed = max(0, visits - 1), max(0, changes - 1)
        here = top
        _count(here, compared, changed)
        for part in folders[:_DEEPEST]:
            here = here.folders.setdefault(part, Folder(unquote(part) or "/"))
            _count(here, compared, changed)
        here.leaves.append((leaf, page, compared, changed))
    _trim(top)
    return top


def _count(folder: Folder, visits: int, changes: int) -> None:
    folder.pages += 1
    folder.visits += visits
    folder.changes += changes


def _trim(folder: Folder) -> None:
    """Keep what changed most; say how much is left out."""
    folder.leaves.sort(key=lambda leaf: (-leaf[3], leaf[0]))
    ordered = sorted(folder.folders.items(), key=lambda item: (-item[1].changes, -item[1].pages, item[0]))
    folder.hidden = max(0, len(folder.leaves) - _MOST_CHILDREN) + max(0, len(ordered) - _MOST_CHILDREN)
    folder.leaves = folder.leaves[:_MOST_CHILDREN]
    folder.folders = dict(ordered[:_MOST_CHILDREN])
    for child in folder.folders.values():
        _trim(child)
