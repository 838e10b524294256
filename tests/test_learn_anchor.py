"""The anchor of a site, on small made-up news sites, on hostile ones and on real ones; depths and what follows."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book, LinkGraph
from recrawl.choose.papers.anchor_depth import AnchorDepth
from recrawl.choose.protocol import NAMED
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.discover.links import LinkReader
from recrawl.lab.experiments.barbosa2003 import published
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.small_worlds import NeverChanged
from recrawl.learn.structure.anchor import EVIDENCE, NEAR, anchors, candidates, roots, why
from recrawl.learn.structure.depth import DEEPEST, UNREACHED, Layers, depths, from_anchors, hops, layers, recommend
from recrawl.loop import drive
from recrawl.model import Outcomes

DAY = 86400.0
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


# -- made-up sites -----------------------------------------------------------------------------------------


class Town:
    """A site that is written day by day and visited whole every day. The first page added is its root."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.links: dict[str, list[str]] = {}
        self.born: dict[str, int] = {}
        self.changed: dict[str, list[int]] = {}
        self.day = 0

    def put(self, name: str, *links: str) -> None:
        """A page as it is from today on."""
        if name not in self.born:
            self.names.append(name)
            self.born[name], self.changed[name] = self.day, []
        elif list(links) != self.links[name]:
            self.stir(name)
        self.links[name] = list(links)

    def stir(self, name: str) -> None:
        """A change of the text alone."""
        if self.changed[name][-1:] != [self.day] and self.born[name] != self.day:
            self.changed[name].append(self.day)

    def book(self) -> Book:
        names = {name: page for page, name in enumerate(self.names)}
        book = Book.blank(len(names), now=(self.day + 0.5) * DAY)
        for name, page in names.items():
            book.found[page] = self.born[name] * DAY
            book.visits[page] = self.day - self.born[name] + 1
            book.changes[page] = 1 + len(self.changed[name])
            book.last_change[page] = (self.changed[name] or [self.born[name]])[-1] * DAY
        book.last_try[:] = book.last_visit[:] = self.day * DAY
        rows = [[names[link] for link in self.links[name] if link in names] for name in self.names]
        book.links = csr(rows)
        deep = depths(book.links, np.array([0]), book.site)
        book.depth[:] = np.where(deep < 0, 3, deep)
        return book

    def anchor(self) -> str:
        return self.names[int(anchors(self.book())[0])]


def csr(rows: list[list[int]]) -> LinkGraph:
    flat = [target for row in rows for target in row]
    return LinkGraph(np.cumsum([0, *map(len, rows)]), np.array(flat, np.int32))


def told(day: int, step: int = 3, shown: int = 10) -> list[str]:
    """The newest articles on a day when there are `step` new ones every day."""
    return [f"a{k}" for k in range(day * step, max(-1, day * step - shown), -1)]


def paper(days: int, write: Callable[[Town, int], None], step: int = 3) -> Town:
    """A paper with so many new articles a day, whose pages `write` puts together; articles link the one before."""
    town = Town()
    for day in range(days):
        town.day = day
        write(town, day)
        for k in range(max(0, (day - 1) * step + 1), day * step + 1):
            town.put(f"a{k}", *MENU, f"a{k - 1}")
    return town


MENU = ("front", "about", "contact", "archive")


def plain(town: Town, day: int) -> None:
    town.put("front", *MENU, *told(day))
    town.put("about", *MENU)
    town.put("contact", *MENU)
    town.put("archive", *MENU, *told(day, shown=10_000))


def test_a_plain_front_page() -> None:
    """Not the archive, which links all that is new as well, among everything else."""
    town = paper(40, plain)
    assert town.anchor() == "front"
    found = candidates(town.book())
    assert found.new[0] >= 9
    assert "are among the newest of the site" in why(found, int(found.page[0]))


