"""The history of web pages as columns.

A *row* states that a page has a `version` from its `time` on; equal numbers are equal content, and `ABSENT` is a
missing page. The rows of page p are `first[p] .. first[p + 1] - 1`, in order of time. A history comes from an archive
of HTML under any definition of change, from a listing of digests, or from a generator without HTML. `carries` names
what it has beyond rows (text, links, ...); a replay refuses a policy that needs more.

Each site has its own clock: `time` is in seconds since the site's first row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph, PageWords
from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints
from recrawl.compare.divergence import distance, divergence
from recrawl.compare.levels import FILE_PREFIXES, NAMES, ChangeLevel, parse_level
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.significance import significant_many
from recrawl.compare.terms import Vocabulary, counts
from recrawl.discover.urls import canonical, key
from recrawl.errors import BadArchive, Unreadable, UsageError
from recrawl.extras import pq, sparse
from recrawl.lab.formats.page_facts import Facts, file_name, from_cache, pool_of, to_cache
from recrawl.lab.histories.content_walk import content_steps
from recrawl.learn.shocks.url_templates import url_templates
from recrawl.learn.structure.directories import places

ABSENT = -1
"""The version of a missing page."""
HOSTILE, LIES = "hostile", "lies"
"""Columns of `History.facts`: 1 for the pages of an adversary, and for those whose sitemap says that they changed just
now."""


@dataclass(frozen=True, slots=True)
class LinkLists:
    """The links of every row. Most versions keep their links, so equal lists are stored once and referred to by number.

    Targets are page numbers; links that lead out of the history are omitted.
    """

    of_row: Int32s
    """Per row: the number of its list."""
    start: Ints
    target: Int32s

    def at(self, lists: Int32s) -> LinkGraph:
        """Return the link graph of pages, given each page's list; -1 is a page without links."""
        safe = np.maximum(lists, 0)
        counts = np.where(lists >= 0, self.start[safe + 1] - self.start[safe], 0)
        start = np.concatenate(([0], np.cumsum(counts)))
        inside = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        return LinkGraph(start, self.target[np.repeat(self.start[safe], counts) + inside])


@dataclass(frozen=True, slots=True, eq=False)
class VersionWords:
    """The words of every row; versions with the same text share one row of `bags`."""

    of_row: Int32s
    """Per row: its row in `bags`."""
    bags: sparse.csr_array
    """Text by word, hashed (see `recrawl.compare.terms`): counts."""

    def of(self, pages: Ints, rows: Ints) -> PageWords:
        """Return the words of pages, in ascending order, each at one of its rows."""
        counts = self.bags[self.of_row[rows]]
        return PageWords(pages, counts.indptr.astype(np.int64), counts.indices, counts.data)


