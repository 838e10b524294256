"""A site's pages, version by version.

A page's version at a time depends on the number of edits of its own text, the template's revision, the sidebar, the
list it shows, and the day's stamp. A row is written only if one of these differs from the row before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recrawl.columns import Ints
from recrawl.lab.synth.body import Body
from recrawl.lab.synth.changes import DAY, NEVER
from recrawl.lab.synth.site_plan import PER_LIST, SitePlan
from recrawl.lab.synth.template import END, Template, day, minute, stamp
from recrawl.lab.synth.vocabulary import Words
from recrawl.lab.synth.world import SyntheticWorld

_FRAME_BYTES = 2500
_LINK_BYTES = 110
_INTRODUCTION = 900


class Histories:
    """Writes the versions of a site's pages, one page after another."""

    def __init__(
        self, world: SyntheticWorld, plan: SitePlan, words: Words, neighbours: list[str], rng: np.random.Generator
    ) -> None:
        self._world = world
        self._plan = plan
        self._words = words
        self._rng = rng
        self._template = Template(world, plan, words, neighbours, rng)
        articles = np.arange(plan.first_article, plan.first_chunk)
        staying = plan.death == NEVER
        self._staying = articles[staying[articles]]
        self._staying_in = [members[staying[members]] for members in plan.members]
        self._items = {
            i: b"<li>%s <small>%s</small></li>\n" % (self._template.link(i), day(int(plan.published[i])))
            for i in articles.tolist()
        }
        counts = [(len(members) - 1) // PER_LIST for members in plan.members]
        self._first_chunk_of = (plan.first_chunk + np.cumsum([0, *counts])).tolist()
        self._tick = int(rng.integers(DAY))

    def of(self, page: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield the versions of a page: time and body, None at its removal."""
        plan = self._plan
        birth, death = int(plan.birth[page]), int(plan.death[page])
        own, ticks = plan.changes(page), self._ticks(page)
        times = np.concatenate((own, ticks, plan.templates, plan.sidebars, self._list_times(page)))
        times = np.unique(times[(times > birth) & (times < min(death, self._world.end))])
        times = np.concatenate(([birth], times))
        edits = np.searchsorted(own, times, side="right").tolist()
        revisions = np.searchsorted(plan.templates, times, side="right").tolist()
        rebuilt = np.searchsorted(plan.sidebars, times, side="right").tolist()
        stamps = np.searchsorted(ticks, times, side="right").tolist()

        body, related = self._begin(page)
        visitors = int(self._rng.integers(1_000, 900_000))
        before: tuple[object, ...] = ()
        done = 0
        for t, edit, revision, side, tick in zip(times.tolist(), edits, revisions, rebuilt, stamps, strict=True):
            listed = self._listed(page, t)
            state = (edit, revision, side, tick, listed)
            if state == before:
                continue
            if not before or revision != before[1]:
                top, bottom = self._template.top(page, revision), self._template.bottom(revision)
            for _ in range(edit - done):
                body.edit()
            before, done = state, edit
            parts = [top, self._dates(page, own, edit), *body.blocks, listed, related]
            parts.append(self._template.sidebar(int(plan.sidebars[side - 1]) if side else self._world.start))
            parts.append(bottom)
            if plan.noisy[page]:
                visitors += 1 + t % 977
                parts.append(stamp(int(ticks[tick - 1]) if tick else birth, visitors))
            parts.append(END)
            yield t, b"".join(parts)
        if death < self._world.end:
            yield death, None

    def _begin(self, page: int) -> tuple[Body, bytes]:
        """Return the page's first text and its links to other pages."""
        plan, world, rng = self._plan, self._world, self._rng
        folder = int(plan.folder[page])
        body = Body(plan.kind, self._words, plan.folders.topic[max(folder, 0)], rng)
        if not plan.is_article(page):
            body.fill(_INTRODUCTION, [])
            return body, b""
        size = world.size_min * (world.size_max / world.size_min) ** rng.random()
        room = int((size - _FRAME_BYTES) / _LINK_BYTES)
        links = [
            self._template.link(i)
            for i in self._related(page, max(0, min(room, world.links - self._template.links_in_frame(page))))
        ]
        inline = len(links) // 3
        body.fill(int(max(size - _FRAME_BYTES - _LINK_BYTES * len(links), 0)), links[:inline])
        items = b"".join(b"<li>%s</li>\n" % link for link in links[inline:])
        return body, b"<section><h2>Related</h2>\n<ul>\n" + items + b"</ul></section>\n" if items else b""

    def _related(self, page: int, count: int) -> list[int]:
        """Return pages to link to: ones born earlier that stay; older ones are more popular."""
        plan = self._plan
        born = plan.birth[page]
        found: list[int] = []
        for pool, share in ((self._staying_in[int(plan.folder[page])], 0.6), (self._staying, 0.4)):
            known = int(np.searchsorted(plan.birth[pool], born, side="right"))
            draws = self._rng.random(round(2 * count * share))
            found.extend(pool[(draws * draws * known).astype(np.int64)].tolist() if known else ())
        # Popular pages are drawn repeatedly, so more are drawn than needed.
        chosen = [other for other in dict.fromkeys(found) if other != page]
        return [chosen[i] for i in self._rng.permutation(len(chosen))[:count].tolist()]

    def _dates(self, page: int, own: Ints, edit: int) -> bytes:
        plan = self._plan
        if not plan.is_article(page):
            return b""
        line = b'<p class="dates">Published ' + day(int(plan.published[page]))
        return line + (b", updated " + minute(int(own[edit - 1])) if edit else b"") + b"</p>\n"

    def _ticks(self, page: int) -> Ints:
        """Return when the page's stamp changes: once a day, all pages of a site within ten minutes."""
        if not self._plan.noisy[page]:
            return np.zeros(0, dtype=np.int64)
        start = self._world.start
        first = start - start % DAY + self._tick + page * 7 % 600
        return np.arange(first, self._world.end, DAY, dtype=np.int64)

    def _list_times(self, page: int) -> Ints:
        """Return when the page's list may change: at births and removals."""
        plan = self._plan
        folder = int(plan.folder[page])
        if page == 0:
            listed = np.arange(plan.first_article, plan.first_chunk)
        elif page >= plan.first_chunk:
            listed = self._chunk(page)
        elif folder >= 0 and page < plan.first_article:
            listed = plan.members[folder]
        else:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate((plan.birth[listed], plan.death[listed]))

    def _listed(self, page: int, t: int) -> bytes:
        """Return the list of articles on the page at a time, newest first; empty on articles."""
        plan = self._plan
        if plan.is_article(page):
            return b""
        folder = int(plan.folder[page])
        more = b""
        if page == 0:
            shown = self._newest(t)
        elif page >= plan.first_chunk:
            shown = self._chunk(page)
            shown = shown[plan.death[shown] > t]
        elif folder >= 0:
            shown, more = self._folder_list(folder, t)
        else:
            return b""
        items = b"".join([self._items[i] for i in reversed(shown.tolist())])
        return b'<section class="list">\n<ul>\n<li>Newest first</li>\n' + items + b"</ul>\n" + more + b"</section>\n"

    def _newest(self, t: int) -> Ints:
        plan = self._plan
        first, count = plan.first_article, plan.kind.latest
        high = first + int(np.searchsorted(plan.birth[first : plan.first_chunk], t, side="right"))
        low = high
        alive = np.zeros(0, dtype=np.int64)
        while len(alive) < count and low > first:
            low = max(first, low - 2 * count)
            alive = np.flatnonzero(plan.death[low:high] > t) + low
        return alive[-count:]

    def _folder_list(self, folder: int, t: int) -> tuple[Ints, bytes]:
        """Return the articles not yet in a list of older ones, the thirty before them, and links to those lists."""
        plan = self._plan
        members = plan.members[folder]
        born = int(np.searchsorted(plan.birth[members], t, side="right"))
        full = max(0, (born - 1) // PER_LIST)
        shown = members[PER_LIST * max(0, full - 1) : born]
        first = self._first_chunk_of[folder]
        older = b" ".join(self._template.link(first + c) for c in range(full))
        return shown[plan.death[shown] > t], b"<p>" + older + b"</p>\n" if older else b""

    def _chunk(self, page: int) -> Ints:
        folder, number = self._plan.chunks[page - self._plan.first_chunk]
        return self._plan.members[folder][PER_LIST * number : PER_LIST * (number + 1)]
