"""Where the pages of T's world lie: sites and domains by table 1, directories, links, and what pages are like.

Depths are the distribution of 95 real site histories, cut at 8; it has what T says of its own (most at 2 to 4, few
at 7 and 8). The same histories have 7.5 pages a directory. Smaller worlds have fewer sites *and* smaller ones, each by
the square root of the scale, so that neither becomes a caricature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.columns import Floats, Int32s, Ints
from recrawl.lab.experiments.tan2007.published import PAGES, TABLE_1

DEPTHS = np.array([0.139, 0.236, 0.225, 0.185, 0.09, 0.072, 0.023, 0.018])
"""The share of pages with 1, 2, ... 8 slashes in the path."""
_PAGES_PER_FOLDER = 7.5
_SITE_SIZES = 0.6
"""Standard deviation of the logarithm of sites' sizes within a domain; T prints only their means."""
_FOLDER_SIZES = 1.0
_LINKS = 7.2
_NEAR = 0.5
"""The share of the further links that stay in the directory."""
_WORDS, _SITE_WORDS = 4000, 200


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The pages of a world, before anything happens on it. The first page of a directory is its index."""

    hosts: list[str]
    site: Int32s
    folder: Ints
    folders: Directories
    index: Ints
    """One per directory: its index page."""
    urls: list[str]
    size: Ints

    def __len__(self) -> int:
        """How many pages there are."""
        return len(self.site)


def domain_of(host: str) -> str:
    """
    >>> domain_of("s001.edu.example"), domain_of("flink.example")
    ('edu', 'other')
    """
    label = host.removesuffix(".example").rpartition(".")[2]
    return label if label in {domain.name for domain in TABLE_1} and "." in host.removesuffix(".example") else "other"


def shares(total: int, weights: Floats, least: int = 0) -> Ints:
    """Whole numbers in these proportions that add up to the total, none under the least.

    >>> shares(10, np.array([1.0, 1.0, 2.0])).tolist(), shares(5, np.array([9.0, 0.1]), least=1).tolist()
    ([3, 2, 5], [4, 1])
    """
    exact = weights / weights.sum() * (total - least * len(weights))
    whole: Ints = np.floor(exact).astype(np.int64)
    missing = total - least * len(weights) - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    whole += least
    return whole


def lay_out(pages: int, rng: np.random.Generator) -> Places:
    """Sites, directories and addresses of so many pages."""
    scale = np.sqrt(min(1.0, pages / PAGES))
    wanted = np.array([domain.pages for domain in TABLE_1], float)
    per_domain = shares(pages, wanted)
    if not per_domain.all():
        per_domain = shares(pages, wanted, least=1)
    hosts: list[str] = []
    sizes: list[Ints] = []
    for domain, count in zip(TABLE_1, per_domain.tolist(), strict=True):
        sites = min(count, max(1, round((domain.sites or 1) * scale)))
        hosts += [f"s{number:03}.{domain.name}.example" for number in range(1, sites + 1)]
        sizes.append(shares(count, rng.lognormal(0.0, _SITE_SIZES, sites), least=1))
    trees = [_tree(int(size), rng) for size in np.concatenate(sizes)]
    return _joined(hosts, trees, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """One site: directories numbered from 0, the top first, and the pages in order of directories."""

    parent: Ints
    level: Int32s
    folder: Ints


def _tree(pages: int, rng: np.random.Generator) -> _Tree:
    level = np.sort(rng.choice(len(DEPTHS), pages, p=DEPTHS / DEPTHS.sum()))
    level[0] = 0
    level = np.unique(level, return_inverse=True)[1]  # no level without a page over one with pages
    parent, levels, folder = [np.array([-1])], [np.zeros(1, np.int32)], [np.zeros(int((level == 0).sum()), np.int64)]
    above, number = np.zeros(1, np.int64), 1
    for depth in range(1, int(level.max()) + 1):
        count = int((level == depth).sum())
        folders = max(1, round(count / _PAGES_PER_FOLDER))
        here = np.arange(number, number + folders)
        parent.append(rng.choice(above, folders))
        levels.append(np.full(folders, depth, np.int32))
        folder.append(np.repeat(here, shares(count, rng.lognormal(0.0, _FOLDER_SIZES, folders), least=1)))
        above, number = here, number + folders
    return _Tree(np.concatenate(parent), np.concatenate(levels), np.concatenate(folder))


def _joined(hosts: list[str], trees: list[_Tree], rng: np.random.Generator) -> Places:
    """The sites' trees as one, with addresses."""
    offsets = np.concatenate(([0], np.cumsum([len(tree.parent) for tree in trees])))
    parent = np.concatenate(
        [np.where(tree.parent < 0, -1, tree.parent + offset) for tree, offset in zip(trees, offsets, strict=False)]
    )
    folder = np.concatenate([tree.folder + offset for tree, offset in zip(trees, offsets, strict=False)])
    site = np.repeat(np.arange(len(trees), dtype=np.int32), [len(tree.folder) for tree in trees])
    folders = Directories(parent, np.concatenate([tree.level for tree in trees]))
    index = np.flatnonzero(np.diff(folder, prepend=-1))
    size = np.exp(rng.normal(9.0, 1.0, len(folder))).astype(np.int64)
    return Places(hosts, site, folder, folders, index, _urls(hosts, site, folder, folders, index), size)