@dataclass(frozen=True, eq=False)
class History:
    """The versions of all pages over time. `History.read` reads one from archives, `assemble` builds one from rows."""

    urls: Sequence[str]
    sites: list[str]
    site: Int32s
    """Per page: the number of its site."""
    folder: Ints
    """Per page: the number of its directory in `folders`."""
    folders: Directories
    form: Ints
    """Per page: the number of its URL template."""
    first: Ints
    time: Floats
    version: Ints
    size: Ints
    """Per row: bytes."""
    change: str
    """What counts as change: raw, text or any level of change (see `compare.levels`)."""
    carries: frozenset[str]
    begins: Floats
    """Per site: the time of its first row, in seconds since 1970, UTC."""
    links: LinkLists | None = None
    clusters: Clusters | None = None
    words: VersionWords | None = None
    weight: Floats | None = None
    """Per page: its weight (importance), if known."""
    prior: Float32s | None = None
    """Per page: its change prior (see `compare.change_prior`) from its first version, if known."""
    facts: dict[str, Floats] = field(default_factory=dict)
    """Further columns over pages, by name, for experiments."""

    @classmethod
    def read(
        cls,
        paths: str | Path | Iterable[str | Path],
        change: str = "text",
        *,
        cache: str | Path | None = None,
        clusters: bool = False,
        words: bool = False,
        workers: int | None = 1,
    ) -> History:
        """Read archives: Parquet files, folders of them, or CDX listings.

        Parameters
        ----------
        paths
            One path or several.
        change
            What counts as change: `text`, `raw`, `content`, `significant`, `divergence:X` (share), `words:N`,
            `new-link`, `out-link`, `relevance:FILE` or `relevance-both:FILE`.
        cache
            Folder in which the facts read from an archive are kept; the next read of the same archive is fast.
        clusters
            Whether to cluster similar pages, which the policy `sampling(neighbours=clusters)` needs.
        words
            Whether to count the words of all versions, which `predicted(method=3d)` and its like need.
        workers
            Processes, None for one per core. A script that asks for more than one needs the guard
            `if __name__ == "__main__":`.
        """
        from recrawl.lab.histories.opening import open_history  # lazy: that module imports this one

        given = [paths] if isinstance(paths, str | Path) else paths
        folder = None if cache is None else Path(cache)
        return open_history(
            [Path(path) for path in given], change, folder, clusters=clusters, words=words, workers=workers
        )

    def __len__(self) -> int:
        """Number of pages."""
        return len(self.site)

    @property
    def page_of(self) -> Ints:
        """Per row: its page."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def span(self) -> float:
        """Seconds from the first row to the last of the longest site."""
        return float(self.time.max())


def assemble(
    urls: Sequence[str],
    page: Ints,
    time: Floats,
    version: Ints,
    *,
    change: str,
    carries: frozenset[str],
    size: Ints | None = None,
    links: LinkLists | None = None,
    clusters: Clusters | None = None,
    weight: Floats | None = None,
) -> History:
    """Build a history from rows sorted by page and time, with times in seconds since 1970.

    >>> history = assemble(["http://a.example/x/", "http://a.example/x/y"], np.array([0, 0, 1]),
    ...     np.array([50.0, 80.0, 60.0]), np.array([7, 8, 7]), change="text", carries=frozenset())
    >>> history.time.tolist(), history.sites, history.folder.tolist(), history.folders.level.tolist()
    ([0.0, 30.0, 10.0], ['a.example'], [1, 1], [0, 1])
    """
    _check_rows(len(urls), page, time)
    sites, site, folder, folders = places(urls)
    begins = np.full(len(sites), np.inf)
    np.minimum.at(begins, site[page], time)
    return History(
        urls=urls,
        sites=sites,
        site=site,
        folder=folder,
        folders=folders,
        form=url_templates(urls),
        first=np.append(np.flatnonzero(np.diff(page, prepend=-1)), len(page)).astype(np.int64),
        time=time - begins[site[page]],
        version=version,
        size=np.zeros(len(page), np.int64) if size is None else size,
        change=change,
        carries=carries
        | {"folders", "forms"}
        | ({"links", "arrivals"} if links else set())
        | ({"clusters"} if clusters else set()),
        begins=begins,
        links=links,
        clusters=clusters,
        weight=weight,
    )


def _check_rows(pages: int, page: Ints, time: Floats) -> None:
    if not len(page):
        raise BadArchive("the history has no rows")
    step = np.diff(page)
    if len(np.unique(page)) != pages or (step < 0).any() or (np.diff(time)[step == 0] < 0).any():
        raise BadArchive("invalid history: rows must be sorted by page and time, and every page needs at least one")


def without_start(history: History, seconds: float) -> History:
    """Cut `seconds` off each site's start, as after tuning on it; omit pages that are gone by then for good."""
    owner = history.page_of
    past = history.time <= seconds
    superseded = past & np.append((owner[1:] == owner[:-1]) & past[1:], False)  # superseded before the new start
    there = ~superseded & (history.version != ABSENT)
    kept = ~superseded & ~(past & ~there) & np.isin(owner, owner[there])
    if not there.any() or seconds >= history.span:
        raise UsageError(f"cannot skip {seconds / DAY:.3g} days: the archives last {history.span / DAY:.3g} days")
    rest = select_rows(history, kept)
    return replace(rest, time=np.maximum(rest.time - seconds, 0.0), begins=history.begins + seconds)


