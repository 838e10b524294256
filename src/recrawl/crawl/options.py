"""Everything the engine may be told, as plain values; the command line fills it from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.crawl.state.weights import EVEN, Weights
from recrawl.discover.scope import Scopes
from recrawl.discover.traps import TrapLimits
from recrawl.discover.urls import DEFAULT_RULES, UrlRules
from recrawl.fetch.http import FetchLimits

ACCEPTED = ("text/*", "application/xhtml+xml", "application/xml", "application/json", "application/*+xml")


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """What the user said about one server."""

    allow_private: bool = False
    delay: float | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the user said about a cycle's budget beyond its size. Under 1 a share of the budget, else a number."""

    bytes: float = 0.0
    """To be received in a cycle; 0 is no limit."""
    site_share: float = 1.0
    """The most of the visits, and of the bytes, that one site may take."""
    least: Mapping[str, float] = field(default_factory=dict)
    """Visits kept for a site, by origin."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Visits that a site may get, by origin."""
    reserve_new: float = 0.0
    reserve_pushed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions:
    """Values for one run of the engine."""

    clock: Callable[[], float]
    """Stamps what is recorded; the demo's runs fast."""
    timer: Callable[[], float]
    """Paces requests; always real."""
    agent: str
    scopes: Scopes
    sites: Mapping[str, SiteOptions] = field(default_factory=dict)
    """By origin."""
    noises: Mapping[str, Noise] = field(default_factory=dict)
    """By origin; '' for every other one."""
    rules: UrlRules = DEFAULT_RULES
    limits: FetchLimits = field(default_factory=FetchLimits)
    traps: TrapLimits = field(default_factory=TrapLimits)
    allow_private: bool = False
    delay: float = 1.0
    max_delay: float = 60.0
    per_server: int = 1
    per_second: float = 0.0
    spending: Spending = field(default_factory=Spending)
    depth_first: bool = False
    content_types: tuple[str, ...] = ACCEPTED
    robots_age: float = 86400.0
    sitemaps: bool = True
    sitemap_age: float = 86400.0
    feed_age: float = 3600.0
    """How old what was read of a feed may be; 0 reads none."""
    redirects: int = 5
    retries: int = 2
    patience: float = 120.0
    """Longest wait for a server that asks us to hold off; after that its pages are left for another time."""
    confirm_seconds: float = 2 * 86400.0
    """How long pages that vanish together must stay away before they count as gone (spec C5)."""
    anchors: tuple[str, ...] = ()
    """Pages that the user named as anchors of their sites (spec A2)."""
    weights: Weights = EVEN
    """How much pages matter, and what visits cost."""
    readers: int = 1
    parse_seconds: float = 5.0
    index: bool = True
    commit_visits: int = 256
    commit_seconds: float = 1.0
    index_seconds: float = 3.0

    def accepts(self, content_type: str) -> bool:
        """Whether a body of this type is wanted; an unknown type is looked at."""
        mime = content_type.partition(";")[0].strip().lower()
        return not mime or any(fnmatch(mime, pattern) for pattern in self.content_types)

    def noise(self, origin: str) -> Noise:
        """The noise filter for a server."""
        return self.noises.get(origin) or self.noises.get("", NO_NOISE)
