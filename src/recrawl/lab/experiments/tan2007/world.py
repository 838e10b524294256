"""T's world, generated: pages, sites, domains and depths as published; one year of changes; no HTML.

T prints how many pages are on how many sites of which top-level domain (table 1), roughly how deep they are (figure 4),
and that they were observed from October 2002 to October 2003. It prints nothing on how often pages change or how
changes coincide, on which its results depend. `ChangeProcess` holds the assumptions instead, each number with its
source; none was chosen by its effect on the experiments:

- Half of the pages do not change in a year: Ntoulas, Cho and Olston 2004 (T's [16]), on pages of the same WebArchive
  project in the same year that do not disappear.
- Variation of rates and coincidence of changes were measured on 95 real site histories of the present day, most of
  them documentation and project sites, on the first year of each, counting any new HTML as change, before any policy
  was run. Medians over sites: `spread`, `shared`, `inherited`, `by_level`, `participation`, `spill`. Means, since
  medians would not add up to a share: `in_bursts` (its median is 0.10). `site_spread` is from the 10 % and 90 %
  quantiles of sites' mean changes. `in_rebuilds` is the figure published with those histories; its mean on this subset
  is 0.21. `spill` counted differently (both directories of three pages or more) is 0.58 up and 0.47 down.
- Which sampling policy wins is sensitive to `site_spread` and `in_rebuilds`, which T does not print. `SITES_ALIKE` has
  neither, and figure 6 shows both worlds.
- 7.2 links per page: Broder et al. 2000.

Pages neither appear nor disappear, since T's list of pages is fixed. Text, images and size carry no information about
change beyond the page's location, so this world cannot tell whether clusters by content work. `TEXT_TELLS` can: there a
page's kind, which its words show, takes the part of its directory: the same variance, but between kinds; sites are
alike, and nothing changes together. That is as much as text could tell; no source says how much it does. The kinds
were made visible before any policy was run on this world: 20 kinds that differ in words only left clusters with 16 to
44 % of the variance between kinds; with 10 kinds that also differ in images and length (T §4.3) it is 39 to 83 %, more
than directories explain, in six worlds of 3,000 and 20,000 pages.

`together=False` is the control. The numbers of changes per page are kept, but assigned to random pages, and all times
are random, so nothing about a page says anything about its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph
from recrawl.columns import DAY, Floats, Int32s, Ints
from recrawl.lab.experiments.tan2007 import layout
from recrawl.lab.experiments.tan2007.layout import SiteLayout
from recrawl.lab.experiments.tan2007.published import PAGES
from recrawl.lab.histories.history import History, LinkLists, assemble

DAYS = 365.0
"""Days of the observed year."""
START = 1_033_430_400.0
"""1 October 2002, UTC."""

Events = tuple[Ints, Floats]
"""Pages, and the day on which each changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeProcess:
    """How pages change. Spreads are of the logarithm of a page's changes per year; the module names the sources."""

    unchanged: float = 0.5
    """The share of pages without a change in the year."""
    site_spread: float = 1.4
    """Standard deviation between sites."""
    spread: float = 0.93
    """Standard deviation within a site."""
    shared: float = 0.72
    """The share of the variance within a site that lies between its directories."""
    inherited: float = 0.11
    """Correlation of a directory with its parent directory."""
    by_level: float = -0.24
    """Added per directory level."""
    in_rebuilds: float = 0.27
    """The share of changes that come with a rebuild of the whole site."""
    in_bursts: float = 0.25
    """The share of changes that come in a burst within a directory."""
    participation: float = 0.91
    """The probability that a page changes in a burst or rebuild."""
    spill: float = 0.34
    """The probability that a burst extends to the parent directory, and to each direct subdirectory."""
    kinds: int = 0
    """Kinds of pages, on all sites, each with its own words; with kinds, `shared` is the variance between kinds."""
    max_changes: float = 365.0
    """Maximum of a page's own changes per year: archives have at most one snapshot a day."""


SITES_ALIKE = ChangeProcess(site_spread=0.0, in_rebuilds=0.0)
"""All sites change at the same rates, and none is rebuilt, so site-level policies have nothing to exploit."""

