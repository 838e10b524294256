"""Open a repository for writing, and turn its settings into the crawler's options; nothing below reads settings."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from recrawl import plugins, settings
from recrawl.compare.levels import parse_level, stored_level
from recrawl.compare.noise.filters import Noise
from recrawl.crawl.options import CrawlOptions, Spending, Weights
from recrawl.discover.scope import Scopes
from recrawl.discover.traps import TrapLimits
from recrawl.discover.urls import UrlRules, origin
from recrawl.errors import UnknownName, UsageError
from recrawl.extras import ZSTD, require
from recrawl.fetch.fetcher import Fetcher, FetchLimits, libcurl
from recrawl.model import ORDERS
from recrawl.record import storage, store
from recrawl.record.archive import GZIP
from recrawl.record.lock import Lock
from recrawl.record.storage import Storage
from recrawl.record.store.leases import Lease
from recrawl.repository.access import access_rules
from recrawl.repository.seed_rules import scopes_of, seed_url, site_options
from recrawl.settings import Settings
from recrawl.times import duration
from recrawl.version import __version__


def check_plugins(options: CrawlOptions, values: Settings) -> None:
    """Raise `UsageError` if a change level or fetcher that the settings name cannot be used."""
    for level in options.levels:
        level.check()
    _fetcher_kind(values["fetcher"])


def make_fetcher(name: str, **options: Any) -> Fetcher:
    """What downloads the pages of a run: libcurl, or a plug-in, which is loaded now."""
    return _fetcher_kind(name)(**options)


def _fetcher_kind(name: str) -> Callable[..., Fetcher]:
    kind: Callable[..., Fetcher] | None = libcurl if name == "http" else plugins.load("fetchers", name)
    if kind is None:
        raise UnknownName("fetcher", name, ["http", *plugins.names("fetchers")])
    return kind


TEMPORARY_ERRORS = store.TEMPORARY_ERRORS


"""What reading and small writes raise while the database is busy; try again."""


_LONGEST_DELAY = 86400.0


_POLL = 0.2


"""Seconds between two tries to take the lock."""


Notify = Callable[[str], None]


"""Takes sentences that people may want to read while a call works."""


def system_clock() -> float:
    """Seconds since 1970."""
    return time.time()


def steady_timer() -> Callable[[], float]:
    """A clock that paces requests: seconds since 1970 now, then evenly on, whatever the system's clock is set to."""
    ahead = time.time() - time.monotonic()
    return lambda: ahead + time.monotonic()


def silent(_: str) -> None:
    """Read nothing."""


def settings_file(folder: Path) -> Path:
    """Path of a repository's `recrawl.toml`."""
    return folder / storage.SETTINGS


def load(folder: Path) -> Settings:
    """A repository's settings."""
    return settings.load(settings_file(folder))


def patience(wait: bool, notify: Notify = silent) -> Callable[[str], bool]:
    """What to do while another process holds the lock: wait and say so once, or give up."""
    told: list[str] = []

    def again(holder: str) -> bool:
        if wait and not told:
            told.append(holder)
            notify(f"waiting for {holder} ...")
        if wait:
            time.sleep(_POLL)
        return wait

    return again


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage rarely: a crawl makes many objects and hardly a reference cycle."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def service_lock(folder: Path) -> Lock:
    """Hold the lock of the service, one at a time for each repository; `RepositoryBusy` if another one holds it."""
    return Lock(folder / "serve.lock", "serve", lambda _: False)


@contextmanager
def held(
    folder: Path,
    what: str,
    options: CrawlOptions,
    values: Settings,
    *,
    wait: Callable[[str], bool] = lambda _: False,
    tell: Notify = silent,
    lease: Lease | None = None,
) -> Iterator[Storage]:
    """Hold the lock, repair what a crashed writer left, and give the storage for writing.

    `wait` is called between tries with the holder of the lock; it returns False to give up. The shard of a cluster is
    written under a lease.
    """
    with _fewer_collections(), Storage(folder) as open_repository:
        prepare(open_repository, what, options, values, wait=wait, tell=tell, lease=lease)
        yield open_repository
        if problem := open_repository.finish():
            tell(problem)