def test_frames() -> None:
    """The first page is a frameset: the frame with the headlines is the anchor (B fig. 1)."""

    def write(town: Town, day: int) -> None:
        town.put("news.com", "menu.html", "index2.html")
        town.put("menu.html", "about", "contact", "subscribe")
        town.put("index2.html", *told(day))
        for name in ("about", "contact", "subscribe"):
            town.put(name, "news.com")

    town = paper(30, write)
    assert town.anchor() == "index2.html"
    book = town.book()
    depth = from_anchors(book, anchors(book))
    assert depth[town.names.index("a87")] == 1


def test_frames_in_frames() -> None:
    def write(town: Town, day: int) -> None:
        town.put("outer", "top", "inner")
        town.put("top", "about")
        town.put("inner", "left", "main")
        town.put("left", "about")
        town.put("about", "outer")
        town.put("main", *told(day))

    assert paper(30, write).anchor() == "main"


def test_a_static_menu_and_a_page_of_the_latest() -> None:
    """The root changes too (a greeting), but names nothing; every page links the menu, the anchor among it."""
    menu = ("root", "latest", "about", "shop", "jobs", "imprint")

    def write(town: Town, day: int) -> None:
        for name in menu:
            town.put(name, *menu)
        town.stir("root")
        town.put("latest", *menu, *told(day))
        for k in range(max(0, day * 3 - 3), day * 3 + 1):
            town.put(f"a{k}", *menu)

    assert paper(30, write).anchor() == "latest"


@pytest.mark.parametrize("headlines", [True, False])
def test_section_fronts(headlines: bool) -> None:
    """A front page that carries the headlines is the anchor. Else it is a section, and no news is far from it."""
    sections = ("politics", "sport", "arts")
    articles: dict[str, list[str]] = {name: [] for name in sections}

    def write(town: Town, day: int) -> None:
        for number, name in enumerate(sections):
            new = [f"{name}{day}-{k}" for k in range(2 + (number == 1))] if day else []
            articles[name] = (new + articles[name])[:12]
            for article in new:
                town.put(article, "front", *sections, name)
            town.put(name, "front", *sections, *articles[name])
        leads = [article for name in sections for article in articles[name][:6]] if headlines else []
        town.put("front", *sections, *leads)

    town = Town()
    town.put("front", *sections)
    for day in range(30):
        town.day = day
        write(town, day)
    book = town.book()
    assert town.anchor() in (("front",) if headlines else sections)
    depth = from_anchors(book, anchors(book))
    assert all(0 <= depth[town.names.index(article)] <= 2 for name in sections for article in articles[name])


def test_a_site_that_moves_its_news() -> None:
    """The front stays what it was; from the day of the move all that is new is named by another page."""
    town = Town()
    chosen = {}
    for day in range(80):
        town.day = day
        town.put("front", "about", "blog", *told(min(day, 40)))
        town.put("about", "front")
        town.put("blog", "front", *(told(day) if day > 40 else ()))
        for k in range(max(0, day * 3 - 2), day * 3 + 1):
            town.put(f"a{k}", "front", "about")
        chosen[day] = town.anchor() if day in (40, 60, 79) else ""
    assert chosen[40] == "front"
    assert chosen[60] == "blog"
    assert chosen[79] == "blog"


def test_a_change_of_all_pages_is_not_news() -> None:
    """A date stamp on every page: all of them change every day."""

    def write(town: Town, day: int) -> None:
        plain(town, day)
        for name in town.names:
            town.stir(name)

    assert paper(40, write).anchor() == "front"


def test_a_box_of_recent_articles_on_every_page() -> None:
    """The box makes the links to the very newest common; the front page names more than the box."""

    def write(town: Town, day: int) -> None:
        box = told(day, shown=3)
        for name in list(town.names):
            town.put(name, *MENU, *box)
        plain(town, day)

    assert paper(40, write).anchor() == "front"


