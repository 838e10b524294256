"""The layout of T's generated world: sites and domains as in table 1, directories, links, and page features.

Depths follow the distribution of 95 real site histories, cut at 8, which agrees with what T says of its own (most at 2
to 4, few at 7 and 8). The same histories have 7.5 pages per directory. A smaller world has fewer *and* smaller sites,
each by the square root of the scale, so that neither is distorted too much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.columns import Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.lab.experiments.tan2007.published import PAGES, TABLE_1

DEPTHS = np.array([0.139, 0.236, 0.225, 0.185, 0.09, 0.072, 0.023, 0.018])
"""The share of pages with 1, 2, ... 8 slashes in the path."""
_PAGES_PER_FOLDER = 7.5
_SITE_SIZES = 0.6
"""Standard deviation of the logarithm of site sizes within a domain; T prints only their means."""
_FOLDER_SIZES = 1.0
_LINKS = 7.2
"""Links per page."""
_LOCAL_SHARE = 0.5
"""The share of the extra links that stay in the directory."""
_WORDS, _SITE_WORDS = 4000, 200


@dataclass(frozen=True, slots=True, eq=False)
class SiteLayout:
    """The pages of a world, before any change. The first page of a directory is its index page."""

    hosts: list[str]
    site: Int32s
    folder: Ints
    folders: Directories
    index: Ints
    """One per directory: its index page."""
    urls: list[str]
    size: Ints

    def __len__(self) -> int:
        """The number of pages."""
        return len(self.site)


def domain_of(host: str) -> str:
    """
    >>> domain_of("s001.edu.example"), domain_of("flink.example")
    ('edu', 'other')
    """
    label = host.removesuffix(".example").rpartition(".")[2]
    return label if label in {domain.name for domain in TABLE_1} and "." in host.removesuffix(".example") else "other"


def shares(total: int, weights: Floats, minimum: int = 0) -> Ints:
    """Integers in these proportions that sum to the total, none below the minimum.

    >>> shares(10, np.array([1.0, 1.0, 2.0])).tolist(), shares(5, np.array([9.0, 0.1]), minimum=1).tolist()
    ([3, 2, 5], [4, 1])
    """
    exact = weights / weights.sum() * (total - minimum * len(weights))
    whole: Ints = np.floor(exact).astype(np.int64)
    missing = total - minimum * len(weights) - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    whole += minimum
    return whole


def generate_layout(pages: int, rng: np.random.Generator) -> SiteLayout:
    """Sites, directories and URLs of a given number of pages."""
    scale = np.sqrt(min(1.0, pages / PAGES))
    expected = np.array([domain.pages for domain in TABLE_1], float)
    per_domain = shares(pages, expected)
    if not per_domain.all():
        per_domain = shares(pages, expected, minimum=1)
    hosts: list[str] = []
    sizes: list[Ints] = []
    for domain, count in zip(TABLE_1, per_domain.tolist(), strict=True):
        sites = min(count, max(1, round((domain.sites or 1) * scale)))
        hosts += [f"s{number:03}.{domain.name}.example" for number in range(1, sites + 1)]
        sizes.append(shares(count, rng.lognormal(0.0, _SITE_SIZES, sites), minimum=1))
    trees = [_tree(int(size), rng) for size in np.concatenate(sizes)]
    return _join(hosts, trees, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """One site: directories numbered from 0, the root first, and the pages ordered by directory."""

    parent: Ints
    level: Int32s
    folder: Ints


def _tree(pages: int, rng: np.random.Generator) -> _Tree:
    level = np.sort(rng.choice(len(DEPTHS), pages, p=DEPTHS / DEPTHS.sum()))
    level[0] = 0
    level = np.unique(level, return_inverse=True)[1]  # levels without pages are closed up
    parent, levels, folder = [np.array([-1])], [np.zeros(1, np.int32)], [np.zeros(int((level == 0).sum()), np.int64)]
    parents, next_folder = np.zeros(1, np.int64), 1
    for depth in range(1, int(level.max()) + 1):
        count = int((level == depth).sum())
        folders = max(1, round(count / _PAGES_PER_FOLDER))
        level_folders = np.arange(next_folder, next_folder + folders)
        parent.append(rng.choice(parents, folders))
        levels.append(np.full(folders, depth, np.int32))
        folder.append(np.repeat(level_folders, shares(count, rng.lognormal(0.0, _FOLDER_SIZES, folders), minimum=1)))
        parents, next_folder = level_folders, next_folder + folders
    return _Tree(np.concatenate(parent), np.concatenate(levels), np.concatenate(folder))


def _join(hosts: list[str], trees: list[_Tree], rng: np.random.Generator) -> SiteLayout:
    """The trees of all sites as one layout, with URLs."""
    offsets = np.concatenate(([0], np.cumsum([len(tree.parent) for tree in trees])))
    parent = np.concatenate(
        [np.where(tree.parent < 0, -1, tree.parent + offset) for tree, offset in zip(trees, offsets, strict=False)]
    )
    folder = np.concatenate([tree.folder + offset for tree, offset in zip(trees, offsets, strict=False)])
    site = np.repeat(np.arange(len(trees), dtype=np.int32), [len(tree.folder) for tree in trees])
    folders = Directories(parent, np.concatenate([tree.level for tree in trees]))
    index = np.flatnonzero(np.diff(folder, prepend=-1))
    size = np.exp(rng.normal(9.0, 1.0, len(folder))).astype(np.int64)
    return SiteLayout(hosts, site, folder, folders, index, _urls(hosts, site, folder, folders, index), size)


def _urls(hosts: list[str], site: Int32s, folder: Ints, folders: Directories, index: Ints) -> list[str]:
    paths: list[str] = []
    for number, (parent_folder, page) in enumerate(zip(folders.parent.tolist(), index.tolist(), strict=True)):
        paths.append(f"http://{hosts[site[page]]}/" if parent_folder < 0 else f"{paths[parent_folder]}d{number}/")
    first = set(index.tolist())
    return [
        paths[folder_of_page] + ("" if page in first else f"p{page}.html")
        for page, folder_of_page in enumerate(folder.tolist())
    ]


def generate_links(layout: SiteLayout, rng: np.random.Generator) -> LinkGraph:
    """Links of a layout, 7.2 per page in all.

    An index page links to its directory's pages and to the index pages below, every page to its index page and to the
    site's top page. The rest are random, half of them within the directory.
    """
    pages = np.arange(len(layout))
    parent, index = layout.folders.parent, layout.index
    top = index[np.searchsorted(layout.site[index], np.arange(len(layout.hosts)))]
    inner = np.flatnonzero(parent >= 0)
    own = index[layout.folder]
    sources = [own, pages, pages, index[parent[inner]]]
    targets = [pages, own, top[layout.site], index[inner]]
    extra = max(0.0, _LINKS - sum(map(len, sources)) / len(layout))
    source = np.repeat(pages, rng.poisson(extra, len(layout)))
    local = rng.random(len(source)) < _LOCAL_SHARE
    sources += [source[local], source[~local]]
    targets += [_random_member(layout.folder, source[local], rng), _random_member(layout.site, source[~local], rng)]
    pairs = np.unique(np.concatenate(sources) * len(layout) + np.concatenate(targets))
    source, target = pairs // len(layout), pairs % len(layout)
    target, source = target[source != target], source[source != target]
    start = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=len(layout)))))
    return LinkGraph(start, target.astype(np.int32))


def _random_member(group: NDArray[np.integer], pages: Ints, rng: np.random.Generator) -> Ints:
    """A random page of the same group for each page; groups are runs of consecutive page numbers."""
    counts = np.bincount(group)
    first = np.cumsum(counts) - counts
    own_group = group[pages]
    chosen: Ints = first[own_group] + np.floor(rng.random(len(pages)) * counts[own_group]).astype(np.int64)
    return chosen


def clusters_of(layout: SiteLayout, links: LinkGraph, rng: np.random.Generator, kind: Ints | None = None) -> Clusters:
    """Clusters by the features that T names, from words that a page shares with its site and its section or kind."""
    from recrawl.learn.structure import clusters  # lazy: loads slowly
    from recrawl.learn.structure import page_features as features  # lazy: loads slowly

    section = _sections(layout.folders)[layout.folder]
    word_ids = np.column_stack([
        rng.integers(0, _WORDS, (len(layout), 8)),
        _group_words(layout.site, 8, rng),
        _group_words(section + len(layout.hosts) if kind is None else kind, 8 if kind is None else 40, rng),
    ])  # fmt: skip
    page = np.repeat(np.arange(len(layout)), word_ids.shape[1])
    ones = np.ones(word_ids.size, np.float32)
    words = sparse.csr_array((ones, (page, word_ids.ravel())), shape=(len(layout), _WORDS))
    url_ids = np.column_stack((layout.site, section + len(layout.hosts)))
    row_of_word = np.repeat(np.arange(len(layout)), 2)
    url_words = sparse.csr_array((ones[: url_ids.size], (row_of_word, url_ids.ravel())))
    domains = [domain_of(host) for host in layout.hosts]
    facts = features.PageFacts(
        words=words,
        url_words=url_words,
        word_count=layout.size // 10 if kind is None else (layout.size // 10) * 2 ** (kind % 4),
        in_links=np.bincount(links.target, minlength=len(layout)),
        out_links=np.diff(links.start),
        images=rng.poisson(4.0 if kind is None else 2.0 ** (kind % 6), len(layout)),
        tld=np.unique(domains, return_inverse=True)[1].astype(np.int64)[layout.site],
        depth=layout.folders.level[layout.folder].astype(np.int64) + 1,
        size=layout.size,
    )
    clustered: Clusters = clusters.cluster(facts, rng).clusters
    return clustered


def _sections(folders: Directories) -> Ints:
    """One per directory: the first-level directory that it is in; the root is its own section."""
    section = np.arange(len(folders.parent))
    for level in range(2, int(folders.level.max()) + 1):
        level_folders = np.flatnonzero(folders.level == level)
        section[level_folders] = section[folders.parent[level_folders]]
    return section


def _group_words(group: NDArray[np.integer], words: int, rng: np.random.Generator) -> Ints:
    """Words of a group's own small vocabulary, at a random offset in the common one."""
    first = np.random.default_rng(2002).integers(0, _WORDS, int(group.max()) + 1)
    word_ids: Ints = (first[group][:, None] + rng.integers(0, _SITE_WORDS, (len(group), words))) % _WORDS
    return word_ids
