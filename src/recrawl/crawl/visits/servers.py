"""State of each server: robots.txt, trust in its validators, redirect habits, number of pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recrawl.compare.gone import vanishing
from recrawl.compare.noise.filters import Noise
from recrawl.compare.validators import ValidatorTrust
from recrawl.crawl.options import CrawlOptions, SiteOptions
from recrawl.discover.redirect_habits import RedirectHabits
from recrawl.discover.urls import origin
from recrawl.fetch.lanes import MAX_RETRY_AFTER
from recrawl.fetch.robots import Robots
from recrawl.model import Failure, RequisiteLevel, State
from recrawl.record.rows import HostRow, SiteRow
from recrawl.record.store import Store
from recrawl.times import remaining

_RENDERED_ENOUGH = 5
"""Pages without a difference after which `render = auto` stops on a site."""
_FIRST_HOST = 1 << 30
"""Number of the first server that is asked for requisites alone; those of sites are below."""
_SPARE = 1000
"""URLs accepted beyond twice the page limit of a site."""


@dataclass(slots=True)
class Server:
    """One server; changes are written with the next commit when `dirty`."""

    id: int
    origin: str
    robots: Robots | None
    trust: ValidatorTrust
    habits: RedirectHabits
    options: SiteOptions
    noise: int
    level: int
    """What counts as a change there, as a position in `CrawlOptions.levels`."""
    sitemap_at: float = 0.0
    held_until: float = 0.0
    """No requests before this time, as the server asked (Retry-After or back-off)."""
    refusal: str = ""
    """Why it gets no requests, if one has shown so: its address is in a private network, or its login fails."""
    refused_as: Failure = Failure.ADDRESS
    pages: int = 0
    live: int = 0
    pending_new: int = 0
    """First visits under way; they count towards the site's limit."""
    missing: int = 0
    dirty: bool = False
    render: str = "never"
    rendered: int = 0
    """Pages whose rendered text was compared with the plain one."""
    render_differed: int = 0
    screenshots: str = "never"
    requisites: RequisiteLevel = RequisiteLevel.NONE
    """Which requisites of its pages are kept."""

    @property
    def renders(self) -> bool:
        """Whether its pages are rendered by a browser; `auto` ends where the first ones showed no difference."""
        learned = self.rendered >= _RENDERED_ENOUGH and not self.render_differed
        return self.render == "always" or (self.render == "auto" and not learned)

    @property
    def browses(self) -> bool:
        """Whether a browser loads its new versions."""
        return self.screenshots != "never" or (self.render != "never" and self.renders)

    @property
    def reloads(self) -> bool:
        """Whether a browser loads its pages at every visit: scripts may show something else on the same page."""
        return self.screenshots == "always" or (self.render != "never" and self.renders)

    def refuses_more(self) -> str | None:
        """Why no more URLs are accepted: twice the site's page limit leaves enough for pages that fail."""
        limit = self.options.limit
        return "site-limit" if limit is not None and self.pages >= 2 * limit + _SPARE else None

    @property
    def closed(self) -> bool:
        """Whether nothing but robots.txt may be requested."""
        return bool(self.refusal) or (self.robots is not None and self.robots.hold_off)

    @property
    def cause(self) -> str:
        """Why none of its pages may be requested, in words; empty if they may."""
        held = self.robots is not None and self.robots.hold_off
        return self.refusal or (self.robots.hold_cause[1] if self.robots and held else "")

    def refuses(self, url: str, *, new: bool) -> Failure | None:
        """Why the page may not be requested, if so; `new` pages are subject to the site's limit."""
        robots, limit = self.robots, self.options.limit
        if self.refusal:
            return self.refused_as
        if robots is None or robots.hold_off:
            return robots.hold_cause[0] if robots else Failure.ROBOTS_UNREACHABLE
        if not robots.allows(url):
            return Failure.ROBOTS
        return Failure.LIMIT if new and limit is not None and self.live + self.pending_new >= limit else None

    def vanishing(self) -> bool:
        """Whether many of its pages disappear at the same time (spec C5)."""
        return vanishing(self.live, self.missing)

    def row(self) -> SiteRow:
        """The row of the store."""
        robots = self.robots
        return SiteRow(
            id=self.id,
            origin=self.origin,
            robots_status=robots.status if robots else -1,
            robots_body=robots.body if robots else b"",
            robots_at=robots.fetched if robots else 0.0,
            robots_held=robots.held_since if robots else 0.0,
            sitemap_at=self.sitemap_at,
            held_until=self.held_until,
            lm_good=self.trust.lm_good,
            lm_bad=self.trust.lm_bad,
            etag_good=self.trust.etag_good,
            etag_bad=self.trust.etag_bad,
            habits=self.habits.dump(),
        )


