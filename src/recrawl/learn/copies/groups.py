"""Groups of copies, and the representative of each: computed between runs, from columns.

Pages are copies of each other if

- they have the same text, or the same title and the same content, and are of one site, of sites that mirror each other,
  or of variants of one URL,
- one claims the other as its canonical address, the claim is believed, and nearly all content is the same,
- their URLs are variants of each other (`variants`) and nearly all content is the same.

Short pages, which have no sketch, are copies only where one claims the other and the text is the same. Every claim is
compared with what both pages show. A site whose claims mostly prove wrong is believed in none: many call their home
page the canonical address of everything.

The representative of a group is the page that most proved claims name; then what it was before; then what a sitemap
lists, https, the shortest URL, the page that was found first. A copy stays in its group until it was visited after the
last change of the representative: it was the same, and nothing says that it no longer is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Int32s, Ints
from recrawl.learn.copies.sketch import NEAR, Sketches, shared
from recrawl.learn.copies.variants import plain_form

_MIRRORED, _MOSTLY = 20, 0.9
"""Pages that two sites have in common if they mirror each other, and the share of the smaller one."""
_BANDS = 3
"""Parts of the MinHash; pages that agree in one of them are compared."""
_EMPTY = np.frombuffer(md5(b"", usedforsecurity=False).digest(), np.uint64)
"""The digest of a page without text: two of them have nothing in common."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class CopyColumns:
    """What is known of pages; one entry per page."""

    key: Ints
    """The key of its URL."""
    site: Int32s
    stored: Flags
    """Whether it is live, with a version."""
    digest: NDArray[np.uint64]
    """The digest of its text, as two numbers in a row."""
    sketch: Sketches
    claim: Ints
    """The key of the URL that it claims as canonical; 0 for none."""
    same_as: Ints
    """The key of the URL of its representative so far; 0 for none."""
    listed: Flags
    """Whether a sitemap lists it."""
    secure: Flags
    """Whether its URL is of https."""
    length: Int32s
    """Characters of its URL."""
    last_visit: Floats
    last_change: Floats


class ClaimRecord(NamedTuple):
    """How often the claims of sites have proved right and wrong; one entry per site."""

    right: Ints
    wrong: Ints

    @property
    def believed(self) -> Flags:
        """Which sites are believed."""
        believed: Flags = self.right >= self.wrong
        return believed


class Grouping(NamedTuple):
    """The groups of copies."""

    same_as: Ints
    """For each page the key of its representative's URL; 0 for one that stands for itself."""
    claims: ClaimRecord


Urls = Callable[[Sequence[int]], Mapping[int, str]]
"""Returns the URLs of pages."""


def group_copies(pages: CopyColumns, urls: Urls) -> Grouping:
    """The groups of copies among pages; `urls` returns the URLs of some."""
    sources, targets = _claims(pages)
    agreeing = _agree(pages, sources, targets)
    told = agreeing | _comparable(pages, sources, targets)
    sites = int(pages.site.max(initial=-1)) + 1
    record = ClaimRecord(
        np.bincount(pages.site[sources[agreeing]], minlength=sites),
        np.bincount(pages.site[sources[told & ~agreeing]], minlength=sites),
    )
    proved = agreeing & record.believed[pages.site[sources]]
    waiting, standing = _waiting(pages)
    pairs = [
        (sources[proved], targets[proved]),
        *_same_content(pages, urls),
        _near_variants(pages, urls),
        (waiting, standing),
    ]
    ones, others = (np.concatenate(column) for column in zip(*pairs, strict=True))
    votes = np.bincount(targets[proved], minlength=len(pages.key))
    same_as = np.zeros(len(pages.key), np.int64)
    if len(ones):
        leader = _leaders(pages, ones, others, votes)
        member = np.flatnonzero(leader >= 0)
        member = member[_agree(pages, member, leader[member]) | np.isin(member, waiting)]
        same_as[member] = pages.key[leader[member]]
    return Grouping(same_as, record)


