"""T's world, generated: its pages, sites, domains and depths as published; a year of changes; no HTML.

T prints how many pages lie on how many sites of which top-level domain (table 1), roughly how deep (figure 4), and
that they were watched from October 2002 to October 2003. It prints nothing on how often they change or how changes
hang together, which is what its results rest on. `Nature` holds what is assumed instead, each number with its source,
and none was chosen by what the experiments make of it:

- Half of the pages do not change in a year: Ntoulas, Cho and Olston 2004 (T's [16]), on pages of the same WebArchive
  project in the same year that do not disappear.
- How rates vary and changes coincide was measured on 95 real site histories of the present day, most of them
  documentation and project sites, on the first year of each, any new HTML counting as change, before any policy was
  run. Medians over sites: `spread`, `shared`, `inherited`, `by_level`, `taking_part`, `spill`. Means, since medians
  would not add up to a share: `in_bursts` (its median is 0.10). `site_spread` is from the 10 % and 90 % quantiles of
  sites' mean changes. `in_rebuilds` is the figure published with those histories; on this cut of them its mean is
  0.21. `spill` by another count (both directories of three pages or more) is 0.58 up and 0.47 down.
- Which sampling policy wins is sensitive to `site_spread` and `in_rebuilds`, which T does not print: `SITES_ALIKE`
  has neither, and figure 6 shows both worlds.
- 7.2 links a page: Broder et al. 2000.

Pages neither come nor go, since T's list of pages is fixed. Text, images and size tell nothing about change beyond
what the page's place tells.

`together=False` is the control. Every page keeps some page's number of changes, but which one is drawn at random,
and so are all the times: nothing that is true of a page says anything about its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph
from recrawl.columns import DAY, Floats, Int32s, Ints
from recrawl.lab.experiments.tan2007 import layout
from recrawl.lab.experiments.tan2007.layout import Places
from recrawl.lab.experiments.tan2007.published import PAGES
from recrawl.lab.histories.history import History, LinkLists, assemble

DAYS = 365.0
STARTS = 1_033_430_400.0
"""1 October 2002, UTC."""

Events = tuple[Ints, Floats]
"""Pages, and the day on which each changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """How pages change; rates are of the logarithm of a page's changes in a year, see the module's text for sources."""

    never: float = 0.5
    """The share of pages without a change in the year."""
    site_spread: float = 1.4
    """Standard deviation between sites."""
    spread: float = 0.93
    """Standard deviation within a site."""
    shared: float = 0.72
    """The share of the variance within a site that lies between its directories."""
    inherited: float = 0.11
    """Correlation of a directory with the one above it."""
    by_level: float = -0.24
    """What each level further down adds."""
    in_rebuilds: float = 0.27
    """The share of changes that come with a rebuild of the whole site."""
    in_bursts: float = 0.25
    """The share of changes that come as a burst in a directory."""
    taking_part: float = 0.91
    """The chance of a page to change in a burst or rebuild."""
    spill: float = 0.34
    """The chance that a burst takes in the directory above, and as well each directory right below."""
    most: float = 365.0
    """A page's own changes in a year at most: a snapshot a day is the finest that an archive has."""