def test_a_weekly_blog() -> None:
    """News is rare: what counts is the site's own pace."""
    town = Town()
    for day in range(200):
        town.day = day
        if day % 7 == 0:
            k = day // 7
            town.put("home", "about", "all", *(f"p{j}" for j in range(k, max(-1, k - 6), -1)))
            town.put("about", "home")
            town.put("all", "home", *(f"p{j}" for j in range(k, -1, -1)))
            town.put(f"p{k}", "home", "about", "all", f"p{k - 1}")
            if k:
                town.put(f"p{k - 1}", "home", "about", "all", f"p{k - 2}", f"p{k}")
    assert town.anchor() == "home"


def test_changes_alone_are_evidence() -> None:
    """Nothing is born; a page links those whose text changes, another those that stay."""
    town = Town()
    for day in range(20):
        town.day = day
        town.put("root", "live", "still")
        town.put("live", *(f"score{k}" for k in range(8)))
        town.put("still", *(f"rule{k}" for k in range(8)))
        for k in range(8):
            town.put(f"score{k}", "root")
            town.put(f"rule{k}", "root")
            town.stir(f"score{k}")
        town.stir("live")
    assert town.anchor() == "live"


def test_the_root_when_nothing_is_known() -> None:
    """After the first crawl every page is as new as any other."""
    town = Town()
    plain(town, 0)
    town.put("a0", *MENU)
    assert town.anchor() == "front"
    found = candidates(town.book())
    assert found.score.max() < EVIDENCE
    assert "the root itself" in why(found, int(found.page[0]))


# -- hostile -----------------------------------------------------------------------------------------------


def test_a_site_of_one_page_and_one_of_none() -> None:
    book = Book.blank(1, now=DAY)
    assert anchors(book).tolist() == [0]
    book.links = csr([[0, 0, 0]])
    assert anchors(book).tolist() == [0]
    book.known[:] = False
    assert anchors(book).tolist() == [-1]
    assert anchors(Book.blank(0)).tolist() == []
    assert len(candidates(Book.blank(0))) == 0


def test_no_links_at_all() -> None:
    book = Book.blank(6, now=10 * DAY)
    book.depth[:] = [1, 0, 1, 2, 3, 5]
    assert anchors(book).tolist() == [1]
    assert from_anchors(book, anchors(book)).tolist() == [1, 0, 1, 2, 3, 5]
    book.links = csr([[]] * 6)
    assert anchors(book).tolist() == [1]
    assert from_anchors(book, anchors(book)).tolist() == [1, 0, 1, 2, 3, 5]
    assert set(candidates(book).page.tolist()) == {0, 1, 2, 3}, "near the root by the depth of the crawl"


def test_repeated_links_add_no_evidence() -> None:
    town = paper(40, plain)
    before = candidates(town.book())
    town.links["about"] = [*MENU, *(["a110"] * 500)]
    town.links["front"] = town.links["front"] * 3
    after = candidates(town.book())
    assert after.page[0] == before.page[0]
    assert after.links[after.page == 0] == before.links[before.page == 0]


def test_a_new_page_that_links_new_pages_needs_more_evidence() -> None:
    town = paper(40, plain)
    town.put("release", *(f"note{k}" for k in range(30)))
    for k in range(30):
        town.put(f"note{k}", "release")
    town.links["front"].insert(0, "release")
    assert town.anchor() == "front"


def test_removed_pages_are_not_anchors() -> None:
    town = paper(40, plain)
    book = town.book()
    book.known[0] = False
    assert anchors(book)[0] != 0
    book.failures[0] = 1  # it only failed, and is left alone for a while
    assert anchors(book)[0] == 0


def test_far_from_the_root() -> None:
    """What only a chain of links leads to is no candidate, whatever it names."""

    def write(town: Town, day: int) -> None:
        plain(town, day)
        for k in range(5):
            town.put(f"step{k}", f"step{k + 1}")
        town.put("step5", *told(day))
        town.put("front", *MENU, "step0")

    book = paper(30, write).book()
    assert anchors(book, near=2)[0] != anchors(book, near=9)[0]
    assert candidates(book).away.max() <= NEAR


