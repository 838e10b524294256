"""The plan of one site: its directories and pages, and when each is born, changes and is removed.

Pages are numbered: 0 is the front page, then come three fixed pages, one list page per directory, the articles in order
of birth, and lists of thirty older articles each. The list of its directory, or a list of older articles, links to each
article, so every live page is reachable at every time. All other links lead to pages that are never removed, so a
removal affects only the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.synth.world import Kind, SyntheticWorld

# --------------------------------------------------------------------------------------------------------------------
# A site's pages, version by version.
#
# A page's version at a time depends on the number of edits of its own text, the template's revision, the sidebar, the
# list it shows, and the day's stamp. A row is written only if one of these differs from the row before.


# --------------------------------------------------------------------------------------------------------------------
# An artificial vocabulary with realistic word frequencies, and prose made of it.
#
# The most frequent words are English, so that text looks like sentences; the rest are built from syllables. Frequencies
# follow Zipf's law. A directory has a topic: a few dozen words that its pages use more often, so that pages of a
# directory are similar.


def _split(text: str) -> list[str]:
    return text.split()


_COMMON = _split(
    "the of and to in a is for that on with as it was by at from be are this an or which not have has were "
    "but their they more one all can its when new also been other will after some had two there would than "
    "into first time over only about most out such between through many year where may these people used"
)
_ONSET = _split("b c d f g h l m n p r s t v w br cl dr fr gr pl pr sl st tr th sh")
_NUCLEUS = _split("a e i o u ea ie oo ai ou")
_CODA = ["", "", "", "n", "r", "l", "s", "t", "m", "nd", "st", "rk", "ng"]
_QUANTILES = 1 << 16


class Words:
    """The words of a world, in ASCII without markup characters."""

    def __init__(self, rng: np.random.Generator, size: int = 6000) -> None:
        words = list(dict.fromkeys([*_COMMON, *_invented(rng, size)]))[:size]
        self.count = len(words)
        plain = [word.encode() for word in words]
        # One table of all forms: plain, capitalised, at the end of a sentence. An array of objects, because taking
        # thousands at once from it is faster than from a list.
        forms = [*plain, *(word.capitalize() for word in plain), *(word + b"." for word in plain)]
        self._forms = np.array(forms, dtype=object)
        weight = 1 / (np.arange(self.count) + 2.7)
        edges = np.cumsum(weight) / weight.sum()
        self._drawn = np.searchsorted(edges, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)

    def topic(self, rng: np.random.Generator, size: int = 60) -> Ints:
        """Draw the words of a topic."""
        return rng.integers(len(_COMMON), self.count, size)

    def prose(self, rng: np.random.Generator, lengths: Sequence[int], topic: Ints) -> list[bytes]:
        """Return paragraphs of these numbers of words, in sentences."""
        if not lengths:
            return []
        total = sum(lengths)
        ids, form = self._ids(rng, total, topic, 0.15), np.zeros(total, dtype=np.int64)
        starts = np.cumsum(rng.integers(6, 19, total // 6 + 1))
        starts = starts[starts < total]
        form[starts], form[starts - 1] = 1, 2
        return self._cut(ids, form, lengths)

    def titles(self, rng: np.random.Generator, count: int, topic: Ints) -> list[bytes]:
        """Return headlines of four to eight words."""
        if not count:
            return []
        lengths: list[int] = rng.integers(4, 9, count).tolist()
        total = sum(lengths)
        ids = self._ids(rng, total, topic, 0.5)
        return [title[:-1] for title in self._cut(ids, np.zeros(total, dtype=np.int64), lengths)]

    def names(self, rng: np.random.Generator, count: int) -> list[str]:
        """Return different single words, for directories."""
        return [self._forms[i].decode() for i in rng.permutation(np.arange(len(_COMMON), self.count))[:count]]

    def _ids(self, rng: np.random.Generator, total: int, topic: Ints, share: float) -> Ints:
        ids = self._drawn[rng.integers(0, _QUANTILES, total)]
        own = np.flatnonzero(rng.random(total) < share)
        ids[own] = topic[rng.integers(0, len(topic), len(own))]
        return ids

    def _cut(self, ids: Ints, form: Ints, lengths: Sequence[int]) -> list[bytes]:
        bounds = np.cumsum(lengths)
        form[bounds[:-1]], form[bounds - 1] = 1, 2
        form[:1] = 1
        tokens: list[bytes] = self._forms[ids + self.count * form].tolist()
        low, found = 0, []
        for high in bounds.tolist():
            found.append(b" ".join(tokens[low:high]))
            low = high
        return found


def _invented(rng: np.random.Generator, size: int) -> list[str]:
    """Return more than enough invented words, short ones first, as in a language."""
    found: list[str] = []
    for syllables, share in ((1, 0.2), (2, 0.8), (3, 0.6)):
        count = int(size * share)
        draws = [rng.integers(0, len(part), (count, syllables)) for part in (_ONSET, _NUCLEUS, _CODA)]
        for onset, nucleus, coda in zip(*(draw.tolist() for draw in draws), strict=True):
            parts = zip(onset, nucleus, coda, strict=True)
            found.append("".join(_ONSET[o] + _NUCLEUS[n] + _CODA[c] for o, n, c in parts))
    return found


# --------------------------------------------------------------------------------------------------------------------
# A page's own content: blocks of HTML, and their edits.


BLOCK_BYTES = 420
"""Approximate mean size of a block."""

_PARAGRAPH, _HEADING, _LIST, _TABLE, _CODE, _FIGURE = range(6)
_WORDS = np.array([(35, 110), (30, 70), (30, 60), (16, 40), (20, 50), (6, 14)])


def anchor(path: str, title: bytes) -> bytes:
    """Return a link.

    >>> anchor("/a.html", b"A")
    b'<a href="/a.html">A</a>'
    """
    return b'<a href="%s">%s</a>' % (escape(path).encode(), title)


class Body:
    """The blocks of one page, edited in place from version to version."""

    def __init__(self, kind: Kind, words: Words, topic: Ints, rng: np.random.Generator) -> None:
        self._edges = np.cumsum(kind.blocks) / sum(kind.blocks)
        self._words = words
        self._topic = topic
        self._rng = rng
        self.blocks: list[bytes] = []

    def fill(self, size: int, links: Sequence[bytes]) -> None:
        """Write about `size` bytes, with the links distributed over the blocks."""
        self.blocks = self._write(max(2, round(size / BLOCK_BYTES)))
        for place, link in zip(self._rng.integers(0, len(self.blocks), len(links)).tolist(), links, strict=True):
            head, paragraph, tail = self.blocks[place].rpartition(b"</p>")
            text = b" See also " + link + b"."
            self.blocks[place] = head + text + paragraph + tail if paragraph else tail + b"<p>" + text[1:] + b"</p>\n"

    def edit(self) -> None:
        """Make one edit: rewrite, add or delete a block, or sometimes rewrite a third of the page."""
        draw, place = self._rng.random(2)
        count = len(self.blocks)
        at = int(place * count)
        if draw < 0.55:
            self.blocks[at : at + 1] = self._write(1)
        elif draw < 0.75:
            self.blocks[at:at] = self._write(1)
        elif draw < 0.93 and count > 3:
            del self.blocks[at]
        else:
            fresh = self._write(max(1, count // 3))
            at = int(place * (count - len(fresh) + 1))
            self.blocks[at : at + len(fresh)] = fresh

    def _write(self, count: int) -> list[bytes]:
        rng = self._rng
        shapes = np.minimum(np.searchsorted(self._edges, rng.random(count), side="right"), 5)
        bounds = _WORDS[shapes]
        lengths: list[int] = rng.integers(bounds[:, 0], bounds[:, 1]).tolist()
        texts = self._words.prose(rng, lengths, self._topic)
        return [_SHAPES[shape](text, rng) for shape, text in zip(shapes.tolist(), texts, strict=True)]


def _groups(text: bytes, size: int) -> list[list[bytes]]:
    words = text.replace(b".", b"").lower().split(b" ")
    return [words[i : i + size] for i in range(0, len(words), size)]


def _paragraph(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    return b"<p>" + text + b"</p>\n"


def _heading(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    words = text.split(b" ", 5)
    title = b" ".join(words[:5]).replace(b".", b"")
    return b"<h2>" + title + b"</h2>\n<p>" + words[-1][:1].upper() + words[-1][1:] + b"</p>\n"


def _list(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    items = [b"<li>" + b" ".join(group).capitalize() + b"</li>\n" for group in _groups(text, 8)]
    return b"<ul>\n" + b"".join(items) + b"</ul>\n"


def _table(text: bytes, rng: np.random.Generator) -> bytes:
    rows = _groups(text, 3)
    prices = rng.integers(100, 99_999, len(rows)).tolist()
    cells = [
        b"<tr><td>%s</td><td>%d.%02d</td></tr>\n" % (b" ".join(row).capitalize(), price // 100, price % 100)
        for row, price in zip(rows, prices, strict=True)
    ]
    return b"<table>\n<tr><th>Item</th><th>Value</th></tr>\n" + b"".join(cells) + b"</table>\n"


def _code(text: bytes, rng: np.random.Generator) -> bytes:
    del rng
    lines = [group[0] + b"(" + b", ".join(group[1:]) + b")\n" for group in _groups(text, 5)]
    return b"<pre><code>" + b"".join(lines) + b"</code></pre>\n"


def _figure(text: bytes, rng: np.random.Generator) -> bytes:
    alt = text.partition(b".")[0]
    image = b'<img src="/images/%d.jpg" width="640" height="420" alt="%s">' % (
        int(rng.integers(1, 5000)),
        alt,
    )
    return b"<figure>" + image + b"<figcaption>" + text + b"</figcaption></figure>\n"


_SHAPES = (_paragraph, _heading, _list, _table, _code, _figure)


# --------------------------------------------------------------------------------------------------------------------
# What all pages of a site share: head, menu, breadcrumbs, sidebar and footer, in successive revisions.
#
# A template change affects every page at the same second. Some changes alter visible text (the tagline, the notice in
# the footer), the others only markup: class names, the style sheet's name, the build number.


_RECENT = 8


def day(t: int) -> bytes:
    """Return a date for readers.

    >>> day(1704067200)
    b'1 January 2024'
    """
    moment = datetime.fromtimestamp(t, UTC)
    return f"{moment.day} {moment:%B %Y}".encode()


def minute(t: int) -> bytes:
    """Return a date with the time of day."""
    return day(t) + f"{datetime.fromtimestamp(t, UTC):, %H:%M} UTC".encode()


class Template:
    """The template of a site's pages; `revision` counts its changes, from 0."""

    def __init__(
        self, world: SyntheticWorld, plan: SitePlan, words: Words, neighbours: list[str], rng: np.random.Generator
    ) -> None:
        self._plan = plan
        self._words = words
        self._links = [anchor(path, title) for path, title in zip(plan.path, plan.title, strict=True)]
        self._fixed = b" ".join(self._links[1:FIRST_FOLDER])
        self._friends = b" ".join(anchor(f"https://{host}/", host.encode()) for host in neighbours)
        topic = plan.folders.topic[0]
        tagline, notice = words.titles(rng, 1, topic)[0], words.prose(rng, [20], topic)[0]
        self._looks = [(int(rng.integers(1 << 20)), tagline, notice)]
        for visible in rng.random(len(plan.templates)) < world.template_text:
            if visible:
                tagline, notice = words.titles(rng, 1, topic)[0], words.prose(rng, [20], topic)[0]
            self._looks.append((int(rng.integers(1 << 20)), tagline, notice))
        self._menus: dict[tuple[int, int], bytes] = {}
        self._recent: dict[int, bytes] = {}

    def links_in_frame(self, page: int) -> int:
        """Return the approximate number of links in the template of a page."""
        folders = self._plan.folders
        folder = int(self._plan.folder[page])
        below = len(folders.below[folder]) if folder >= 0 else 0
        return 3 + folders.tops + below + len(FIXED) + self._friends.count(b"<a ") + _RECENT * self._plan.kind.sidebar

    def top(self, page: int, revision: int) -> bytes:
        """Return everything before the page's own content."""
        build, tagline, _ = self._looks[revision]
        plan = self._plan
        return b"".join(
            (
                b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>',
                plan.title[page] + (b" | " + plan.title[0] if page else b" | " + tagline),
                b'</title>\n<meta name="viewport" content="width=device-width">\n',
                b'<link rel="stylesheet" href="/assets/site-%05x.css">\n' % build,
                b'<link rel="alternate" type="application/atom+xml" href="/feed.xml" title="Feed">\n',
                b'<script>window.build = "%05x";</script>\n</head>\n' % build,
                b'<body class="look-%x">\n<header class="top-%x">' % (build % 97, build % 89),
                b"<strong>%s</strong> <em>%s</em></header>\n" % (self._links[0], tagline),
                self._menu(int(plan.folder[page]), revision),
                self._crumbs(page),
                b'<main class="main-%x">\n<h1>%s</h1>\n' % (build % 83, plan.title[page]),
            )
        )

    def bottom(self, revision: int) -> bytes:
        """Return the footer up to the stamp; `END` closes the page."""
        build, _, notice = self._looks[revision]
        return b'</main>\n<footer class="foot-%x"><p>%s</p>\n<p>%s</p>\n<p>%s</p>\n' % (
            build % 79,
            notice,
            self._fixed,
            self._friends,
        )

    def sidebar(self, rebuilt: int) -> bytes:
        """Return the newest pages as of the last rebuild of sidebars, without pages that will be removed."""
        if not self._plan.kind.sidebar:
            return b""
        if rebuilt not in self._recent:
            plan = self._plan
            articles = slice(plan.first_article, plan.first_chunk)
            staying = np.flatnonzero((plan.birth[articles] <= rebuilt) & (plan.death[articles] == NEVER))
            newest = (staying[-_RECENT:][::-1] + plan.first_article).tolist()
            items = b"".join(b"<li>%s</li>\n" % self._links[i] for i in newest)
            self._recent[rebuilt] = b"<aside><h2>Recent</h2>\n<ul>\n<li>Now</li>\n" + items + b"</ul></aside>\n"
        return self._recent[rebuilt]

    def link(self, page: int) -> bytes:
        """Return a link to a page, with its title."""
        return self._links[page]

    def _menu(self, folder: int, revision: int) -> bytes:
        key = folder, revision
        if key not in self._menus:
            folders = self._plan.folders
            shown = [*range(folders.tops), *(folders.below[folder] if folder >= 0 else ())]
            items = b"".join(b"<li>%s</li>\n" % self._links[FIRST_FOLDER + f] for f in shown)
            look = self._looks[revision][0] % 73
            self._menus[key] = b'<nav class="menu-%x"><ul>\n%s</ul></nav>\n' % (look, items)
        return self._menus[key]

    def _crumbs(self, page: int) -> bytes:
        trail: list[bytes] = []
        folder = int(self._plan.folder[page])
        if FIRST_FOLDER + folder == page and folder >= 0:
            folder = self._plan.folders.parent[folder]
        while folder >= 0:
            trail.append(self._links[FIRST_FOLDER + folder])
            folder = self._plan.folders.parent[folder]
        trail.append(self._links[0])
        return b'<nav class="crumbs">' + b" / ".join(reversed(trail)) + b"</nav>\n"


