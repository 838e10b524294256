"""Seeds: sites and pages that the user added, and what happens to pages when a seed is removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from recrawl.crawl.cycles import begin_run
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.policy_memory import REMOVAL
from recrawl.crawl.state.rescope import forget_scopes
from recrawl.crawl.visits import results
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.redirects import recall_aliases
from recrawl.discover.urls import canonical, key, origin
from recrawl.errors import NotKnown, UnknownName, UsageError
from recrawl.model import State
from recrawl.record.rows import Batch
from recrawl.record.storage import Storage
from recrawl.record.tombstones import Tombstones
from recrawl.repository.marks import interval
from recrawl.repository.opening import check_plugins, options_of, settings_file
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Seed, Settings, write_seeds

RULES = tuple(item.name for item in fields(Seed) if item.name != "url")
"""Names of the rules of a seed; `clear` takes them."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What adding a URL did."""

    seed: Seed
    """As it is stored now."""
    before: Seed | None
    """As it was stored before; None for a new one."""
    notes: tuple[str, ...]
    """What changed and what stays, in sentences."""

    def __str__(self) -> str:
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        what = "added" if self.before is None else "kept" if self.seed == self.before else "changed"
        return f"{what} {self.seed.url}{notes}"

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl add --json` prints it."""
        return {**asdict(self.seed), "added": self.before is None, "notes": list(self.notes)}


def with_seeds(
    before: Settings, urls: Iterable[str], named: Mapping[str, Any], clear: Iterable[str] = ()
) -> tuple[Settings, list[Addition]]:
    """The settings with these seeds added or changed; invalid ones raise `UsageError` now, not at the next crawl.

    `named` are rules by name; a seed that is there already keeps what it does not name, except the rules in `clear`.
    """
    cleared = {item.name: item.default for item in fields(Seed) if item.name in _checked_names(clear)}
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    stored = {seed.url: seed for seed in before.seeds}
    seeds = dict(stored)
    wanted = dict.fromkeys(map(seed_url, urls))
    for url in wanted:
        seed = replace(stored.get(url, Seed(url)), **{**cleared, **named})
        for name in ("depth", "limit", "delay"):
            value = getattr(seed, name)
            if value is not None and value < 0:
                raise UsageError(f"--{name} cannot be negative, but is {value:g}")
        if seed.every:
            interval(seed.every)
        options_of(Settings(seeds=(seed,)), delay=seed.delay)
        seeds[url] = seed
    after = replace(before, seeds=tuple(seeds.values()))
    options = options_of(after)
    check_plugins(options, after)
    changed = [seed for url, seed in seeds.items() if url in wanted]
    return after, [
        Addition(seed, stored.get(seed.url), tuple(_notes(seed, stored.get(seed.url), options))) for seed in changed
    ]


def _checked_names(names: Iterable[str]) -> set[str]:
    wanted = {name.replace("-", "_") for name in names}
    for name in sorted(wanted - set(RULES)):
        raise UnknownName("rule of a site", name, RULES)
    return wanted


def _notes(seed: Seed, before: Seed | None, options: CrawlOptions) -> list[str]:
    """What changed in a seed, and which rules of its site hold for it although it does not name them."""
    changes = [
        f"{name.replace('_', ' ')}: {_shown(getattr(before, name))} → {_shown(getattr(seed, name))}"
        for name in RULES
        if before is not None and getattr(before, name) != getattr(seed, name)
    ]
    own, scope = options.of_site(origin(seed.url)), options.scopes.scope_of(seed.url)
    notes = [*changes]
    if before is not None and not changes:
        notes.append("already tracked; nothing changes")
    if own.limit is not None and own.limit != seed.limit:
        notes.append(f"the limit of its site is {own.limit:,} pages")
    if own.delay is not None and own.delay != seed.delay:
        notes.append(f"the delay of its site is {own.delay:g} s")
    if scope is not None and scope.depth == 0 and seed.depth is None:
        notes.append("this page only, as its site has rules; name --depth or --include to follow its links")
    return notes


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else str(value)


def add_seeds(
    folder: Path, before: Settings, urls: Iterable[str], named: Mapping[str, Any], clear: Iterable[str] = ()
) -> list[Addition]:
    """Store these seeds, and let the next run visit their pages if they are gone or have moved. Needs no lock."""
    after, added = with_seeds(before, list(urls), named, clear)
    _check_erased(folder, [addition.seed.url for addition in added])
    write_seeds(settings_file(folder), after.seeds)
    _check_seeds(folder, [addition.seed for addition in added])
    return added


def _check_erased(folder: Path, urls: Iterable[str]) -> None:
    with Storage(folder) as storage:
        tombstones = Tombstones(storage.store.meta)
        for url in urls if tombstones else ():
            if tombstones.covers(url, origin):
                raise UsageError(f"{url} was erased: 'recrawl erase --forget {url}' lets it come back")


def _check_seeds(folder: Path, added: Iterable[Seed]) -> None:
    urls = filter(None, (canonical(seed.url) for seed in added))
    with Storage(folder) as storage:
        numbers = (storage.store.pages.number(key(url)) for url in urls)
        pages = [number for number in numbers if number is not None]
        if pages:
            storage.store.pages.check_now(pages)


def without_seeds(before: Settings, urls: Iterable[str]) -> tuple[Settings, set[str]]:
    """The settings without these seeds, and the URLs of the removed seeds."""
    added = {seed.url for seed in before.seeds}
    removed = {_seed_named(url, added) for url in urls}
    unknown = removed - added
    if unknown:
        raise NotKnown(f"{min(unknown)} was never added; 'recrawl sites' lists what was")
    kept = tuple(seed for seed in before.seeds if seed.url not in removed)
    return replace(before, seeds=kept), removed


def _seed_named(url: str, added: set[str]) -> str:
    """The seed that a URL names: without a scheme, whichever of https and http was added."""
    clean = seed_url(url)
    plain = clean.replace("https://", "http://", 1)
    return plain if "://" not in url and clean not in added and plain in added else clean


def _record_removals(storage: Storage, options: CrawlOptions, dropped: Iterable[int]) -> None:
    """Record the removal of pages that have a copy, so that sinks and other readers of changes learn of it."""
    rows = ((page, storage.store.pages.get(page)) for page in dropped)
    stored = [(page, row) for page, row in rows if row.state.state in (State.LIVE, State.MISSING)]
    if not stored:
        return
    run, _ = begin_run(storage.store, options, REMOVAL, "", 0, 0)
    first, at = storage.store.next_id("visits"), options.clock()
    batch = Batch()
    for number, (page, (url, site, depth, listed, state)) in enumerate(stored, first):
        visit = PageVisit(page, url, site, depth, listed, state, None, None, request_url=url)
        done = results.removed(visit, number, run.id, at)
        batch.visits.append(done.visit._replace(detail="removed by the user"))
        batch.states.append(done.state)
    storage.commit(batch, [])
    storage.store.cycles.finish(run.id, at)


def drop_pages(storage: Storage, options: CrawlOptions, removed: Iterable[Seed]) -> int:
    """Drop the pages that only the removed seeds kept in scope; returns their number. Their versions stay."""
    rows = storage.store.pages.not_dropped()
    recall_aliases(storage.store, options.scopes)
    former = options_of(Settings(seeds=tuple(removed))).scopes
    recall_aliases(storage.store, former)
    dropped = [
        page
        for page, url, depth in rows
        if former.refuses(url, depth) is None and options.scopes.refuses(url, depth) is not None
    ]
    _record_removals(storage, options, dropped)
    storage.store.pages.set_states(State.DROPPED, dropped)
    forget_scopes(storage.store)
    for page in dropped if options.index else []:
        storage.index.remove(page)
    storage.commit_index(storage.store.next_id("visits") - 1)
    return len(dropped)