def prepare(
    open_repository: Storage,
    what: str,
    options: CrawlOptions,
    values: Settings,
    *,
    wait: Callable[[str], bool] = lambda _: False,
    tell: Notify = silent,
    lease: Lease | None = None,
) -> None:
    """Make an open repository ready for writing: lock it, and repair what a crashed writer left."""
    check_plugins(options, values)
    roll_bytes, archive_format = int(values["warc_megabytes"]) * 1_000_000, str(values["archive_format"])
    if archive_format != GZIP:
        require(ZSTD)
        if open_repository.remote is not None:
            raise UsageError(
                f"archive_format = '{archive_format}' does not work with an object store, where a record is fetched "
                f"without the dictionary of its file: use '{GZIP}'"
            )
    info = archive_info(options, values)
    open_repository.writing(what, wait, roll_bytes=roll_bytes, info=info, archive_format=archive_format, lease=lease)
    if open_repository.remote is not None and open_repository.remote.problem:
        tell(open_repository.remote.problem)
    if open_repository.index_problem:
        tell(open_repository.index_problem.partition(":")[0] + "; rebuilding it")
    if open_repository.store.meta.get("erasing", ""):
        from recrawl.repository.erasing import finish  # lazy: few repositories are erased from

        finish(open_repository, options)
    from recrawl.crawl.state.reindex import reindex  # lazy: loads what reads pages

    if indexed := reindex(open_repository, options):
        tell(f"brought the index up to date with {indexed:,} pages")


def archive_info(options: CrawlOptions, values: Settings) -> tuple[tuple[str, str], ...]:
    """What the first record of every archive file says about how it was made."""
    contact = " ".join(str(values["contact"]).split())
    return (
        ("software", f"recrawl/{__version__}"),
        *((("operator", contact),) if contact else ()),
        ("robots", "classic (RFC 9309)"),
        ("http-header-user-agent", options.agent),
    )


def options_of(
    values: Settings,
    *,
    allow_private: bool | None = None,
    delay: float | None = None,
    change: str | None = None,
    order: str | None = None,
    clock: Callable[[], float] = system_clock,
    timer: Callable[[], float] | None = None,
) -> CrawlOptions:
    """The crawler's options; the other arguments override settings for this run."""
    if delay is not None and not 0 <= delay <= _LONGEST_DELAY:
        raise UsageError(f"invalid delay {delay:g}; use 0 to {_LONGEST_DELAY:g} seconds")
    if order and order not in ORDERS:
        raise UsageError(f"invalid order '{order}'; use {', '.join(ORDERS)}")
    rules = UrlRules(tracking=tuple(values["tracking"]))
    return CrawlOptions(
        clock=clock,
        timer=timer or steady_timer(),
        checks=bool(os.environ.get("RECRAWL_CHECK")),
        agent=f"recrawl/{__version__}" + (f" (+{values['contact']})" if values["contact"] else ""),
        scopes=Scopes(scopes_of(values.seeds, rules)),
        sites={
            name: replace(
                own,
                private=own.private if allow_private is None else allow_private,
                delay=own.delay if delay is None else delay,
                change=None if change else own.change,
            )
            for name, own in site_options(values.seeds, rules, values["delay"]).items()
        },
        access=access_rules(values.access, rules),
        noises=_noises(values),
        change=parse_level(change) if change else stored_level(values["change"]),
        rules=rules,
        limits=_fetch_limits(values),
        fetcher=partial(make_fetcher, values["fetcher"]),
        traps=TrapLimits(queries=values["max_queries"], children=values["max_folder"]),
        keep_parameters=tuple(values["keep_parameters"]),
        private=bool(allow_private),
        spending=_spending(values, rules),
        delay=values["delay"] if delay is None else delay,
        max_delay=values["max_delay"],
        per_server=max(1, values["per_server"]),
        per_second=values["per_second"],
        order=order or values["order"],
        content_types=tuple(values["content_types"]),
        robots_age=values["robots_hours"] * 3600,
        sitemaps=values["sitemaps"],
        sitemap_age=values["sitemap_hours"] * 3600,
        feed_age=values["feed_hours"] * 3600,
        requisites=settings.requisite_level(values["requisites"]),
        render=values["render"],
        render_seconds=values["render_seconds"],
        render_requests=values["render_requests"],
        screenshots=values["screenshots"],
        screenshot_bytes=settings.size(values["screenshot_bytes"]),
        requisite_budget=values["requisite_budget"],
        requisite_bytes=settings.size(values["requisite_bytes"]),
        requisite_age=values["requisite_hours"] * 3600,
        redirects=values["redirects"],
        retries=values["retries"],
        patience=values["patience"],
        confirm_seconds=values["gone_hours"] * 3600,
        anchors=tuple(values["anchors"]),
        weights=Weights(values["importance"], values["cost"], rules),
        readers=values["readers"] or max(1, (os.cpu_count() or 2) - 1),
        parse_seconds=values["parse_seconds"],
        index=values["index"],
    )


