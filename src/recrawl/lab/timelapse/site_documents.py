"""Generated documents of a served site: robots.txt, sitemap, feed, and start pages.

They depend on the current rows of the site, so they are generated again only after one of them has changed. The dates
in sitemaps are correct or not, of the kinds in `lab.replays.simulated_hints`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import numpy as np

from recrawl.columns import Ints
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.simulated_hints import parse_source
from recrawl.lab.timelapse.addresses import Addresses, Host
from recrawl.lab.timelapse.bodies import Content, content

_DAY = 86400
_NEVER = -1
_SEED = 11


class Dates:
    """Dates of pages at a time; `_NEVER` for a page without one."""

    def __init__(self, archive: Archive, how: str) -> None:
        self._archive = archive
        self.how, self._numbers = parse_source(f"sitemap:{how}")
        self.moves = self.how in ("lying", "random", "future", "late", "noisy")
        """Whether dates change without a change of a page."""
        self._page, self._time = (
            self._entries() if self.how == "noisy" else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        )

    def of(self, rows: Ints, now: float) -> list[str]:
        """Return the dates of pages in these rows, in the format of sitemaps; empty for none."""
        times = self._seconds(rows, int(now))
        stamps = np.datetime_as_string(np.maximum(times, 0).astype("datetime64[s]"))
        return [f"{stamp}Z" if time >= 0 else "" for stamp, time in zip(stamps.tolist(), times.tolist(), strict=True)]

    def _seconds(self, rows: Ints, now: int) -> Ints:
        archive, count = self._archive, len(rows)
        if self.how == "honest":
            return archive.times[rows].astype(np.int64)
        if self.how == "late":
            return self._as_of(rows, now - int(self._numbers[0] * _DAY))
        if self.how == "noisy":
            return self._noisy(rows, now)
        if self.how == "random":
            rng = np.random.default_rng([_SEED, now])
            return rng.integers(int(archive.start), max(now, int(archive.start) + 1), count)
        constant = {"lying": now, "future": now + 365 * _DAY, "silent": int(archive.start), "never": _NEVER}
        return np.full(count, constant[self.how], np.int64)

    def _as_of(self, rows: Ints, then: int) -> Ints:
        """Return the dates as they were at an earlier time."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        before = self._archive.rows_at(then)[pages]
        return np.where(before >= 0, self._archive.times[np.maximum(before, 0)], _NEVER).astype(np.int64)

    def _noisy(self, rows: Ints, now: int) -> Ints:
        """Return the last listed date of each page, its first row's if none was listed."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        date = self._archive.times[self._archive.first[:-1]].astype(np.int64)
        listed = self._time <= now
        date[self._page[listed]] = self._time[listed]  # in order of time: the last assignment is kept
        return date[pages]

    def _entries(self) -> tuple[Ints, Ints]:
        """Return the entries of a noisy sitemap: some of the changes, and wrong dates of any pages."""
        archive, (precision, recall) = self._archive, self._numbers
        rng = np.random.default_rng(_SEED)
        later = np.ones(len(archive.times), bool)
        later[archive.first[:-1]] = False
        true = np.flatnonzero(later & (rng.random(len(later)) < recall))
        page, time = archive.page_of[true], archive.times[true].astype(np.int64)
        false = rng.poisson(len(page) * (1 - precision) / precision)
        page = np.concatenate((page, rng.integers(0, len(archive.first) - 1, false)))
        time = np.concatenate((time, rng.integers(int(archive.start), int(archive.end) + 1, false)))
        order = np.argsort(time, kind="stable")
        return page[order], time[order]


SITEMAP_URLS = 50_000
START_LINKS = 500
FEED_ENTRIES = 20

_XML = b"application/xml; charset=utf-8"
_HTML = b"text/html; charset=utf-8"
_XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{0,300})", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SITEMAP_PART = re.compile(r"/sitemap-([1-9]\d{0,5})\.xml\Z")
_START_PART = re.compile(r"/-/pages/([1-9]\d{0,5})\Z")

_Maker = Callable[[int, Host, Ints, float], str | None]


class Documents:
    """The generated documents of every site."""

    def __init__(self, archive: Archive, addresses: Addresses, dates: Dates | None = None) -> None:
        self._archive = archive
        self._addresses = addresses
        self._dates = dates or Dates(archive, "honest")
        site_of_row = archive.site_of[archive.page_of]
        self._site_times = [np.sort(archive.times[site_of_row == site]) for site in range(len(archive.sites))]
        self._kept: dict[tuple[int, str, str], tuple[tuple[int, int], Content | None]] = {}

    def find(self, path: str, host: Host, now: float) -> Content | None:
        """Return the document at a path, None if there is none."""
        assert host.site is not None
        if path == "/robots.txt":
            return robots(host)
        maker, part, kind = self._maker(path)
        if maker is None:
            return None
        begun = int(np.searchsorted(self._site_times[host.site], now, side="right"))
        state = (begun, int(now) if self._dates.moves and kind is _XML else 0)
        key = host.site, path, host.base
        kept = self._kept.get(key)
        if kept is None or kept[0] != state:
            text = maker(part, host, self._live(host.site, now), now)
            modified = int(self._site_times[host.site][max(begun - 1, 0)])
            kept = state, None if text is None else content(text.encode(), kind, modified)
            # Paths without a document must not fill the memory.
            if text is not None:
                self._kept[key] = kept
        return kept[1]

    def start(self, host: Host, now: float) -> Content:
        """Return a page with links to all live pages, for sites without a front page."""
        found = self.find("/-/pages/1", host, now)
        assert found is not None
        return found

    def _maker(self, path: str) -> tuple[_Maker | None, int, bytes]:
        if path == "/sitemap.xml":
            return self._sitemap, 0, _XML
        if path == "/feed.xml":
            return self._feed, 0, b"application/atom+xml; charset=utf-8"
        if part := _SITEMAP_PART.match(path):
            return self._sitemap, int(part[1]), _XML
        if part := _START_PART.match(path):
            return self._start, int(part[1]), _HTML
        return None, 0, b""

    def _live(self, site: int, now: float) -> Ints:
        """Return the current rows of the site's live pages."""
        pages = self._archive.pages_at(now)
        mine: Ints = self._archive.rows_at(now)[pages[self._archive.site_of[pages] == site]]
        return mine

    def _addresses_of(self, rows: Ints, host: Host) -> list[str]:
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        paths = self._addresses.paths
        return [html.escape(host.base + paths[page]) for page in pages.tolist()]

    def _sitemap(self, part: int, host: Host, rows: Ints, now: float) -> str | None:
        """Return part 0, the sitemap or, above 50,000 pages, the index of its parts (spec H2); or another part."""
        parts = -(-len(rows) // SITEMAP_URLS)
        if part == 0 and parts > 1:
            listed = "".join(
                f"<sitemap><loc>{html.escape(host.base)}/sitemap-{i + 1}.xml</loc></sitemap>\n" for i in range(parts)
            )
            return f'{_XML_HEAD}<sitemapindex xmlns="{_SITEMAPS}">\n{listed}</sitemapindex>\n'
        if part > max(parts, 1):
            return None
        rows = rows[SITEMAP_URLS * max(part - 1, 0) :][:SITEMAP_URLS]
        listed = "".join(
            f"<url><loc>{address}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>\n"
            for address, date in zip(self._addresses_of(rows, host), self._dates.of(rows, now), strict=True)
        )
        return f'{_XML_HEAD}<urlset xmlns="{_SITEMAPS}">\n{listed}</urlset>\n'

    def _feed(self, part: int, host: Host, rows: Ints, now: float) -> str:
        """Return a feed of the newest changes (spec H3)."""
        del part, now
        newest = rows[np.argsort(-self._archive.times[rows], kind="stable")[:FEED_ENTRIES]]
        times = self._times(newest)
        base = html.escape(host.base)
        entries = "".join(
            f'<entry><title>{_title(self._archive.html(row)) or address}</title><link href="{address}"/>'
            f"<id>{address}</id><updated>{time}</updated></entry>\n"
            for row, address, time in zip(newest.tolist(), self._addresses_of(newest, host), times, strict=True)
        )
        return (
            f'{_XML_HEAD}<feed xmlns="http://www.w3.org/2005/Atom">\n'
            f'<title>{base}</title><id>{base}/</id><link href="{base}/"/>'
            f"<author><name>{base}</name></author>"
            f"<updated>{times[0] if times else '1970-01-01T00:00:00Z'}</updated>\n{entries}</feed>\n"
        )

    def _start(self, part: int, host: Host, rows: Ints, now: float) -> str | None:
        del now
        parts = -(-len(rows) // START_LINKS)
        if part > max(parts, 1):
            return None
        shown = self._addresses_of(rows[START_LINKS * (part - 1) :][:START_LINKS], host)
        links = [*shown, *(f"/-/pages/{i}" for i in range(2, parts + 1))]
        return link_page(f"Pages, part {part}", [(link, link) for link in links])

    def _times(self, rows: Ints) -> list[str]:
        stamps = np.datetime_as_string(self._archive.times[rows].astype("datetime64[s]"))
        return [f"{stamp}Z" for stamp in stamps.tolist()]


def robots(host: Host) -> Content:
    """Return a robots.txt that allows everything."""
    sitemap = f"Sitemap: {host.base}/sitemap.xml\n" if host.site is not None else ""
    return content(f"User-agent: *\nAllow: /\n{sitemap}".encode(), b"text/plain; charset=utf-8", 0)


def link_page(title: str, links: list[tuple[str, str]]) -> str:
    """Return a page of links; URLs and names are already escaped."""
    items = "".join(f'<li><a href="{address}">{name}</a></li>\n' for address, name in links)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body><h1>{title}</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    )


def _title(body: bytes) -> str:
    found = _TITLE.search(body, 0, 8192)
    text = html.unescape(found[1].decode("utf-8", "replace")) if found else ""
    return html.escape(_NOT_XML.sub("", text).strip())