def select_rows(history: History, kept: Flags) -> History:
    """Return a history of the kept rows, without the pages that have none; sites keep their numbers."""
    rows = np.bincount(history.page_of[kept], minlength=len(history))
    pages = np.flatnonzero(rows)
    return replace(
        history,
        urls=[history.urls[page] for page in pages.tolist()],
        site=history.site[pages],
        folder=history.folder[pages],
        form=history.form[pages],
        first=np.concatenate(([0], np.cumsum(rows[pages]))),
        time=history.time[kept],
        version=history.version[kept],
        size=history.size[kept],
        links=_renumbered(history.links, kept, pages, len(history)) if history.links else None,
        clusters=Clusters(history.clusters.of[pages], history.clusters.nearest) if history.clusters else None,
        words=VersionWords(history.words.of_row[kept], history.words.bags) if history.words else None,
        weight=None if history.weight is None else history.weight[pages],
        prior=None if history.prior is None else history.prior[pages],
        facts={name: column[pages] for name, column in history.facts.items()},
    )


def _renumbered(links: LinkLists, kept: Flags, pages: Ints, total: int) -> LinkLists:
    """Return the lists of the kept rows with the new page numbers, without links to other pages."""
    number = np.full(total, -1, np.int32)
    number[pages] = np.arange(len(pages))
    target = number[links.target]
    before = np.concatenate(([0], np.cumsum(target >= 0)))
    return LinkLists(links.of_row[kept], before[links.start], target[target >= 0])


# --------------------------------------------------------------------------------------------------------------------
# Which versions differ enough from the one before, by a level of change (see `compare.levels`).
#
# Each step counts by itself: many small steps do not add up to a large one. Only steps that change the text are tested,
# but for links, which are known from the facts; the results are cached beside the facts. In an archive, a link is new
# (spec C3) where no version before it, on any page of the archive, had a link to its target, and where its target is no
# page that was there before.


_CACHE_FORMAT = "steps 2"
_BATCH_ROWS = 1000
_MAX_TEXT = 200_000
"""Longer texts are cut to this length."""


def step_level(change: str) -> ChangeLevel:
    """Return the level of change of the steps between versions; every step counts for `text` and `raw`.

    >>> step_level("divergence:0.1").least, step_level("new-link").kind
    (0.1, 'new-link')
    """
    if change == "text" or change == "raw":  # noqa: PLR1714
        raise UsageError(f"every step counts for '{change}'")
    level = (
        parse_level(change) if change.startswith(FILE_PREFIXES) else None
    )  # its error says what is wrong with a file
    with contextlib.suppress(UsageError):
        level = level or parse_level(change)
    if level is None or level.plugin:
        raise UsageError(f"invalid change '{change}'; use {NAMES.replace('text,', 'text, raw,')}")
    return level


def steps_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    change: str,
    cache: Path | None,
    progress: Callable[[int, int], None],
    *,
    workers: int | None = None,
) -> list[Flags]:
    """Mark the rows of each file that differ enough from the version before on the same page."""
    level = step_level(change)
    if level.of_links:
        return link_steps(facts, known=level.kind == "new-link")
    total, done = sum(map(len, facts)), 0
    found = []
    named = f"{_CACHE_FORMAT} {level.kind} {level.queries}" if level.queries else f"{_CACHE_FORMAT} {change}"
    with pool_of(workers, len(files), total) as pool:
        names = [cache / f"{file_name(file, named)}.npz" if cache else None for file in files]
        cached = [from_cache(name) for name in names]
        pending = [
            None if known else pool.submit(_steps_of_file, file, item.text, change)
            for file, item, known in zip(files, facts, cached, strict=True)
        ]
        for name, known, task in zip(names, cached, pending, strict=True):
            columns = known or {"steps": task.result()}  # type: ignore[union-attr]
            if not known:
                to_cache(name, columns)
            found.append(columns["steps"])
            done += len(columns["steps"])
            progress(done, total)
    return found