def test_named_by_the_user() -> None:
    book = paper(40, plain).book()
    assert anchors(book, named=np.array([5])).tolist() == [5]
    assert "named by hand" in why(candidates(book), 5)


# -- laws ----------------------------------------------------------------------------------------------------


@st.composite
def webs(draw: Callable[..., Any], sites: int = 3) -> Book:
    """Any book with any links, also to oneself, twice and to other sites."""
    pages = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    book = Book.blank(pages, now=100 * DAY)
    book.site[:] = rng.integers(0, draw(st.integers(1, sites)), pages)
    book.depth[:] = rng.integers(0, 4, pages)
    book.found[:] = rng.integers(0, 100, pages) * DAY
    book.visits[:] = rng.integers(0, 20, pages)
    book.changes[:] = np.minimum(rng.integers(0, 20, pages), book.visits)
    book.last_visit[:] = np.where(book.visits > 0, rng.uniform(book.found, book.now), -np.inf)
    book.last_change[:] = np.where(book.changes > 0, book.last_visit, -np.inf)
    book.failures[:] = rng.integers(0, 2, pages)
    book.known[:] = rng.random(pages) < 0.9
    degree = rng.integers(0, draw(st.integers(1, 8)), pages)
    book.links = csr([rng.integers(0, pages, count).tolist() for count in degree])
    return book


@given(webs())
def test_every_site_that_has_pages_has_one_anchor_of_its_own(book: Book) -> None:
    chosen, first = anchors(book), roots(book)
    living = book.known | (book.failures > 0)
    assert len(chosen) == book.site.max() + 1
    for site, page in enumerate(chosen.tolist()):
        if page >= 0:
            assert book.site[page] == site
            assert living[page]
        assert (page >= 0) == (first[site] >= 0) == bool(living[book.site == site].any())
    found = candidates(book)
    assert np.isfinite(found.score).all()
    assert ((found.score >= 0) & (found.score <= 1 + 1e-9)).all()
    assert (found.new <= found.links).all()
    assert (found.changed <= found.links).all()


@given(webs(), st.integers(0, 2**32))
def test_page_numbers_do_not_matter(book: Book, seed: int) -> None:
    """The same book in another order gives every page the same score."""
    order = np.random.default_rng(seed).permutation(len(book))
    turned = copy.copy(book)
    for name in ("site", "depth", "found", "visits", "changes", "last_visit", "last_change", "failures", "known"):
        setattr(turned, name, getattr(book, name)[order])
    place = np.argsort(order)
    assert book.links is not None
    turned.links = csr([[int(place[target]) for target in book.links.of(page)] for page in order.tolist()])
    # Two pages may be equally good roots; then the number decides, and what is near follows from it.
    if np.array_equal(order[roots(turned)[roots(turned) >= 0]], roots(book)[roots(book) >= 0]):
        one = dict(zip(candidates(book).page.tolist(), candidates(book).score.tolist(), strict=True))
        other = candidates(turned)
        assert {int(order[page]) for page in other.page} == set(one)
        for page, score in zip(other.page.tolist(), other.score.tolist(), strict=True):
            assert score == pytest.approx(one[int(order[page])])


@given(webs())
def test_sites_are_independent(book: Book) -> None:
    chosen = anchors(book)
    assert book.links is not None
    for site in range(len(chosen)):
        alone = copy.copy(book)
        alone.known = book.known & (book.site == site)
        alone.failures = np.where(book.site == site, book.failures, 0)
        assert anchors(alone)[site] == chosen[site]