SITES_ALIKE = Nature(site_spread=0.0, in_rebuilds=0.0)
"""No site changes more than another, and none is rebuilt: what a site-level policy lives on is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TWorld:
    """A generated world by its parameters; `build` makes it, always the same from the same."""

    pages: int = PAGES
    seed: int = 1
    together: bool = True
    clusters: bool = False
    """Whether pages are clustered too; it takes longer."""
    nature: Nature = Nature()

    @property
    def label(self) -> str:
        """What tables and charts call it."""
        if not self.together:
            return "made, pages independent"
        return "made, sites alike" if self.nature == SITES_ALIKE else "made to T's figures"

    def build(self) -> History:
        """The history."""
        rng = np.random.default_rng([self.seed, 2002])
        places = layout.lay_out(self.pages, rng)
        pages, days = changes(places, self.nature, rng)
        if not self.together:
            pages, days = scattered(pages, self.pages, rng)
        links = layout.link_up(places, rng)
        history = _history(places, pages, days, links)
        if not self.clusters:
            return history
        found = layout.clusters_of(places, links, np.random.default_rng([self.seed, 2003]))
        return replace(history, clusters=found, carries=history.carries | {"clusters"})


def changes(places: Places, nature: Nature, rng: np.random.Generator) -> Events:
    """All changes of the year: pages on their own, bursts in directories, rebuilds of sites."""
    rate = _rates(places, nature, rng)
    by_folder, by_site = _means(rate, places.folder), _means(rate, places.site)
    own = np.minimum(rate * (1 - nature.in_bursts - nature.in_rebuilds), nature.most)
    bursts = by_folder * nature.in_bursts / nature.taking_part
    rebuilds = by_site * nature.in_rebuilds / nature.taking_part
    times = _level(places, nature, own, bursts, rebuilds)
    alone = np.repeat(np.arange(len(places)), rng.poisson(np.minimum(own * times, nature.most)))
    parts = [
        (alone, rng.random(len(alone)) * DAYS),
        _in_folders(places, nature, bursts * times, rng),
        _joint(places.site, rng.poisson(rebuilds * times), nature.taking_part, rng),
    ]
    return np.concatenate([pages for pages, _ in parts]), np.concatenate([days for _, days in parts])


def scattered(pages: Ints, total: int, rng: np.random.Generator) -> Events:
    """The control: the same numbers of changes a page, dealt out to pages and days at random."""
    return rng.permutation(total)[pages], rng.random(len(pages)) * DAYS


def _rates(places: Places, nature: Nature, rng: np.random.Generator) -> Floats:
    """Expected changes a year up to a common factor, one per page."""
    folders = places.folders
    between = nature.spread * np.sqrt(nature.shared)
    own = rng.normal(size=len(folders.parent))
    trait = own.copy()
    for level in range(1, int(folders.level.max()) + 1):  # from the top down: those above are done
        here = np.flatnonzero(folders.level == level)
        above = trait[folders.parent[here]]
        trait[here] = nature.inherited * above + np.sqrt(1 - nature.inherited**2) * own[here]
    log = nature.site_spread * rng.normal(size=len(places.hosts))[places.site]
    log += between * trait[places.folder] + nature.by_level * folders.level[places.folder]
    log += nature.spread * np.sqrt(1 - nature.shared) * rng.normal(size=len(places))
    return np.exp(log)


def _level(
    places: Places,
    nature: Nature,
    own: Floats,
    bursts: Floats,
    rebuilds: Floats,
) -> float:
    """The common factor that leaves the wanted share of pages without a change in the year."""
    parent = places.folders.parent
    below = np.bincount(parent[parent >= 0], weights=bursts[parent >= 0], minlength=len(parent))
    above = np.where(parent >= 0, bursts[np.maximum(parent, 0)], 0.0)
    reached = bursts + nature.spill * (below + above)
    joint = nature.taking_part * (reached[places.folder] + rebuilds[places.site])
    low, high = -20.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        never = np.exp(-np.exp(middle) * (own + joint)).mean()
        low, high = (middle, high) if never > nature.never else (low, middle)
    return float(np.exp(middle))


def _in_folders(places: Places, nature: Nature, rate: Floats, rng: np.random.Generator) -> Events:
    """Bursts: a directory, often with the one above it and some of those below."""
    parent = places.folders.parent
    start = np.repeat(np.arange(len(parent)), rng.poisson(rate))
    day = rng.random(len(start)) * DAYS
    up = (rng.random(len(start)) < nature.spill) & (parent[start] >= 0)
    inner = np.flatnonzero(parent >= 0)
    children = rows_of(parent[inner], len(parent))
    which, child = expand(children, start)
    down = rng.random(len(which)) < nature.spill
    folder = np.concatenate((start, parent[start[up]], inner[child[down]]))
    days = np.concatenate((day, day[up], day[which[down]]))
    event, page = expand(rows_of(places.folder, len(parent)), folder)
    part = rng.random(len(page)) < nature.taking_part
    return page[part], days[event[part]]


def _joint(group: Int32s, counts: Ints, share: float, rng: np.random.Generator) -> Events:
    """Events that take in a whole group, each of its pages with a chance."""
    start = np.repeat(np.arange(len(counts)), counts)
    day = rng.random(len(start)) * DAYS
    event, page = expand(rows_of(group, len(counts)), start)
    part = rng.random(len(page)) < share
    return page[part], day[event[part]]


def rows_of(group: NDArray[np.integer], groups: int) -> LinkGraph:
    """The members of each group, as rows.

    >>> rows_of(np.array([1, 0, 1]), 2).of(1).tolist()
    [0, 2]
    """
    counts = np.bincount(group, minlength=groups)
    order = np.argsort(group, kind="stable").astype(np.int32)
    return LinkGraph(np.concatenate(([0], np.cumsum(counts))), order)


def expand(rows: LinkGraph, chosen: Ints) -> tuple[Ints, Ints]:
    """The members of several rows one after another, each with the place of its row among the chosen.

    >>> [part.tolist() for part in expand(rows_of(np.array([1, 0, 1]), 2), np.array([1, 0, 1]))]
    [[0, 0, 1, 2, 2], [0, 2, 1, 0, 2]]
    """
    counts = rows.start[chosen + 1] - rows.start[chosen]
    place = np.repeat(np.arange(len(chosen)), counts)
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, rows.target[rows.start[chosen][place] + inside].astype(np.int64)


def _means(values: Floats, group: NDArray[np.integer]) -> Floats:
    return np.bincount(group, weights=values) / np.maximum(np.bincount(group), 1)


def _history(places: Places, pages: Ints, days: Floats, links: LinkGraph) -> History:
    """Rows from changes: every page has a first version, every change makes a new one."""
    page = np.concatenate((np.arange(len(places)), pages))
    time = np.concatenate((np.zeros(len(places)), np.ceil(days * DAY)))
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    urls: Sequence[str] = places.urls
    return assemble(
        urls,
        page,
        STARTS + time,
        np.arange(len(page)),
        change="made",
        carries=frozenset(),
        size=places.size[page],
        links=LinkLists(page.astype(np.int32), links.start, links.target),
    )