def _steps_of_file(file: Path, digest: Ints, change: str) -> Flags:
    """Mark the rows of one file."""
    level = step_level(change)
    if level.kind == "content":
        return content_steps(file, digest)
    table = pq.read_table(file, columns=["url", "time", "html"])
    url = table["url"].combine_chunks().dictionary_encode().indices.to_numpy()
    time = table["time"].to_numpy()
    order = np.lexsort((time, url))
    twice = (np.diff(url[order]) == 0) & (np.diff(time[order]) == 0)
    order = order[np.append(~twice, True)]  # the last of equal rows counts, as in the history
    same = np.diff(url[order]) == 0
    before, after = order[:-1][same], order[1:][same]
    changed = (digest[before] != digest[after]) & (digest[before] != 0) & (digest[after] != 0)
    steps = np.zeros(len(digest), bool)
    # A birth, a removal and a reappearance always count.
    steps[after[(digest[before] == 0) != (digest[after] == 0)]] = True
    before, after = before[changed], after[changed]
    html = table["html"]
    for start in range(0, len(after), _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        old = [_text(html[int(row)].as_py()) for row in before[part]]
        new = [_text(html[int(row)].as_py()) for row in after[part]]
        steps[after[part]] = _differ(old, new, level)
    return steps


def _differ(old: list[str], new: list[str], level: ChangeLevel) -> Flags:
    if level.kind == "divergence":
        return np.array([divergence(a, b) >= level.least for a, b in zip(old, new, strict=True)], bool)
    if level.queries:
        return np.array([level.differs_in_relevance(a, b) for a, b in zip(old, new, strict=True)], bool)
    if level.kind == "words":
        return np.array([distance(a, b)[0] >= level.least for a, b in zip(old, new, strict=True)], bool)
    known = Vocabulary()
    return significant_many(counts(old, known), counts(new, known), np.ones(len(old), bool))


def link_steps(facts: Sequence[Facts], *, known: bool) -> list[Flags]:
    """Mark the rows of each file that bring a link: to an unknown page (`known`), or one that the page did not have."""
    shift = np.cumsum([0, *(len(part.link_start) - 1 for part in facts[:-1])])
    lists = np.concatenate([part.links + more for part, more in zip(facts, shift, strict=True)]).astype(np.int64)
    lengths = np.concatenate([np.diff(part.link_start) for part in facts])
    names, target = np.unique(np.concatenate([part.link_key for part in facts]), return_inverse=True)
    urls, page = np.unique(np.concatenate([part.url for part in facts]), return_inverse=True)
    time = np.concatenate([part.time for part in facts])
    removed = np.concatenate([part.text for part in facts]) == 0
    order = np.lexsort((np.arange(len(time)), time, page))
    before = np.full(len(time), -1)
    before[order[1:]] = np.where(np.diff(page[order]) == 0, order[:-1], -1)
    there = (before >= 0) & ~removed & ~removed[before]
    steps = (before >= 0) & (removed != removed[before])  # a removal and a reappearance always count
    steps |= before < 0
    owner = np.repeat(np.arange(len(lengths)), lengths)
    if known:
        steps[there] |= _brings_unknown(lists, owner, target, time, page, urls, names)[there]
        return np.split(steps, np.cumsum([len(part) for part in facts])[:-1])
    rows = np.flatnonzero(there)
    rows = rows[lists[rows] != lists[before[rows]]]
    pairs, pair = np.unique(np.stack((lists[before[rows]], lists[rows])), axis=1, return_inverse=True)
    start = np.concatenate(([0], np.cumsum(lengths)))
    adds = [
        bool(np.setdiff1d(target[start[b] : start[b + 1]], target[start[a] : start[a + 1]]).size) for a, b in pairs.T
    ]
    steps[rows] |= np.array(adds, bool)[pair.reshape(-1)]
    return np.split(steps, np.cumsum([len(part) for part in facts])[:-1])


def _brings_unknown(
    lists: Ints, owner: Ints, target: Ints, time: Ints, page: Ints, urls: NDArray[Any], names: Ints
) -> Flags:
    """Per row: whether one of its links leads to what no earlier row linked to and what was no page before."""
    never = np.iinfo(np.int64).max
    first_of_list = np.full(max(int(lists.max(initial=-1)), int(owner.max(initial=-1))) + 1, never)
    np.minimum.at(first_of_list, lists, time)
    first_of_target = np.full(len(names), never)
    np.minimum.at(first_of_target, target, first_of_list[owner])
    born = np.full(len(urls), never)
    np.minimum.at(born, page, time)
    for number, url in enumerate(urls.tolist()):
        clean = canonical(url)
        place = int(np.searchsorted(names, key(clean))) if clean else len(names)
        if clean and place < len(names) and names[place] == key(clean):
            first_of_target[place] = min(first_of_target[place], born[number])
    newest = np.full(len(first_of_list), np.iinfo(np.int64).min)
    np.maximum.at(newest, owner, first_of_target[target])
    return np.asarray(newest[lists] == time)


def _text(html: bytes | str) -> str:
    try:
        tree = parse(html if isinstance(html, str) else decode(html).text)
    except Unreadable:
        return ""
    return text.visible(tree)[:_MAX_TEXT]
