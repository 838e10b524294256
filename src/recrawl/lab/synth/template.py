"""What all pages of a site share: head, menu, breadcrumbs, sidebar and footer, in successive revisions.

A template change affects every page at the same second. Some changes alter visible text (the tagline, the notice in the
footer), the others only markup: class names, the style sheet's name, the build number.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from recrawl.lab.synth.body import anchor
from recrawl.lab.synth.changes import NEVER
from recrawl.lab.synth.site_plan import FIRST_FOLDER, FIXED, SitePlan
from recrawl.lab.synth.vocabulary import Words
from recrawl.lab.synth.world import SyntheticWorld

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