def stamp(t: int, visitors: int) -> bytes:
    """Return noise: a date and a counter."""
    return b'<p class="stamp">Today is %s. You are visitor %d.</p>\n' % (day(t), visitors)


END = b"</footer>\n</body>\n</html>\n"


# --------------------------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------------------------
# The plan of one site: its directories and pages, and when each is born, changes and is removed.
#
# Pages are numbered: 0 is the front page, then come three fixed pages, one list page per directory, the articles in
# order of birth, and lists of thirty older articles each. The list of its directory, or a list of older articles, links
# to each article, so every live page is reachable at every time. All other links lead to pages that are never removed,
# so a removal affects only the lists.


# --------------------------------------------------------------------------------------------------------------------
# When pages are born, change and are removed: the random part of a site's plan.
#
# For a daily and weekly rhythm, events are drawn uniformly in "working time" and then mapped to the clock. Working time
# runs fast in office hours and slowly at night and at the weekend; over a whole week it runs as fast as the clock. A
# Poisson process in working time has a daily and weekly rhythm on the clock.


HOUR = 3600
DAY = 86400
_MONDAY = 4 * DAY  # 1 January 1970 was a Thursday


def _week() -> Floats:
    """Return the relative activity of each hour of the week, from Monday 0:00 UTC; mean 1."""
    day = np.full(24, 0.15)
    day[6:9] = 1.0
    day[9:18] = 2.4
    day[18:23] = 0.9
    week = np.concatenate([day] * 5 + [day * 0.35, day * 0.45])
    busy: Floats = week / week.mean()
    return busy