TEXT_TELLS = ChangeProcess(kinds=10, site_spread=0.0, in_rebuilds=0.0, in_bursts=0.0)
"""Change follows what a page is about, on whatever site and in whatever directory it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TWorld:
    """Parameters of a generated world; `build` always gives the same world for the same parameters."""

    pages: int = PAGES
    seed: int = 1
    together: bool = True
    clusters: bool = False
    """Whether to cluster pages too, which takes longer."""
    process: ChangeProcess = ChangeProcess()

    @property
    def label(self) -> str:
        """Its name in tables and charts."""
        if not self.together:
            return "made, pages independent"
        labels = {SITES_ALIKE: "made, sites alike", TEXT_TELLS: "made, text tells"}
        return labels.get(self.process, "made to T's figures")

    def build(self) -> History:
        """Generate the history."""
        rng = np.random.default_rng([self.seed, 2002])
        site_layout = layout.generate_layout(self.pages, rng)
        kind = np.random.default_rng([self.seed, 2004]).integers(0, max(1, self.process.kinds), self.pages)
        pages, days = generate_changes(site_layout, self.process, rng, kind)
        if not self.together:
            pages, days = scatter(pages, self.pages, rng)
        links = layout.generate_links(site_layout, rng)
        history = _history(site_layout, pages, days, links)
        if not self.clusters:
            return history
        words = kind if self.process.kinds else None
        clustered = layout.clusters_of(site_layout, links, np.random.default_rng([self.seed, 2003]), words)
        return replace(history, clusters=clustered, carries=history.carries | {"clusters"})


def generate_changes(
    site_layout: SiteLayout, process: ChangeProcess, rng: np.random.Generator, kind: Ints | None = None
) -> Events:
    """All changes of the year: single pages, bursts in directories, rebuilds of sites."""
    rate = _rates(site_layout, process, rng, kind)
    by_folder, by_site = _means(rate, site_layout.folder), _means(rate, site_layout.site)
    own = np.minimum(rate * (1 - process.in_bursts - process.in_rebuilds), process.max_changes)
    bursts = by_folder * process.in_bursts / process.participation
    rebuilds = by_site * process.in_rebuilds / process.participation
    factor = _rate_factor(site_layout, process, own, bursts, rebuilds)
    own_events = np.repeat(np.arange(len(site_layout)), rng.poisson(np.minimum(own * factor, process.max_changes)))
    parts = [
        (own_events, rng.random(len(own_events)) * DAYS),
        _bursts(site_layout, process, bursts * factor, rng),
        _group_events(site_layout.site, rng.poisson(rebuilds * factor), process.participation, rng),
    ]
    return np.concatenate([pages for pages, _ in parts]), np.concatenate([days for _, days in parts])


def scatter(pages: Ints, total: int, rng: np.random.Generator) -> Events:
    """The control: the same numbers of changes per page, assigned to random pages and days."""
    return rng.permutation(total)[pages], rng.random(len(pages)) * DAYS


def _rates(site_layout: SiteLayout, process: ChangeProcess, rng: np.random.Generator, kind: Ints | None) -> Floats:
    """Expected changes per year up to a common factor, one per page."""
    folders = site_layout.folders
    between = process.spread * np.sqrt(process.shared)
    own = rng.normal(size=len(folders.parent))
    folder_trait = own.copy()
    for level in range(1, int(folders.level.max()) + 1):  # top down, so that parents come first
        here = np.flatnonzero(folders.level == level)
        above = folder_trait[folders.parent[here]]
        folder_trait[here] = process.inherited * above + np.sqrt(1 - process.inherited**2) * own[here]
    log = process.site_spread * rng.normal(size=len(site_layout.hosts))[site_layout.site]
    trait = (
        rng.normal(size=process.kinds)[kind] if kind is not None and process.kinds else folder_trait[site_layout.folder]
    )
    log += between * trait + process.by_level * folders.level[site_layout.folder]
    log += process.spread * np.sqrt(1 - process.shared) * rng.normal(size=len(site_layout))
    return np.exp(log)


def _rate_factor(
    site_layout: SiteLayout,
    process: ChangeProcess,
    own: Floats,
    bursts: Floats,
    rebuilds: Floats,
) -> float:
    """The common factor that leaves the given share of pages unchanged over the year."""
    parent = site_layout.folders.parent
    below = np.bincount(parent[parent >= 0], weights=bursts[parent >= 0], minlength=len(parent))
    above = np.where(parent >= 0, bursts[np.maximum(parent, 0)], 0.0)
    reached = bursts + process.spill * (below + above)
    in_groups = process.participation * (reached[site_layout.folder] + rebuilds[site_layout.site])
    low, high = -20.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        unchanged = np.exp(-np.exp(middle) * (own + in_groups)).mean()
        low, high = (middle, high) if unchanged > process.unchanged else (low, middle)
    return float(np.exp(middle))


def _bursts(site_layout: SiteLayout, process: ChangeProcess, rate: Floats, rng: np.random.Generator) -> Events:
    """Bursts: a directory, often with its parent and some of its subdirectories."""
    parent = site_layout.folders.parent
    start = np.repeat(np.arange(len(parent)), rng.poisson(rate))
    day = rng.random(len(start)) * DAYS
    spill_up = (rng.random(len(start)) < process.spill) & (parent[start] >= 0)
    subfolders = np.flatnonzero(parent >= 0)
    children = rows_of(parent[subfolders], len(parent))
    which, child = expand(children, start)
    spill_down = rng.random(len(which)) < process.spill
    folder = np.concatenate((start, parent[start[spill_up]], subfolders[child[spill_down]]))
    days = np.concatenate((day, day[spill_up], day[which[spill_down]]))
    event, page = expand(rows_of(site_layout.folder, len(parent)), folder)
    taking = rng.random(len(page)) < process.participation
    return page[taking], days[event[taking]]


def _group_events(group: Int32s, counts: Ints, share: float, rng: np.random.Generator) -> Events:
    """Events of a whole group, in which each page takes part with probability `share`."""
    start = np.repeat(np.arange(len(counts)), counts)
    day = rng.random(len(start)) * DAYS
    event, page = expand(rows_of(group, len(counts)), start)
    taking = rng.random(len(page)) < share
    return page[taking], day[event[taking]]


def rows_of(group: NDArray[np.integer], groups: int) -> LinkGraph:
    """The members of each group, as rows.

    >>> rows_of(np.array([1, 0, 1]), 2).of(1).tolist()
    [0, 2]
    """
    counts = np.bincount(group, minlength=groups)
    order = np.argsort(group, kind="stable").astype(np.int32)
    return LinkGraph(np.concatenate(([0], np.cumsum(counts))), order)


def expand(rows: LinkGraph, chosen: Ints) -> tuple[Ints, Ints]:
    """The members of several rows one after another, each with the index of its row among the chosen.

    >>> [part.tolist() for part in expand(rows_of(np.array([1, 0, 1]), 2), np.array([1, 0, 1]))]
    [[0, 0, 1, 2, 2], [0, 2, 1, 0, 2]]
    """
    counts = rows.start[chosen + 1] - rows.start[chosen]
    place = np.repeat(np.arange(len(chosen)), counts)
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, rows.target[rows.start[chosen][place] + inside].astype(np.int64)


def _means(values: Floats, group: NDArray[np.integer]) -> Floats:
    return np.bincount(group, weights=values) / np.maximum(np.bincount(group), 1)


def _history(site_layout: SiteLayout, pages: Ints, days: Floats, links: LinkGraph) -> History:
    """Rows from changes: every page has a first version, and every change adds one."""
    page = np.concatenate((np.arange(len(site_layout)), pages))
    time = np.concatenate((np.zeros(len(site_layout)), np.ceil(days * DAY)))
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    urls: Sequence[str] = site_layout.urls
    return assemble(
        urls,
        page,
        START + time,
        np.arange(len(page)),
        change="made",
        carries=frozenset(),
        size=site_layout.size[page],
        links=LinkLists(page.astype(np.int32), links.start, links.target),
    )