def _fetch_limits(values: Settings) -> FetchLimits:
    return FetchLimits(
        max_bytes=values["max_bytes"],
        connect_seconds=values["connect_timeout"],
        total_seconds=values["timeout"],
        stall_seconds=values["stall"],
    )


def with_bytes(options: CrawlOptions, limit: str) -> CrawlOptions:
    """The options with another byte limit for a cycle, as `200MB`; unchanged if empty."""
    return replace(options, spending=replace(options.spending, bytes=settings.size(limit))) if limit else options


def seconds_of(time_limit: str | float | None) -> float:
    """A time limit as `10m` or in seconds; infinite without one."""
    if time_limit is None or time_limit == "":
        return math.inf
    return duration(time_limit) if isinstance(time_limit, str) else float(time_limit)


def _spending(values: Settings, rules: UrlRules) -> Spending:
    shares = {origin(seed_url(share.site, rules)): share for share in values.shares}
    if len(shares) < len(values.shares):
        raise UsageError("recrawl.toml has two [[share]] parts for one site; join them")
    for site, share in shares.items():
        if 0 < share.at_most < share.at_least and (share.at_most < 1) == (share.at_least < 1):
            raise UsageError(f"the [[share]] of {site} has at_least {share.at_least:g} above at_most {share.at_most:g}")
    kept = sum(share.at_least for share in values.shares if share.at_least < 1)
    if kept + values["reserve_new"] + values["reserve_pushed"] > 1 + 1e-9:
        raise UsageError("reserve_new, reserve_pushed and the at_least of all [[share]] parts add up to more than 1")
    return Spending(
        bytes=settings.size(values["bytes"]),
        site_share=values["site_share"],
        least={site: share.at_least for site, share in shares.items() if share.at_least},
        most={site: share.at_most for site, share in shares.items() if share.at_most},
        reserve_new=values["reserve_new"],
        reserve_pushed=values["reserve_pushed"],
    )


def _noises(values: Settings) -> dict[str, Noise]:
    """One filter per origin: the rules for all sites and its own."""
    everywhere = [rule for rule in values.filters if not rule.site]
    origins = {origin(seed_url(rule.site)) for rule in values.filters if rule.site}
    table = {}
    for where in ["", *sorted(origins)]:
        rules = everywhere + [r for r in values.filters if r.site and origin(seed_url(r.site)) == where]
        noise = Noise(
            tuple(selector for rule in rules for selector in rule.selectors),
            tuple(pattern for rule in rules for pattern in rule.patterns),
            tuple(selector for rule in rules for selector in rule.frame),
            tuple(selector for rule in rules for selector in rule.content),
        )
        noise.check()
        table[where] = noise
    return table
