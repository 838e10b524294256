"""The plan of one site: its directories and pages, and when each is born, changes and is removed.

Pages are numbered: 0 is the front page, then come three fixed pages, one list page per directory, the articles in order
of birth, and lists of thirty older articles each. The list of its directory, or a list of older articles, links to each
article, so every live page is reachable at every time. All other links lead to pages that are never removed, so a
removal affects only the lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.synth.changes import DAY, NEVER, Dice, Rhythm, draw_births, draw_changes, draw_deaths, draw_rates
from recrawl.lab.synth.site_kinds import Kind
from recrawl.lab.synth.vocabulary import Words
from recrawl.lab.synth.world import SyntheticWorld

PER_LIST = 30
FIXED = ("about", "contact", "imprint")
FIRST_FOLDER = 1 + len(FIXED)
"""The page that lists directory 0."""

_MAX_FOLDERS = 400
_PER_FOLDER = 25


@dataclass(frozen=True, slots=True)
class SiteFolders:
    """The directories. The first `tops` of them are the menu."""

    path: list[str]
    parent: list[int]
    below: list[list[int]]
    tops: int
    topic: list[Ints]


@dataclass(frozen=True, slots=True)
class SitePlan:
    """Everything about a site that is fixed before its pages are written. Arrays have one value per page."""

    host: str
    kind: Kind
    folders: SiteFolders
    path: list[str]
    title: list[bytes]
    folder: Ints
    """The directory of a page, -1 for the front page and the fixed ones."""
    birth: Ints
    death: Ints
    """`NEVER` for pages that are not removed."""
    published: Ints
    """The date on an article; for articles that exist at the start, a time before it."""
    noisy: Flags
    members: list[Ints]
    """The articles of each directory, oldest first."""
    chunks: list[tuple[int, int]]
    """Directory and number of each older-article list; they are the last pages."""
    change_first: Ints
    change_times: Ints
    templates: Ints
    """When the template changes."""
    sidebars: Ints
    """When sidebars are rebuilt."""

    @property
    def first_article(self) -> int:
        """The number of the oldest article."""
        return FIRST_FOLDER + len(self.folders.path)

    @property
    def first_chunk(self) -> int:
        """The number after the newest article."""
        return len(self.path) - len(self.chunks)

    def is_article(self, page: int) -> bool:
        """Whether a page is an article, not a list or a fixed page."""
        return self.first_article <= page < self.first_chunk

    def changes(self, page: int) -> Ints:
        """When a page's own text changes."""
        return self.change_times[self.change_first[page] : self.change_first[page + 1]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Pages as columns."""

    folder: Ints
    birth: Ints
    death: Ints
    published: Ints


def plan_site(world: SyntheticWorld, host: str, kind: Kind, words: Words, rng: np.random.Generator) -> SitePlan:
    """Draw the plan of a site."""
    dice = Dice(world, kind, Rhythm(world.rhythm, world.start, world.end), rng)
    folders = _folders(dice, words)
    articles = _articles(dice, len(folders.path))
    titles, paths = _named(folders, articles, kind.dated, words, rng)
    pages, members, chunks = _arranged(articles, len(folders.path), world.start)
    rates = _rates(dice, pages, len(folders.path), len(chunks))
    who, when = draw_changes(dice, rates, pages.folder, pages.birth, pages.death)
    return SitePlan(
        host=host,
        kind=kind,
        folders=folders,
        path=["/", *(f"/{name}.html" for name in FIXED), *folders.path, *paths]
        + [f"{folders.path[f]}older-{c + 1}.html" for f, c in chunks],
        title=[_titled(host.partition(".")[0]), *map(_titled, FIXED)]
        + [_titled(path.rstrip("/").rpartition("/")[2]) for path in folders.path]
        + titles
        + [b"Older pages, part %d" % (c + 1) for _, c in chunks],
        folder=pages.folder,
        birth=pages.birth,
        death=pages.death,
        published=pages.published,
        noisy=rng.random(len(pages.birth)) < world.noise,
        members=members,
        chunks=chunks,
        change_first=np.searchsorted(who, np.arange(len(pages.birth) + 1)),
        change_times=when,
        templates=np.unique(dice.rhythm.draw(rng, world.template_changes / 365.25)),
        sidebars=_sidebars(dice, articles),
    )


def _arranged(articles: _Rows, folders: int, start: int) -> tuple[_Rows, list[Ints], list[tuple[int, int]]]:
    """Return all pages in order of number, each directory's articles, and the lists of older articles."""
    fronts = FIRST_FOLDER + folders
    inside = [np.flatnonzero(articles.folder == f) for f in range(folders)]
    chunks = [(f, c) for f in range(folders) for c in range((len(inside[f]) - 1) // PER_LIST)]
    # A list of thirty begins, complete, when the article after it is born.
    begun = np.array([articles.birth[inside[f][PER_LIST * (c + 1)]] for f, c in chunks], dtype=np.int64)
    chunk_folder = np.array([f for f, _ in chunks], dtype=np.int64)
    at_start = np.full(fronts, start)
    pages = _Rows(
        folder=np.concatenate((np.full(FIRST_FOLDER, -1), np.arange(folders), articles.folder, chunk_folder)),
        birth=np.concatenate((at_start, articles.birth, begun)),
        death=np.concatenate((np.full(fronts, NEVER), articles.death, np.full(len(chunks), NEVER))),
        published=np.concatenate((at_start, articles.published, begun)),
    )
    return pages, [mine + fronts for mine in inside], chunks


def _rates(dice: Dice, pages: _Rows, folders: int, chunks: int) -> Floats:
    last = len(pages.birth) - chunks
    lists = np.ones(len(pages.birth), dtype=bool)
    lists[FIRST_FOLDER + folders : last] = False
    rates = draw_rates(dice, pages.folder, lists)
    rates[1:FIRST_FOLDER] = 0
    rates[last:] = 0
    return rates


def _titled(name: str) -> bytes:
    return name.capitalize().encode()


def _folders(dice: Dice, words: Words) -> SiteFolders:
    """Draw a tree of directories, most of them one to three levels deep (T fig. 4)."""
    rng, sections = dice.rng, dice.kind.sections
    count = max(2, min(_MAX_FOLDERS, dice.world.pages // _PER_FOLDER))
    tops = min(len(sections), count, max(2, round(1.5 * count**0.5)))
    paths = [f"/{name}/" for name in sections[:tops]]
    parents = [-1] * tops
    shallow = list(range(tops))
    for name in words.names(rng, count - tops):
        parent = shallow[int(rng.integers(len(shallow)))]
        paths.append(f"{paths[parent]}{name}/")
        parents.append(parent)
        if parent < tops:
            shallow.append(len(paths) - 1)
    below: list[list[int]] = [[] for _ in paths]
    for child, parent in enumerate(parents[tops:], start=tops):
        below[parent].append(child)
    return SiteFolders(paths, parents, below, tops, [words.topic(rng) for _ in paths])


def _articles(dice: Dice, folders: int) -> _Rows:
    world, rng = dice.world, dice.rng
    born = draw_births(dice)
    # Directories differ in size, but each has an article from the start.
    weight = rng.gamma(2.0, 1.0, folders) + 0.05
    weight /= weight.sum()
    old = np.concatenate(
        (
            np.arange(folders),
            rng.choice(folders, max(0, world.pages - FIRST_FOLDER - 2 * folders), p=weight),
        )
    )
    # The lists of older articles count as pages of the site too.
    lists = int(((np.bincount(old) - 1) // PER_LIST).sum())
    old = old[: max(folders, len(old) - lists)]
    before = world.start - rng.exponential(120 * DAY, len(old)).astype(np.int64)
    birth = np.concatenate((np.full(len(old), world.start), born))
    return _Rows(
        folder=np.concatenate((old, rng.choice(folders, len(born), p=weight))),
        birth=birth,
        death=draw_deaths(dice, birth),
        published=np.concatenate((np.sort(np.maximum(before, 0)), born)),
    )


def _named(
    folders: SiteFolders, articles: _Rows, dated: bool, words: Words, rng: np.random.Generator
) -> tuple[list[bytes], list[str]]:
    """Return the titles and URL paths of the articles."""
    titles: list[bytes] = [b""] * len(articles.folder)
    for f, topic in enumerate(folders.topic):
        mine = np.flatnonzero(articles.folder == f).tolist()
        for i, title in zip(mine, words.titles(rng, len(mine), topic), strict=True):
            titles[i] = title
    months = articles.published.astype("datetime64[s]").astype("datetime64[M]").astype(str).tolist()
    paths = []
    for i, (f, title, month) in enumerate(zip(articles.folder.tolist(), titles, months, strict=True)):
        slug = title.decode().lower().replace(" ", "-")
        paths.append(f"{folders.path[f]}{month + '/' if dated else ''}{slug}-{i}.html")
    return titles, paths


def _sidebars(dice: Dice, articles: _Rows) -> Ints:
    """Return when sidebars are rebuilt: at the birth of a page that stays, at most every `sidebar_days`."""
    kept: list[int] = []
    if dice.kind.sidebar:
        staying = (articles.death == NEVER) & (articles.birth > dice.world.start)
        for t in articles.birth[staying].tolist():
            if not kept or t - kept[-1] >= dice.world.sidebar_days * DAY:
                kept.append(t)
    return np.array(kept, dtype=np.int64)