class Rhythm:
    """The clock from `start` to `end` and its working time, both in seconds.

    >>> even = Rhythm(0.0, 0, 7 * DAY)
    >>> int(even.clock(even.work(np.array([5000.0])))[0])
    5000
    """

    def __init__(self, strength: float, start: int, end: int) -> None:
        edges = np.arange(start - start % HOUR, end + HOUR, HOUR, dtype=np.int64)
        pace = (1 - strength) + strength * _week()[(edges[:-1] - _MONDAY) // HOUR % 168]
        # A pace of 0 could not be inverted.
        self._work = np.concatenate(([0.0], np.cumsum(np.maximum(pace, 1e-6) * HOUR)))
        self._edges = edges.astype(np.float64)
        self.start = start
        self.end = end

    def work(self, clock: Floats | Ints) -> Floats:
        """Convert clock time to working time."""
        return np.interp(clock, self._edges, self._work)

    def clock(self, work: Floats) -> Ints:
        """Convert working time to whole seconds of the clock."""
        return np.interp(work, self._work, self._edges).astype(np.int64)

    def draw(self, rng: np.random.Generator, per_day: float) -> Ints:
        """Draw the sorted times of one Poisson process over the whole window."""
        low, high = self.work(np.array([self.start, self.end], dtype=np.int64))
        count = rng.poisson(per_day * (high - low) / DAY)
        return np.sort(self.clock(rng.uniform(low, high, count)))

    def draw_each(self, rng: np.random.Generator, per_day: Floats, birth: Ints, death: Ints) -> tuple[Ints, Ints]:
        """Draw one process per page during its life; return the pages and times, unsorted."""
        low, high = self.work(birth), self.work(np.minimum(death, self.end))
        counts = rng.poisson(per_day * np.maximum(high - low, 0) / DAY)
        who = np.repeat(np.arange(len(per_day)), counts)
        return who, self.clock(low[who] + rng.random(len(who)) * (high - low)[who])


NEVER = 1 << 60
"""Later than the end of any world."""

_YEAR = 365.25
_MOST_A_DAY = 24.0
_EARLY = 3 * HOUR


@dataclass(frozen=True, slots=True)
class Dice:
    """The inputs of every draw."""

    world: SyntheticWorld
    kind: Kind
    rhythm: Rhythm
    rng: np.random.Generator


def draw_births(dice: Dice) -> Ints:
    """Draw births of articles; busy sites publish several at once, which limits the changes of lists."""
    world, rng = dice.world, dice.rng
    per_day = world.births * dice.kind.birth * world.pages
    times = dice.rhythm.draw(rng, per_day)
    if per_day > world.publications:
        moments = np.unique(dice.rhythm.draw(rng, world.publications))
        times = np.sort(rng.choice(moments, len(times))) if len(moments) else times[:0]
    return times[(times > world.start) & (times < world.end)]


def draw_deaths(dice: Dice, birth: Ints) -> Ints:
    """Draw removals of pages: a constant probability per day, but none in the first hour."""
    life = dice.rng.exponential(1.0, len(birth)) * DAY / max(dice.world.removals * dice.kind.removal, 1e-12)
    death = birth + np.clip(life, HOUR, 1e15).astype(np.int64)
    return np.where(death < dice.world.end, death, NEVER)


def draw_rates(dice: Dice, folder: Ints, lists: Flags) -> Floats:
    """Draw changes per day of each page's own text; rates correlate within a directory (T §6.2)."""
    world, rng = dice.world, dice.rng
    mean = world.change_rate * dice.kind.change
    shape = world.rate_shape
    by_folder = rng.gamma(shape, 1 / shape, int(folder.max()) + 1)
    rates: Floats = np.minimum(mean * by_folder[folder] * rng.gamma(shape, 1 / shape, len(folder)), _MOST_A_DAY)
    rates[rng.random(len(rates)) < world.never] = 0
    # Lists change with their entries; their introductions rarely change.
    rates[lists] = mean / 4
    return rates


def draw_changes(dice: Dice, rates: Floats, folder: Ints, birth: Ints, death: Ints) -> tuple[Ints, Ints]:
    """Draw all changes of pages' own text; return pages and times, sorted by both."""
    world, rng = dice.world, dice.rng
    drawn = [dice.rhythm.draw_each(rng, rates, birth, death)]
    # New articles are corrected in their first hours.
    young = np.flatnonzero((birth > world.start) & (rates > 0))
    early = np.repeat(young, rng.poisson(dice.kind.early, len(young)))
    drawn.append((early, birth[early] + 60 + rng.exponential(_EARLY, len(early)).astype(np.int64)))
    for f in range(int(folder.max()) + 1):
        times = dice.rhythm.draw(rng, world.folder_updates / _YEAR)
        mine = np.flatnonzero((folder == f) & (rates > 0)) if len(times) else np.zeros(0, dtype=np.int64)
        for t in times.tolist():
            touched = mine[rng.random(len(mine)) < 0.5]
            drawn.append((touched, np.full(len(touched), t)))
    who = np.concatenate([pages for pages, _ in drawn])
    when = np.concatenate([times for _, times in drawn])
    alive = (when > birth[who]) & (when < np.minimum(death[who], world.end))
    who, when = who[alive], when[alive]
    order = np.lexsort((when, who))
    who, when = who[order], when[order]
    fresh = np.diff(who, prepend=-1).astype(bool) | np.diff(when, prepend=-1).astype(bool)
    return who[fresh], when[fresh]


# --------------------------------------------------------------------------------------------------------------------


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