def _urls(hosts: list[str], site: Int32s, folder: Ints, folders: Directories, index: Ints) -> list[str]:
    paths: list[str] = []
    for number, (mother, page) in enumerate(zip(folders.parent.tolist(), index.tolist(), strict=True)):
        paths.append(f"http://{hosts[site[page]]}/" if mother < 0 else f"{paths[mother]}d{number}/")
    first = set(index.tolist())
    return [paths[at] + ("" if page in first else f"p{page}.html") for page, at in enumerate(folder.tolist())]


def link_up(places: Places, rng: np.random.Generator) -> LinkGraph:
    """Links: an index to its directory's pages and the indexes below it, every page to its index and the site's top,
    and further ones, to 7.2 a page in all, half of them within the directory.
    """
    pages = np.arange(len(places))
    parent, index = places.folders.parent, places.index
    top = index[np.searchsorted(places.site[index], np.arange(len(places.hosts)))]
    inner = np.flatnonzero(parent >= 0)
    own = index[places.folder]
    sources = [own, pages, pages, index[parent[inner]]]
    targets = [pages, own, top[places.site], index[inner]]
    further = max(0.0, _LINKS - sum(map(len, sources)) / len(places))
    source = np.repeat(pages, rng.poisson(further, len(places)))
    near = rng.random(len(source)) < _NEAR
    sources += [source[near], source[~near]]
    targets += [_one_of(places.folder, source[near], rng), _one_of(places.site, source[~near], rng)]
    pairs = np.unique(np.concatenate(sources) * len(places) + np.concatenate(targets))
    source, target = pairs // len(places), pairs % len(places)
    target, source = target[source != target], source[source != target]
    start = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=len(places)))))
    return LinkGraph(start, target.astype(np.int32))


def _one_of(group: NDArray[np.integer], pages: Ints, rng: np.random.Generator) -> Ints:
    """A page of the same group for each; groups are runs of neighbouring page numbers."""
    counts = np.bincount(group)
    first = np.cumsum(counts) - counts
    mine = group[pages]
    chosen: Ints = first[mine] + np.floor(rng.random(len(pages)) * counts[mine]).astype(np.int64)
    return chosen


def clusters_of(places: Places, links: LinkGraph, rng: np.random.Generator) -> Clusters:
    """Clusters by the features that T names, from words that a page shares with its section and its site."""
    # The clustering needs scikit-learn, which is slow to load and which most experiments do without.
    from scipy import sparse  # lazy: loads slowly

    from recrawl.learn.structure import clusters  # lazy: loads slowly
    from recrawl.learn.structure import page_features as features  # lazy: loads slowly

    section = _sections(places.folders)[places.folder]
    drawn = np.column_stack([
        rng.integers(0, _WORDS, (len(places), 8)),
        _spread(places.site, 8, rng),
        _spread(section + len(places.hosts), 8, rng),
    ])  # fmt: skip
    page = np.repeat(np.arange(len(places)), drawn.shape[1])
    ones = np.ones(drawn.size, np.float32)
    words = sparse.csr_array((ones, (page, drawn.ravel())), shape=(len(places), _WORDS))
    address = np.column_stack((places.site, section + len(places.hosts)))
    named = np.repeat(np.arange(len(places)), 2)
    url_words = sparse.csr_array((ones[: address.size], (named, address.ravel())))
    domains = [domain_of(host) for host in places.hosts]
    facts = features.PageFacts(
        words=words,
        url_words=url_words,
        word_count=places.size // 10,
        in_links=np.bincount(links.target, minlength=len(places)),
        out_links=np.diff(links.start),
        images=rng.poisson(4.0, len(places)),
        tld=np.unique(domains, return_inverse=True)[1].astype(np.int64)[places.site],
        depth=places.folders.level[places.folder].astype(np.int64) + 1,
        size=places.size,
    )
    found: Clusters = clusters.cluster(facts, rng).clusters
    return found


def _sections(folders: Directories) -> Ints:
    """One per directory: the directory right below the site's top that it is in, itself at the top."""
    section = np.arange(len(folders.parent))
    for level in range(2, int(folders.level.max()) + 1):
        here = np.flatnonzero(folders.level == level)
        section[here] = section[folders.parent[here]]
    return section


def _spread(group: NDArray[np.integer], words: int, rng: np.random.Generator) -> Ints:
    """Words of a group's own small vocabulary, which lies anywhere in the common one."""
    first = np.random.default_rng(2002).integers(0, _WORDS, int(group.max()) + 1)
    drawn: Ints = (first[group][:, None] + rng.integers(0, _SITE_WORDS, (len(group), words))) % _WORDS
    return drawn
