"""Everything a crawl or cycle can be configured with, as plain values made from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import chain
from typing import TYPE_CHECKING

from recrawl.columns import DAY, HOUR
from recrawl.compare.levels import CONTENT, ChangeLevel
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.discover.scope import Scopes, site
from recrawl.discover.traps import TrapLimits
from recrawl.discover.urls import DEFAULT_RULES, UrlRules
from recrawl.fetch.access import AccessRule, Profile
from recrawl.fetch.fetcher import Fetcher, FetchLimits, libcurl
from recrawl.model import RequisiteLevel

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from recrawl.child_processes import ChildProcess

ACCEPTED = ("text/*", "application/xhtml+xml", "application/xml", "application/json", "application/*+xml")


StartReader = Callable[[], "tuple[ChildProcess, Connection]"]
"""Returns a new reader process, and our end of its pipe."""


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Options for one site."""

    private: bool = False
    """Whether private and loopback addresses may be requested."""
    delay: float | None = None
    limit: int | None = None
    change: ChangeLevel | None = None
    requisites: RequisiteLevel | None = None
    render: str = ""
    screenshots: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """How a cycle's budget is divided. Values under 1 are shares of the budget, others numbers of visits."""

    bytes: float = 0.0
    """Maximum number of bytes received in a cycle; 0 is no limit."""
    site_share: str = "auto"
    """What one site may take: `auto`, `equal`, or the largest share of the visits and of the bytes."""
    least: Mapping[str, float] = field(default_factory=dict)
    """Minimum visits for a site, by origin."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Maximum visits for a site, by origin."""
    reserve_new: float = 0.0
    reserve_pushed: float = 0.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The settings `importance` and `cost` (see `recrawl.learn.value`)."""

    importance: str = "even"
    cost: str = "visit"
    rules: UrlRules = DEFAULT_RULES

    @property
    def even(self) -> bool:
        """Whether all pages have the same weight and cost."""
        return self.importance == "even" and self.cost == "visit"


EVEN = Weights()
"""The same weight and cost for all pages."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The shard of a cluster that runs, and the shard of each URL."""

    shard: int
    shard_of: Callable[[str], int]
    run: int | None = None
    """The number of the run, which all shards give to their part of it; None for a number of the shard's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions:
    """Options for one run."""

    clock: Callable[[], float]
    """Time of recorded events; runs faster in the demo."""
    timer: Callable[[], float]
    """Paces requests; always real time."""
    agent: str
    scopes: Scopes
    sites: Mapping[str, SiteOptions] = field(default_factory=dict)
    """By site: host and port, as http and https of a host are one site."""
    access: tuple[AccessRule, ...] = ()
    """How to get in; their sites are origins."""
    noises: Mapping[str, Noise] = field(default_factory=dict)
    """By origin; '' for all others."""
    change: ChangeLevel = CONTENT
    """What counts as a change, for sites without a definition of their own."""
    rules: UrlRules = DEFAULT_RULES
    limits: FetchLimits = field(default_factory=FetchLimits)
    fetcher: Callable[..., Fetcher] = libcurl
    """What downloads pages; a plug-in may replace it."""
    outside: bool = False
    """Whether another program downloads: it obeys robots.txt, paces requests and chooses the sites."""
    ownership: Ownership | None = None
    """In a cluster: which URLs belong to other shards; none of their servers is ever requested."""
    traps: TrapLimits = field(default_factory=TrapLimits)
    keep_parameters: tuple[str, ...] = ()
    """Names of query parameters that stay, although they were learned to change nothing."""
    private: bool = False
    """The same for sites that are not named."""
    delay: float = 1.0
    max_delay: float = 60.0
    per_server: int = 1
    per_second: float = 0.0
    spending: Spending = field(default_factory=Spending)
    order: str = "breadth"
    """The order of a crawl: breadth, depth, path or importance (see `recrawl.crawl.state.frontier`)."""
    content_types: tuple[str, ...] = ACCEPTED
    robots_age: float = DAY
    sitemaps: bool = True
    sitemap_age: float = DAY
    feed_age: float = HOUR
    """Seconds after which a feed is read again; 0 reads none."""
    requisites: RequisiteLevel = RequisiteLevel.CSS
    """Which requisites are kept, for sites without a level of their own."""
    render: str = "never"
    """Whether pages are rendered by a browser, for sites that do not say: never, auto or always."""
    render_seconds: float = 60.0
    render_requests: int = 60
    """Most requests of one page that is rendered."""
    screenshots: str = "never"
    """When screenshots are taken, for sites that do not say: never, changed or always."""
    screenshot_bytes: float = 2e6
    requisite_budget: int = 1000
    """Most requests for requisites in a run."""
    requisite_bytes: float = 1e8
    """Bytes of requisites in a run after which no more are requested; 0 is no limit."""
    requisite_age: float = 7 * DAY
    """Seconds after which a requisite is requested again."""
    redirects: int = 5
    retries: int = 2
    patience: float = 120.0
    """Longest wait, in seconds, for a server that asks for a pause; beyond that, its pages are left for another run."""
    confirm_seconds: float = 2 * DAY
    """How long pages that vanish together must be missing before they count as gone (spec C5)."""
    anchors: tuple[str, ...] = ()
    """URLs that the user named as anchors of their sites (spec A2)."""
    weights: Weights = EVEN
    """Importance of pages and cost of visits."""
    readers: int = 1
    start_reader: StartReader | None = None
    """Starts a reader process; None forks this process, or starts another one."""
    parse_seconds: float = 5.0
    index: bool = True
    commit_visits: int = 256
    commit_seconds: float = 1.0
    index_seconds: float = 3.0
    checks: bool = False
    """Whether all invariants of visits are checked after every event (`VisitMachine.validate`)."""

    def client(self, profiles: Callable[[str], Profile | None]) -> Fetcher:
        """What downloads the pages of a run; `profiles` gives how a site is accessed."""
        return self.fetcher(agent=self.agent, limits=self.limits, clock=self.clock, profiles=profiles)

    def owns(self, url: str) -> bool:
        """Whether the server of a URL may be requested: in a cluster, one of another shard may not."""
        return self.ownership is None or self.ownership.shard_of(url) == self.ownership.shard

    def accepts(self, content_type: str) -> bool:
        """Whether a body of this content type is downloaded; an empty type is."""
        mime = content_type.partition(";")[0].strip().lower()
        return not mime or any(fnmatch(mime, pattern) for pattern in self.content_types)

    def of_site(self, origin: str) -> SiteOptions:
        """The options for a server, those of the site that it replaces included; never its `private`."""
        name = site(origin + "/")
        if name in self.sites:
            return self.sites[name]
        former = self.sites.get(self.scopes.aliases.get(name, ""), SiteOptions())
        return replace(former, private=self.private)

    def agent_of(self, origin: str) -> str:
        """The user agent for a server, which also chooses its rules in robots.txt."""
        agents = {site(f"{rule.site}/") if rule.site else "": rule.user_agent for rule in self.access}
        return agents.get(site(f"{origin}/")) or agents.get("") or self.agent

    def level(self, origin: str) -> ChangeLevel:
        """What counts as a change on a server."""
        return self.of_site(origin).change or self.change

    @property
    def levels(self) -> list[ChangeLevel]:
        """The definitions of change in use, each once; `Server.level` and `Task.level` are positions in this list."""
        named = (site.change for site in self.sites.values() if site.change is not None)
        return list(dict.fromkeys([self.change, *named]))

    @property
    def browses(self) -> bool:
        """Whether pages of any site may be loaded by a browser."""
        rules = [(self.render, self.screenshots), *((it.render, it.screenshots) for it in self.sites.values())]
        return any(rule not in ("", "never") for rule in chain.from_iterable(rules))

    def requisite_level(self, origin: str) -> RequisiteLevel:
        """Which requisites of the pages of a server are kept."""
        level = self.of_site(origin).requisites
        return self.requisites if level is None else level

    def noise(self, origin: str) -> Noise:
        """The noise filter for a server."""
        return self.noises.get(origin) or self.noises.get("", NO_NOISE)