def walked(links: LinkGraph, sources: Iterable[int], site: list[int]) -> list[int]:
    """Breadth first, the plain way."""
    depth = [UNREACHED] * len(links)
    queue = deque(sources)
    for source in queue:
        depth[source] = 0
    while queue:
        page = queue.popleft()
        for target in links.of(page).tolist():
            if depth[target] < 0 and site[target] == site[page]:
                depth[target] = depth[page] + 1
                queue.append(target)
    return depth


@given(webs(), st.integers(0, 5))
def test_depths_are_those_of_a_plain_search(book: Book, most: int) -> None:
    assert book.links is not None
    chosen = anchors(book)
    plainly = walked(book.links, chosen[chosen >= 0].tolist(), book.site.tolist())
    assert depths(book.links, chosen, book.site).tolist() == plainly
    near = [deep if deep <= most else UNREACHED for deep in plainly]
    assert depths(book.links, chosen, book.site, most=most).tolist() == near


def test_depths_of_many_pages() -> None:
    rng = np.random.default_rng(1)
    pages, degree = 300_000, 4
    start = np.arange(pages + 1, dtype=np.int64) * degree
    links = LinkGraph(start, rng.integers(0, pages, pages * degree).astype(np.int32))
    depth = depths(links, np.array([0]), np.zeros(pages, np.int32))
    assert (depth >= 0).mean() > 0.95
    row, target = hops(links, np.flatnonzero(depth == 1))
    assert (depth[target] <= 2).all()
    assert len(row) == 4 * np.count_nonzero(depth == 1)


@given(webs(), st.sampled_from([3600.0, DAY, 30 * DAY]))
def test_layers_count_every_known_page_once(book: Book, period: float) -> None:
    depth = from_anchors(book, anchors(book))
    table = layers(book, depth, period)
    assert table.pages.sum() == book.known.sum()
    again = np.maximum(book.visits - 1, 0)[book.known]
    assert table.visits.sum() == again.sum()
    assert (table.changed <= table.visits).all()
    told_of = table.expected[~np.isnan(table.expected)]
    assert ((told_of >= 0) & (told_of <= 1)).all()
    assert np.array_equal(np.isnan(table.uniform), table.visits.sum(axis=1) == 0)


@given(webs())
def test_a_longer_period_expects_more_change(book: Book) -> None:
    depth = from_anchors(book, anchors(book))
    short, long = layers(book, depth, 3600.0), layers(book, depth, DAY)
    assert (np.nan_to_num(short.expected) <= np.nan_to_num(long.expected) + 1e-12).all()


@given(webs(), st.integers(0, 40), st.integers(0, 40))
def test_more_room_never_makes_n_smaller(book: Book, room: int, more: int) -> None:
    depth = from_anchors(book, anchors(book))
    table = layers(book, depth, DAY, room=room)
    small = recommend(table)
    assert (small <= recommend(layers(book, depth, DAY, room=room + more))).all()
    tight, wide = (layers(book, depth, DAY, room_per_site=float(room + extra)) for extra in (0, more))
    assert (recommend(tight) <= recommend(wide)).all()
    assert (np.nan_to_num(wide.uniform) <= np.nan_to_num(tight.uniform) + 1e-12).all()
    group = np.cumsum(table.pages, axis=1)[np.arange(len(small)), small]
    assert group.sum() <= room or not small.any()


def of_paper(room: float, per_site: float = np.inf) -> Layers:
    """B's table 1 and its uniform policy, as one site."""
    pages, share = np.zeros((1, DEEPEST + 2), np.int64), np.full((1, DEEPEST + 2), 0.01)
    pages[0, :5] = [61, 3_510 - 61, 15_230 - 3_510, 42_460 - 15_230, 100_000]
    pages[0, -1] = 1_475_000 - 142_460
    share[0, 0] = 0.45
    for depth, _, alone in published.by_depth():
        share[0, depth] = alone
    return Layers(pages, pages, pages, share, np.array([0.22]), room, np.array([per_site]))