class Servers:
    """All servers, by number and by origin."""

    def __init__(self, store: Store, options: CrawlOptions) -> None:
        self._options = options
        self.ownership = options.ownership
        """In a cluster: which URLs belong to other shards."""
        self._noise_numbers = {noise: number for number, noise in enumerate(noise_table(options))}
        self._level_numbers = {level: number for number, level in enumerate(options.levels)}
        self._by_origin: dict[str, Server] = {}
        self._by_id: list[Server] = []
        for row in store.sites.all():
            self._add(self._load(row))
        self._by_host: dict[str, Server] = {}
        self.hosts: list[Server] = []
        """Servers that are asked for requisites alone, in the order of their numbers."""
        self._host_row = store.requisites.host
        for number, state, count in store.pages.count_by_state():
            self[number].pages += count
            if state == State.LIVE:
                self[number].live = count
            elif state == State.MISSING:
                self[number].missing = count

    def __getitem__(self, number: int) -> Server:
        return self._by_id[number] if number < _FIRST_HOST else self.hosts[number - _FIRST_HOST]

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Server]:
        return iter(self._by_id)

    def limits(self) -> dict[int, int]:
        """Page limits by site."""
        return {server.id: server.options.limit for server in self if server.options.limit is not None}

    def of(self, origin: str) -> Server:
        """The server of an origin; a new one is created."""
        server = self._by_origin.get(origin)
        if server is None:
            blank = SiteRow(len(self._by_id), origin, -1, b"", 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, "")
            server = self._load(blank)
            server.dirty = True
            self._add(server)
        return server

    def of_url(self, url: str) -> Server:
        """The server of a URL."""
        return self.of(origin(url))

    def of_requisite_url(self, url: str) -> Server:
        """The server of a URL; one without pages is no site, and has a number of its own range for this run."""
        return self._of_requisite(origin(url))

    def _of_requisite(self, origin: str) -> Server:
        server = self._by_origin.get(origin) or self._by_host.get(origin)
        if server is None:
            row = self._host_row(origin) or HostRow(origin, -1, b"", 0.0, 0.0, 0.0)
            number = _FIRST_HOST + len(self.hosts)
            blank = SiteRow(number, origin, *row[1:5], 0.0, row.held_until, 0, 0, 0, 0, "")
            server = self._by_host[origin] = self._load(blank)
            self.hosts.append(server)
        return server

    def take_dirty_hosts(self) -> list[HostRow]:
        """Rows of hosts that have changed since the last call."""
        dirty = [server for server in self.hosts if server.dirty]
        for server in dirty:
            server.dirty = False
        rows = (server.row() for server in dirty)
        return [HostRow(it.origin, *it[2:6], it.held_until) for it in rows]

    def take_dirty(self) -> list[SiteRow]:
        """Rows that have changed since the last call."""
        dirty = [server for server in self._by_id if server.dirty]
        for server in dirty:
            server.dirty = False
        return [server.row() for server in dirty]

    def _add(self, server: Server) -> None:
        self._by_id.append(server)
        self._by_origin[server.origin] = server

    def _load(self, row: SiteRow) -> Server:
        robots = None
        if row.robots_status >= 0:
            robots = Robots.from_answer(
                row.robots_status,
                row.robots_body,
                row.robots_at,
                agent=self._options.agent_of(row.origin),
                max_age=self._options.robots_age,
                failure=row.robots_status == 0,
                held_since=row.robots_held,
            )
        return Server(
            id=row.id,
            origin=row.origin,
            robots=robots,
            trust=ValidatorTrust(row.lm_good, row.lm_bad, row.etag_good, row.etag_bad),
            habits=RedirectHabits.load(row.habits),
            options=self._options.of_site(row.origin),
            noise=self._noise_numbers[self._options.noise(row.origin)],
            level=self._level_numbers[self._options.level(row.origin)],
            sitemap_at=row.sitemap_at,
            held_until=row.held_until if remaining(row.held_until, self._options.timer(), MAX_RETRY_AFTER) else 0.0,
            requisites=self._options.requisite_level(row.origin),
            render=self._options.of_site(row.origin).render or self._options.render,
            screenshots=self._options.of_site(row.origin).screenshots or self._options.screenshots,
        )


def noise_table(options: CrawlOptions) -> list[Noise]:
    """The noise filters in use, each once; `Server.noise` and `Task.noise` are positions in this list."""
    return list(dict.fromkeys([options.noise(""), *options.noises.values()]))