def due_copies(same_as: Ints, key: Ints, last_visit: Floats, last_change: Floats, now: float, pace: float) -> Flags:
    """Whether a visit to each page may tell something: always of a page that stands for itself; of a copy if its
    representative has changed since, or was visited since and `pace` seconds are over. `last_change` is -inf for pages
    that have not changed since they were found.

    >>> key, same_as = np.array([7, 8, 9]), np.array([0, 7, 7])
    >>> due_copies(same_as, key, np.array([5.0, 4.0, 2.0]), np.array([3.0, 0.0, 0.0]), now=6.0, pace=100.0).tolist()
    [True, False, True]
    """
    due = np.ones(len(key), bool)
    copies = np.flatnonzero(same_as)
    if not len(copies):
        return due
    leader = _positions(key, same_as[copies])
    known = leader >= 0
    copies, leader = copies[known], leader[known]
    seen = last_visit[copies]
    due[copies] = (last_change[leader] > seen) | ((now - seen >= pace) & (last_visit[leader] > seen))
    return due


def _positions(key: Ints, wanted: Ints) -> Ints:
    """Where the pages with these keys are; -1 for none."""
    order = np.argsort(key)
    place = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
    found = order[place]
    return np.where(key[found] == wanted, found, -1)


def _claims(pages: CopyColumns) -> tuple[Ints, Ints]:
    """Stored pages that claim another stored page as canonical, and these."""
    sources = np.flatnonzero(pages.stored & (pages.claim != 0) & (pages.claim != pages.key))
    targets = _positions(pages.key, pages.claim[sources]) if len(sources) else sources
    known = (targets >= 0) & pages.stored[targets]
    return sources[known], targets[known]


def _agree(pages: CopyColumns, ones: Ints, others: Ints) -> Flags:
    """Whether pages have the same text, or nearly the same content."""
    mine = pages.digest[ones]
    text = np.all(mine == pages.digest[others], axis=1) & np.any(mine != _EMPTY, axis=1)
    agree: Flags = text | (shared(pages.sketch[ones], pages.sketch[others]) >= NEAR)
    return agree


def _comparable(pages: CopyColumns, ones: Ints, others: Ints) -> Flags:
    """Whether both pages have enough content to be told apart."""
    has: Flags = np.any(pages.sketch, axis=1)
    return has[ones] & has[others]


def _waiting(pages: CopyColumns) -> tuple[Ints, Ints]:
    """Copies that were not visited since their representative has changed, and the representatives."""
    copies = np.flatnonzero(pages.stored & (pages.same_as != 0))
    leader = _positions(pages.key, pages.same_as[copies]) if len(copies) else copies
    kept = (leader >= 0) & pages.stored[leader]
    copies, leader = copies[kept], leader[kept]
    behind = pages.last_visit[copies] < pages.last_change[leader]
    return copies[behind], leader[behind]


def _same_content(pages: CopyColumns, urls: Urls) -> list[tuple[Ints, Ints]]:
    """Pairs with the same text, or the same title and content; of different sites only where these belong together."""
    stored = np.flatnonzero(pages.stored)
    stored = stored[np.any(pages.sketch[stored], axis=1)]
    stored = stored[np.argsort(pages.site[stored], kind="stable")]  # so that equal texts of a site are neighbours
    ones, others = _neighbours(stored, _folded(pages.digest[stored]))
    content = _folded(np.ascontiguousarray(pages.sketch[stored]).view(np.uint64))
    inside = pages.site[ones] == pages.site[others]
    across = ~inside
    across[across] = _mirrored(pages, stored, ones[across], others[across])
    apart = ~inside & ~across
    number = pages.site[stored].astype(np.uint64) + np.uint64(1)
    return [
        (ones[inside | across], others[inside | across]),
        _neighbours(stored, content ^ (number * _MIX)),
        _of_one_form(ones[apart], others[apart], urls),
    ]