def test_the_figures_of_the_paper_give_its_n() -> None:
    """Six hours at 141 pages a minute have room for n = 3, but the third depth does not pay."""
    room = 141 * 60 * 6
    assert room > 42_460
    assert recommend(of_paper(room)).tolist() == [2]
    assert recommend(of_paper(15_229)).tolist() == [1]
    assert recommend(of_paper(room, 15_229)).tolist() == [1]
    assert recommend(of_paper(3_000)).tolist() == [0]


# -- the policy ------------------------------------------------------------------------------------------------


def visited(policy: AnchorDepth, book: Book, budget: int) -> list[list[int]]:
    return [seen.pages.tolist() for seen in drive(policy, NeverChanged(), book, budget, 1)]


def chain() -> Book:
    """Page k links page k + 1; all were visited a day ago."""
    book = Book.blank(6, now=10 * DAY)
    book.depth[:] = np.arange(6)
    book.links = csr([[1], [2], [3], [4], [5], []])
    book.last_try[:] = book.last_visit[:] = 9 * DAY
    book.visits[:] = book.changes[:] = 1
    return book


def test_the_dynamic_group_comes_first_then_the_longest_wait() -> None:
    book = chain()
    book.last_try[3:] = [8 * DAY, 7 * DAY, 9 * DAY]
    assert visited(AnchorDepth(n=2, rest=0), book, 6) == [[0, 1, 2], [4, 3, 5]]
    assert visited(AnchorDepth(n=2, rest=0), book, 2) == [[0, 1]]


def test_a_share_of_the_budget_is_reserved_for_the_other_pages() -> None:
    assert visited(AnchorDepth(n=2, rest=0.5), chain(), 4) == [[0, 1], [3, 4]]
    assert visited(AnchorDepth(n=5, rest=0.5), chain(), 4) == [[0, 1, 2, 3]], "there is no rest"
    assert visited(AnchorDepth(n=2, rest=0.9), chain(), 6) == [[0, 1, 2], [3, 4, 5]], "more than it needs"


def test_pages_that_are_not_due_are_not_visited() -> None:
    book = chain()
    book.last_try[:3] = book.now - 3600
    assert visited(AnchorDepth(n=2, every=6), book, 6) == [[3, 4, 5]]
    assert visited(AnchorDepth(n=2, every=6, slow=3), book, 6) == []
    book.last_try[0] = book.now - 5.5 * 3600
    assert visited(AnchorDepth(n=2, every=6, slow=3), book, 6) == [[0]], "cycles are not on the second"


def test_a_limit_for_each_site() -> None:
    book = chain()
    assert visited(AnchorDepth(n=1, per_site=3), book, 6) == [[0, 1], [2]]


def test_depth_is_counted_from_the_anchor_of_the_user() -> None:
    book = chain()
    book.memory[NAMED] = np.array([3])
    assert visited(AnchorDepth(n=1, rest=0), book, 2) == [[3, 4]]


def test_depths_are_stored_until_the_anchors_change() -> None:
    book, policy, nothing = chain(), AnchorDepth(n=0, rest=0), Outcomes(np.zeros(0, np.int64), np.zeros(0, np.int8))
    policy.learn(book, nothing, np.zeros(0))
    assert visited(policy, book, 1) == [[0]]
    book.memory[NAMED] = np.array([3])
    assert visited(policy, book, 1) == [[3]], "before anything is learned"
    policy.learn(book, nothing, np.zeros(0))
    book.links = None
    assert visited(policy, book, 1) == [[3]], "learned, and not counted again"


def test_an_anchor_that_was_not_there_yet() -> None:
    """The past is learned with the anchors of today: some of them had not been found."""
    book, policy = chain(), AnchorDepth(n=0, rest=0)
    book.memory[NAMED] = np.array([len(book)])
    policy.learn(book, Outcomes(np.zeros(0, np.int64), np.zeros(0, np.int8)), np.zeros(0))
    assert visited(policy, book, 1) == [[0]]