def _mirrored(pages: CopyColumns, stored: Ints, ones: Ints, others: Ints) -> Flags:
    """Which pairs are of sites that mirror each other: nearly all pages of the smaller one are on the other, too."""
    sites = int(pages.site.max(initial=-1)) + 1
    size = np.bincount(pages.site[stored], minlength=sites)
    one, other = pages.site[ones].astype(np.int64), pages.site[others].astype(np.int64)
    _, place, same = np.unique(one * sites + other, return_inverse=True, return_counts=True)
    number = same[place]
    mirrored: Flags = (number >= _MIRRORED) & (number >= _MOSTLY * np.minimum(size[one], size[other]))
    return mirrored


def _of_one_form(ones: Ints, others: Ints, urls: Urls) -> tuple[Ints, Ints]:
    """The pairs whose URLs are variants of each other."""
    found = urls(np.unique(np.concatenate((ones, others))).tolist()) if len(ones) else {}
    forms = {page: plain_form(url) for page, url in found.items()}
    same = np.array([forms[a] == forms[b] for a, b in zip(ones.tolist(), others.tolist(), strict=True)], bool)
    return ones[same], others[same]


def _near_variants(pages: CopyColumns, urls: Urls) -> tuple[Ints, Ints]:
    """Pairs with nearly the same content whose URLs are variants of each other."""
    long = np.flatnonzero(pages.stored & pages.sketch.any(axis=1))
    bands = np.ascontiguousarray(pages.sketch[long, 4:]).view(np.uint32).reshape(-1, _BANDS)
    pairs = [_neighbours(long, bands[:, band].astype(np.uint64) | np.uint64(band << 32)) for band in range(_BANDS)]
    ones, others = (np.concatenate(column) for column in zip(*pairs, strict=True))
    close = _agree(pages, ones, others) & (pages.digest[ones] != pages.digest[others]).any(axis=1)
    candidates = np.unique(np.concatenate((ones[close], others[close])))
    if not len(candidates):
        return candidates, candidates
    forms = {page: plain_form(url) for page, url in urls(candidates.tolist()).items()}
    numbers: dict[str, int] = {}
    form = np.array([numbers.setdefault(forms.get(page, str(page)), len(numbers)) for page in candidates.tolist()])
    return _neighbours(candidates, form.astype(np.uint64))


def _neighbours(pages: Ints, value: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Pairs of pages with the same value: each with the one before it."""
    order = np.argsort(value, kind="stable")
    same = np.flatnonzero(value[order[1:]] == value[order[:-1]])
    return pages[order[same]], pages[order[same + 1]]


def _folded(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two numbers in a row as one."""
    return (rows[:, 0] ^ (rows[:, 0] >> np.uint64(29))) * _MIX ^ rows[:, 1]


def _leaders(pages: CopyColumns, ones: Ints, others: Ints, votes: Ints) -> Ints:
    """For each page in a group the page that stands for the group; -1 for that page, and for one in no group."""
    members = np.unique(np.concatenate((ones, others)))
    left, right = np.searchsorted(members, ones), np.searchsorted(members, others)
    group = connected(left, right, len(members))
    before = np.isin(pages.key[members], pages.same_as[pages.same_as != 0])
    order = np.lexsort((
        members,
        pages.length[members],
        ~pages.secure[members],
        ~pages.listed[members],
        ~before,
        -votes[members],
        group,
    ))  # fmt: skip
    first = np.r_[True, group[order[1:]] != group[order[:-1]]]
    leader_of_group = np.zeros(int(group.max()) + 1, np.int64)
    leader_of_group[group[order[first]]] = members[order[first]]
    leader = np.full(len(pages.key), -1, np.int64)
    leader[members] = leader_of_group[group]
    leader[leader == np.arange(len(leader))] = -1
    return leader


def connected(ones: Ints, others: Ints, nodes: int) -> Ints:
    """For each node the least node that it is connected with; `ones` and `others` are the ends of the edges.

    >>> connected(np.array([5, 1, 2]), np.array([4, 2, 3]), 6).tolist()
    [0, 1, 1, 1, 4, 4]
    """
    least = np.arange(nodes)
    while True:
        before = least.copy()
        edge = np.minimum(before[ones], before[others])
        for ends in (ones, others):
            np.minimum.at(least, before[ends], edge)
        least = least[least]
        if np.array_equal(least, before):
            return least