def test_n_is_found_from_the_book() -> None:
    """Depths 0 and 1 change at every visit, the others never; with little room only the anchor is left."""
    book = chain()
    book.visits[:] = 9
    book.changes[:2], book.changes[2:] = 9, 1
    assert visited(AnchorDepth(rest=0, slow=30), book, 6) == [[0, 1]]
    assert visited(AnchorDepth(rest=0, slow=30), book, 1) == [[0]]


@settings(max_examples=30)
@given(webs(), st.integers(0, 40), st.sampled_from(["auto", 0, 1, 3]), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_whole_budget_is_spent_when_all_is_due(book: Book, budget: int, n: int | str, rest: float) -> None:
    book.last_try[:] = -np.inf
    chosen = [page for batch in visited(AnchorDepth(n=n, rest=rest), book, budget) for page in batch]
    assert len(chosen) == min(budget, int(book.known.sum()))


# -- real sites ------------------------------------------------------------------------------------------------


def ended(path: Path) -> tuple[list[str], Book]:
    """The book that daily visits over a whole archive would have made; change is change of the bytes."""
    archive, reader = Archive.open([path]), LinkReader()
    book = Book.blank(len(archive.urls), now=float(archive.end))
    book.site[:] = archive.site_of
    place = {url.removesuffix("index.html"): page for page, url in enumerate(archive.urls)}
    rows: list[list[int]] = []
    for page, url in enumerate(archive.urls):
        first, last = archive.first[page], archive.first[page + 1]
        days = np.unique(archive.times[first:last] // DAY)
        book.found[page] = archive.times[first]
        book.visits[page] = book.now // DAY - days[0] + 1
        book.changes[page] = len(days)
        book.last_change[page] = archive.times[last - 1]
        book.depth[page] = url.removesuffix("index.html").count("/") - 3
        book.known[page] = not archive.removed[last - 1]
        found = (
            [] if archive.removed[last - 1] else reader.read(parse(decode(archive.html(last - 1), "").text), url).urls
        )
        rows.append(
            [place[link.removesuffix("index.html")] for link in found if link.removesuffix("index.html") in place]
        )
    book.last_try[:] = book.last_visit[:] = book.now
    book.links = csr(rows)
    return archive.urls, book


REAL = {
    # A law digest: its first page is rewritten every day and links the newest issue.
    "colarusso__icymi_law": {"index.html"},
    # A blog: the first page shows the newest posts; two lists name all of its 70.
    "jeapostrophe__jeapostrophe.github.com": {"index.html", "archive.html", "cat-categories.html"},
    # A wiki whose root only forwards; `now` is its list of what was touched last.
    "XXIIVV__oscean": {"site/now.html"},
    # The root forwards to `home`, which shows the log of what is new.
    "hundredrabbits__100r.co": {"site/home.html", "site/log.html"},
    # What is new in this manual is its release notes.
    "mesonbuild__mesonbuild.github.io": {"Release-notes.html"},
    # A weekly magazine with its newest articles on the front.
    "MikeBrew123__carnivore-weekly": {"index.html"},
}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the real histories are not here")
@pytest.mark.parametrize("name", REAL)
def test_real_sites(name: str) -> None:
    file = DATA / "sites" / f"{name}.parquet"
    if not file.exists():
        pytest.skip(f"{file.name} is not here")
    urls, book = ended(file)
    (anchor,) = anchors(book).tolist()
    assert urls[anchor].partition(".example/")[2] in REAL[name]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the real histories are not here")
def test_real_front_pages() -> None:
    """Front and section pages of newspapers, whose articles are not in the archive: the front page of each."""
    urls, book = ended(DATA / "daily" / "news-fronts-2024.parquet")
    fronts = {urls[page].partition(".example/")[2] for page in anchors(book).tolist()}
    assert fronts <= {"", "index.html", "index.html.html"}
