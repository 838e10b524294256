"""Erase pages, sites or old versions: every trace of them, in one transaction that counts, and what follows from it.

1. Plan: which rows go, and which records of the archive. Nothing is written.
2. ArchiveCut: archive files are written anew beside the old ones, without those records.
3. One transaction: rows go, the new files take the place of the old ones, tombstones are set, deletions for sinks are
   put into the outbox, and a note says that the rest is to be done. A crash before it has changed nothing.
4. Finish: the old files go, the index is made anew, kept columns that follow from URLs go, the database file is written
   anew without its free pages. The next command that writes does this after a crash; doing it twice changes nothing.
5. Sinks are told. Until all were, addresses wait in the outbox; then the database file is written anew once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.columns import Ints
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.policy_memory import REMOVAL
from recrawl.crawl.state.reindex import rebuild_index
from recrawl.discover.urls import directory, key, origin
from recrawl.durable_files import sync_folder
from recrawl.errors import NotKnown, UsageError
from recrawl.patterns import compiled
from recrawl.record import warc
from recrawl.record.archive_rewriting import ArchiveCut, ArchiveCutter, FilePlaces, Heir, generation
from recrawl.record.rows import CycleRow, OutboxRow, OutboxState
from recrawl.record.storage import Storage
from recrawl.record.store.location import shards_of, store_url
from recrawl.record.store.sql.tables.erasing import PLACED, RowsToErase, erased_url, is_erased, no_rows, removal
from recrawl.record.tombstones import TOMBSTONES, Tombstones
from recrawl.record.traces import urls_in
from recrawl.repository.lookup import key_of, origin_of
from recrawl.repository.opening import load, settings_file
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.sinks.receiver import entries_of
from recrawl.repository.turns import abandon_cycle
from recrawl.settings import Settings, changing, write_seeds

UNFINISHED = "erasing"
"""The name of the value that says what an erasure has left to do."""
LOG = "erasures"
"""The name of the value with the log of all erasures."""
_EVER = float("inf")
_DERIVED = ("url-keys.npz", "url-templates.npz")
"""Files of `models/` that follow from URLs; they are made anew."""
_OWN = ("archive", "index", "models", "private", "cache")
_OWN_FILES = (
    "recrawl.toml", "recrawl.db", "recrawl.db-wal", "recrawl.db-shm", "store.toml", "archive.toml", "lock",
    "serve.lock",
)  # fmt: skip
Step = Callable[[str, int, int], None]
"""Gets what is done, how much of it, and how much there is."""


@dataclass(frozen=True, slots=True)
class ToErase:
    """What is to be erased."""

    pages: tuple[int, ...] = ()
    """Altogether, but for those in `older`."""
    sites: tuple[int, ...] = ()
    """Altogether."""
    before: float | None = None
    """Of the pages, only what is older than this."""
    requisites: tuple[int, ...] = ()
    """Requisites that are no pages."""
    lifted: tuple[str, ...] = ()
    """Addresses that were erased before."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure has taken out, or would."""

    pages: int = 0
    versions: int = 0
    screenshots: int = 0
    requisites: int = 0
    """Files that nothing else needs."""
    sites: int = 0
    records: int = 0
    """Records of the archive."""
    bytes: int = 0
    """Their bytes in the archive."""
    files: int = 0
    """Archive files that were written anew."""
    tombstones: int = 0
    """Addresses that are kept from coming back."""
    lifted: int = 0
    """Addresses that are no longer kept from coming back."""
    seeds: tuple[str, ...] = ()
    """Removed from recrawl.toml."""
    copies: tuple[str, ...] = ()
    """Pages with the same content under other addresses; they stay."""
    waiting: dict[str, int] = field(default_factory=dict)
    """By sink: deletions that it was not told yet."""
    left: tuple[str, ...] = ()
    """Files in the folder that recrawl does not manage; backups and exports elsewhere are not known here."""
    settings: tuple[str, ...] = ()
    """Parts of recrawl.toml that still name an address."""
    urls: tuple[str, ...] = ()
    """The first addresses, of a dry run."""
    dry_run: bool = False
    finished: bool = False
    """Whether nothing of it is left to do."""

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl erase --json` prints it."""
        return asdict(self)


_SHOWN = 100
"""Addresses that a dry run lists."""


HOLD = "hold"
"""The tag of pages and sites of which nothing is thinned out or erased."""


def _check_held(storage: Storage, pages: Iterable[int]) -> None:
    held, sites = storage.store.erasing.tagged(HOLD)
    if not held and not sites:
        return
    owners = storage.store.pages.sites_of(pages)
    found = [page for page, site in owners.items() if page in held or site in sites]
    if found:
        url = storage.store.pages.get(found[0]).url
        raise UsageError(f"{url} is held: remove the tag first with 'recrawl tag --remove {HOLD} {url}'")


def select(
    storage: Storage, urls: Sequence[str], *, site: str = "", matching: str = "", before: float | None = None
) -> ToErase:
    """Find what the arguments name; `NotKnown` if that is nothing."""
    if not (urls or site or matching or before is not None):
        raise UsageError("say what to erase: URLs, --site, --matching or --before")
    if urls and (site or matching):
        raise UsageError("name URLs, or --site and --matching, not both")
    store, tombstones = storage.store, Tombstones(storage.store.meta)
    if urls:
        return replace(_named(storage, urls, tombstones), before=before)
    if site and tombstones.covers(seed_url(site), origin) and store.sites.number(origin(seed_url(site))) is None:
        return ToErase(lifted=(origin(seed_url(site)),))
    wanted = store.sites.number(origin_of(storage, site)) if site else None
    pattern = compiled(matching) if matching else None
    rows = store.pages.scope_rows(None if wanted is None else [wanted])
    pages = tuple(
        row.id for row in rows if not is_erased(row.url) and (pattern is None or pattern.search(row.url) is not None)
    )
    if matching and not pages:
        raise NotKnown(f"no page's URL matches '{matching}'")
    whole = wanted is not None and pattern is None and before is None
    return ToErase(pages, (wanted,) if whole and wanted is not None else (), before)


def _named(storage: Storage, urls: Sequence[str], tombstones: Tombstones) -> ToErase:
    store, pages, requisites, lifted = storage.store, [], [], []
    for url in urls:
        number, clean = key_of(storage, url)
        page, file = store.pages.number(number), store.requisites.find(number)
        if page is not None and not is_erased(clean):
            pages.append(page)
        elif tombstones.covers(clean, origin):
            lifted.append(clean)
        elif file is None:
            raise NotKnown(f"{clean} is not known here; 'recrawl pages' lists what is")
        if file is not None:
            requisites.append(file.id)
    return ToErase(tuple(pages), requisites=tuple(requisites), lifted=tuple(lifted))


# -- the plan --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ErasePlan:
    """Which rows and records go."""

    pages: list[int] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    """Addresses of pages that tombstones are for."""
    origins: list[str] = field(default_factory=list)
    addresses: dict[int, str] = field(default_factory=dict)
    versions: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of other pages."""
    bodies: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Versions of which only the records go."""
    screenshots: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of other pages."""
    requisites: set[int] = field(default_factory=set)
    rows: dict[str, Ints] = field(default_factory=dict)
    """By table: rows with a place in the archive that go."""
    heirs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    cut: ArchiveCut = field(default_factory=ArchiveCut)
    places: dict[str, dict[str, Ints]] = field(default_factory=dict)


def plan(storage: Storage, chosen: ToErase) -> ErasePlan:
    """Which rows and records go."""
    store, made = storage.store, ErasePlan()
    erasing = store.erasing
    origins = {row.id: row.origin for row in store.sites.all()}
    made.origins = [origins[site] for site in chosen.sites]
    if chosen.before is None:
        _whole_pages(storage, chosen, made)
    else:
        made.versions = np.array(erasing.versions_before(chosen.pages, chosen.before), np.int64)
        for _, url, shown in erasing.addresses(chosen.pages):
            made.cut.horizons |= dict.fromkeys(filter(None, (url, shown)), chosen.before)
        made.screenshots = np.array(_screenshots_of(storage, chosen), np.int64)
    made.cut.sites = frozenset(made.origins)
    _requisites(storage, chosen, made)
    find_places(storage, made)
    return made


def _whole_pages(storage: Storage, chosen: ToErase, made: ErasePlan) -> None:
    """The pages that go, with those that are nothing but another address of theirs or a link on them."""
    erasing = storage.store.erasing
    pages = set(chosen.pages)
    while True:
        urls = {url for _, url, _ in erasing.addresses(sorted(pages))}
        more = {*erasing.shown_elsewhere(urls.__contains__), *erasing.led_to(sorted(pages))} - pages
        if not more:
            break
        pages |= more
    made.named = sorted(urls)
    pages |= _found_only_on(storage, pages)
    made.pages = sorted(pages)
    rows = erasing.addresses(made.pages)
    made.addresses = {page: url for page, url, _ in rows}
    shown = {it for _, _, it in rows if it} - set(made.addresses.values())
    shown -= shown & set(erasing.other_addresses(made.pages)) if shown else set()
    made.cut.horizons = dict.fromkeys([*made.addresses.values(), *shown], _EVER)


def _found_only_on(storage: Storage, pages: set[int]) -> set[int]:
    """Pages that only these link to, and that were never stored: their addresses are contents of these."""
    store = storage.store
    found = set(store.erasing.found_on(sorted(pages))) - pages
    if not found:
        return found
    candidates = np.array(sorted(found))
    for page, targets in store.links.below(store.next_id("pages")):
        if page not in pages:
            linked = np.frombuffer(targets, "<i4")
            found.difference_update(candidates[np.isin(candidates, linked)].tolist())
    return found


def _requisites(storage: Storage, chosen: ToErase, made: ErasePlan) -> None:
    """The requisites that go: those of erased addresses, and those that no page needs any more."""
    erasing, gone_pages = storage.store.erasing, set(made.pages)
    urls: dict[int, str] = {}
    targets: dict[int, int] = {}
    for number, target, url in erasing.requisites():
        urls[number] = url
        if target >= 0:
            targets[number] = target
    named = {number for number, url in urls.items() if made.cut.erased(url)} | set(chosen.requisites)
    lost, used = set[int](), set[int]()
    for page, packed in erasing.needed_by_pages():
        (lost if page in gone_pages else used).update(np.frombuffer(packed, "<i4").tolist())
    if lost - used:
        numbers = {url: number for number, url in urls.items()}
        needs: dict[int, set[int]] = {number: {target} for number, target in targets.items()}
        for number, styles, files in erasing.needed_by_stylesheets():
            found = (numbers.get(url) for url in f"{styles}\n{files}".split("\n") if url)
            needs.setdefault(number, set()).update(it for it in found if it is not None)
        made.requisites = (_closure(lost, needs) - _closure(used, needs)) & urls.keys()
    made.requisites |= named
    pages = set(erasing.other_addresses(made.pages)) if made.requisites else set()
    made.cut.horizons |= {urls[it]: _EVER for it in made.requisites if urls[it] not in pages}


def _closure(numbers: set[int], needs: Mapping[int, set[int]]) -> set[int]:
    found, waiting = set(numbers), list(numbers)
    while waiting:
        fresh = needs.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found


def find_places(storage: Storage, made: ErasePlan) -> None:
    """The rows with places in the archive that go, the records that go with them, and who takes over shared bytes."""
    erasing = storage.store.erasing
    for table in PLACED:
        made.places[table] = rows = erasing.places(table)
        if table == "requisite_versions":
            gone = np.isin(rows["owner"], sorted(made.requisites))
        else:
            gone = np.isin(rows["owner"], made.pages)
            more = made.screenshots if table == "screenshots" else np.concatenate((made.versions, made.bodies))
            gone |= np.isin(rows["id"], more)
        made.rows[table] = rows["id"][gone]
        holds = (rows["record"] == rows["id"]) & (rows["length"] > 0)
        holders, stays = rows["id"][gone & holds], ~gone & (rows["length"] > 0)
        taken = {} if table == "versions" else _heirs(storage, table, rows, holders, stays, made)
        for place in np.flatnonzero(gone & holds).tolist():
            file, start, length = (int(rows[name][place]) for name in ("warc", "start", "length"))
            made.cut.gone.setdefault(file, []).append((start, start + length))
            if heir := taken.get(int(rows["id"][place])):
                made.cut.heirs[file, start] = heir
        orphans = np.isin(rows["record"], holders)
        for place in np.flatnonzero(stays & ~orphans).tolist():
            file, start, length = (int(rows[name][place]) for name in ("warc", "start", "length"))
            made.cut.kept.setdefault(file, []).append((start, start + length))


def _screenshots_of(storage: Storage, chosen: ToErase) -> list[int]:
    """The screenshots of pages from before a time."""
    table = storage.store.screenshots
    before = _EVER if chosen.before is None else chosen.before
    return [row.id for page in chosen.pages for row in table.of_page(page, -1) if row.at < before]


def _heirs(
    storage: Storage, table: str, rows: Mapping[str, Ints], holders: Ints, stays: Any, made: ErasePlan
) -> dict[int, Heir]:
    """By holder: the first row that stays and shares its bytes."""
    erasing, store = storage.store.erasing, storage.store
    shared = np.flatnonzero(stays & np.isin(rows["record"], holders))
    heir_of: dict[int, int] = {}
    for place in shared.tolist():
        heir_of.setdefault(int(rows["record"][place]), int(rows["id"][place]))
    made.heirs[table] = [(int(rows["id"][place]), heir_of[int(rows["record"][place])]) for place in shared.tolist()]
    found = {row.id: row for row in erasing.holders(table, heir_of.values())}
    picture = table == "screenshots"
    owners = [row.owner for row in found.values()]
    files = [] if picture else store.requisites.get_many(owners)
    urls = store.pages.urls_of(owners) if picture else {row.id: row.url for row in files}
    taken = {}
    for holder, heir in heir_of.items():
        row = found[heir]
        taken[holder] = Heir(urls[row.owner], row.at, picture)
        if not picture:
            made.cut.originals[warc.sha1_text(row.payload)] = warc.Original(urls[row.owner], row.at, row.payload)
    return taken


# -- carrying it out -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """How it is to be erased."""

    reason: str = ""
    who: str = ""
    forget: bool = False
    """Leave no tombstone."""


def check_possible(storage: Storage) -> None:
    """Raise `UsageError` for a repository from which nothing can be taken out yet."""
    ways = {
        "a cluster": (shards_of(storage.folder), "join it with 'recrawl move --shards 0' first"),
        "an object store": (
            storage.remote is not None,
            "get the archive back with 'recrawl move --archive folder' first, and delete the objects",
        ),
        "a PostgreSQL database": (
            store_url(storage.folder),
            "move it back with 'recrawl move --to sqlite' first, and drop the schema",
        ),
    }
    for place, (there, way) in ways.items():
        if there:
            raise UsageError(f"nothing can be erased or thinned out in {place} yet: {way}")


def is_possible(storage: Storage) -> bool:
    """Whether `check_possible` would not complain."""
    try:
        check_possible(storage)
    except UsageError:
        return False
    return True


def described(storage: Storage, values: Settings, chosen: ToErase, made: ErasePlan, *, dry_run: bool) -> Erasure:
    """What a plan would take out."""
    copies = storage.store.pages.copies_of(made.pages)
    others = {url for urls in copies.values() for url in urls} - set(made.addresses.values())
    return Erasure(
        pages=len(made.pages),
        versions=len(made.rows["versions"]),
        screenshots=len(made.rows["screenshots"]),
        requisites=len(made.requisites),
        sites=len(chosen.sites),
        seeds=tuple(seed.url for seed in _seeds_of(values, made)),
        copies=tuple(sorted(others)),
        left=left_files(storage.folder),
        urls=tuple(list(made.addresses.values())[:_SHOWN]) if dry_run else (),
        dry_run=dry_run,
    )


def _seeds_of(values: Settings, made: ErasePlan) -> list[Any]:
    """The seeds that name an erased page or a page of an erased site."""
    gone = set(made.named)
    return [it for it in values.seeds if seed_url(it.url) in gone or origin(seed_url(it.url)) in made.origins]


def erase(
    storage: Storage,
    values: Settings,
    options: CrawlOptions,
    chosen: ToErase,
    order: Order,
    step: Step,
) -> Erasure:
    """Steps 1 to 3: after this, what was chosen is erased as soon as the next command writes."""
    now = options.clock()
    abandon_cycle(storage, now)
    tombstones = Tombstones(storage.store.meta)
    lifted = tombstones.lift(chosen.lifted) if order.forget else 0
    made = plan(storage, chosen)
    _check_held(storage, {*made.pages, *(chosen.pages if chosen.before is not None else ())})
    report = replace(described(storage, values, chosen, made, dry_run=False), lifted=lifted)
    number = len(log(storage)) + 1
    rows, files, cut = cut_files(storage, made, chosen.sites, step)
    if not order.forget and chosen.before is None:
        named = {*made.named, *(row.url for row in storage.store.requisites.get_many(chosen.requisites))}
        named = {url for url in named if origin(url) not in made.origins}
        tombstones.add(number, named, made.origins)
        report = replace(report, tombstones=len(named) + len(made.origins))
    report = replace(report, records=cut[0], bytes=cut[1], files=len(files))
    removed = _removals(storage, made, now)
    rows = rows._replace(removals=removed[0], run=removed[1], outbox=_deletions(values, made, removed[0], number, now))
    with storage.store.erasing.transaction():
        storage.store.erasing.erase(rows)
        _forget_texts(storage, made)
        tombstones.save()
        _note(storage, report, order, now, number)
        rest = {"erasure": number, "files": files, "seeds": report.seeds, "cleaned": False}
        storage.store.meta.set(UNFINISHED, json.dumps(rest))
    return replace(report, settings=_naming_settings(storage.folder, made, report.seeds))


def cut_files(
    storage: Storage, made: ErasePlan, sites: Sequence[int], step: Step
) -> tuple[RowsToErase, list[str], tuple[int, int]]:
    """Write the archive files anew; the rows to change, the names of the old files, records and bytes that went."""
    cutter = ArchiveCutter(storage.archive.folder, made.cut)
    mark = next_mark(storage)
    names, lengths = storage.store.warcs.names(), storage.store.warcs.lengths()
    places: dict[str, list[tuple[int, int, int]]] = {table: [] for table in PLACED}
    files: list[tuple[str, int, int]] = []
    old: list[str] = []
    records = size = 0
    for done, (file, name) in enumerate(sorted(names.items())):
        step("archive files", done, len(names))
        fresh = cutter.rewrite(file, name, lengths[file], mark)
        if fresh is None:
            continue
        files.append((fresh.name, fresh.length, file))
        old.append(name)
        records, size = records + fresh.dropped, size + fresh.dropped_bytes
        for table, rows in made.places.items():
            here = (rows["warc"] == file) & (rows["length"] > 0) & ~np.isin(rows["id"], made.rows[table])
            places[table] += _moved(rows, here, fresh.starts)
    addresses = made.addresses.keys()
    placeholders = {page: erased_url(page) for page in addresses}
    owners = storage.store.pages.sites_of(made.pages)
    return (
        RowsToErase(
            pages=made.pages,
            keys=[(key(url), key(directory(url)), url, page) for page, url in placeholders.items()],
            removals=[],
            run=None,
            sites=list(sites),
            touched_sites=sorted(set(owners.values())),
            versions=made.versions.tolist(),
            bodies=made.bodies.tolist(),
            screenshots=made.rows["screenshots"].tolist(),
            requisites=sorted(made.requisites),
            requisite_versions=made.rows["requisite_versions"].tolist(),
            heirs=made.heirs,
            places=places,
            files=files,
            outbox=[],
        ),
        old,
        (records, size),
    )


def next_mark(storage: Storage) -> str:
    """What makes the names of files that are written anew other ones."""
    return f"e{max(map(generation, storage.archive.names.values()), default=0) + 1}"


def rows_of_file(made: ErasePlan, file: int, fresh: FilePlaces) -> RowsToErase:
    """The rows to change when one file alone is written anew, for what is thinned out."""
    here = {table: rows["id"][rows["warc"] == file] for table, rows in made.places.items()}
    own = {table: set(numbers.tolist()) for table, numbers in here.items()}
    places = {}
    for table, rows in made.places.items():
        stay = (rows["warc"] == file) & (rows["length"] > 0) & ~np.isin(rows["id"], made.rows[table])
        places[table] = _moved(rows, stay, fresh.starts)
    return no_rows()._replace(
        bodies=made.bodies[np.isin(made.bodies, here["versions"])].tolist(),
        screenshots=made.screenshots[np.isin(made.screenshots, here["screenshots"])].tolist(),
        heirs={table: [pair for pair in pairs if pair[0] in own[table]] for table, pairs in made.heirs.items()},
        places=places,
        files=[(fresh.name, fresh.length, file)],
    )


def _moved(rows: Mapping[str, Ints], here: Any, starts: Mapping[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Rows of a file with the new start and length of their records."""
    order = sorted(starts)
    found = []
    for place in np.flatnonzero(here).tolist():
        start, length = int(rows["start"][place]), int(rows["length"][place])
        own = [starts[it] for it in order[np.searchsorted(order, start) : np.searchsorted(order, start + length)]]
        found.append((int(rows["id"][place]), own[0][0], sum(size for _, size in own)))
    return found


def _removals(storage: Storage, made: ErasePlan, now: float) -> tuple[list[Any], CycleRow | None]:
    """Visits that say that the pages are gone, of those that were there."""
    store = storage.store
    stored = store.erasing.stored(made.pages)
    if not stored:
        return [], None
    first = store.next_id("visits")
    run = CycleRow(store.next_id("cycles"), REMOVAL, "", 0, 0, now, now, first, store.next_id("pages"))
    return [removal(page, number, run.id, now) for number, (page, _) in enumerate(stored, first)], run


def _deletions(values: Settings, made: ErasePlan, removals: Iterable[Any], number: int, now: float) -> list[OutboxRow]:
    """What sinks are to be told: the only rows that still have the addresses, until the sinks know."""
    rows = []
    for row in removals:
        url = made.addresses[row.page]
        for rule in values.sinks:
            if rule.site and rule.site != origin(url):
                continue
            body = {
                "page": row.page, "visit": row.id, "url": url, "outcome": "gone", "site": origin(url), "at": now,
                "erased": True,
            }  # fmt: skip
            name = entries_of(rule.name)
            entry = (f"{name}:erased-{number}-{row.page}", name, row.page, int(OutboxState.WAITING), 0, None, 0.0, now)
            rows.append(OutboxRow(*entry, json.dumps(body)))
    return rows


def _forget_texts(storage: Storage, made: ErasePlan) -> None:
    """Clear what other rows and values say of the addresses."""
    erasing, meta = storage.store.erasing, storage.store.meta
    cut = made.cut
    paths = [path.decode() for found in cut.paths().values() for path in found]

    def named(text: str) -> bool:
        return any(map(cut.erased, urls_in(text.encode("utf-8", "surrogatepass"))))

    if made.pages or made.requisites:
        erasing.forget_texts(cut.erased, named)
        erasing.forget_robots(cut.paths())
    pages = set(made.pages)
    sites = {str(site) for site in storage.store.pages.sites_of(made.pages).values()}
    hosts = {it.partition("://")[2] for it in made.origins}
    for name, value in erasing.values():
        if not isinstance(value, str) or name in (TOMBSTONES, LOG, UNFINISHED):
            continue
        if name in ("shared-texts", "rendering", "aliases", "unindexable"):
            gone = {"shared-texts": sites, "rendering": set(made.origins), "aliases": hosts}
            away = gone.get(name, {str(page) for page in pages})
            found = json.loads(value)
            kept = {it: what for it, what in found.items() if it not in away}
            if name == "aliases":
                kept = {it: what for it, what in kept.items() if what not in hosts}
            if kept != found:
                meta.set(name, json.dumps(kept))
        elif name == "old_spellings":
            found = json.loads(value)
            found["pages"] = {it: page for it, page in found["pages"].items() if page not in pages}
            meta.set(name, json.dumps(found))
        elif pages and (named(value) or any(it in value for it in (*paths, *hosts))):
            erasing.drop_value(name)


def _note(storage: Storage, report: Erasure, order: Order, now: float, number: int) -> None:
    """Add a line to the log: who, when, why, how much; no address."""
    counted = {name: getattr(report, name) for name in ("pages", "versions", "requisites", "sites", "records", "bytes")}
    line = {"number": number, "at": now, "who": order.who, "reason": order.reason, "forget": order.forget, **counted}
    storage.store.meta.set(LOG, json.dumps([*log(storage), line]))


def log(storage: Storage) -> list[dict[str, Any]]:
    """All erasures: who, when, why, how much."""
    found: list[dict[str, Any]] = json.loads(storage.store.meta.get(LOG, "[]"))
    return found


def _naming_settings(folder: Path, made: ErasePlan, seeds: Sequence[str]) -> tuple[str, ...]:
    """Lines of the settings that name an erased address beside its seed; only the user can change them."""
    lines = settings_file(folder).read_text(encoding="utf-8").split("\n")
    needles = {*made.origins, *made.named}
    return tuple(
        f"line {number}"
        for number, line in enumerate(lines, 1)
        if any(it in line for it in needles) and not any(it in line for it in seeds)
    )


def left_files(folder: Path) -> tuple[str, ...]:
    """Files in the folder of a repository that recrawl does not manage."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        own = name.parts[0] in _OWN or str(name) in _OWN_FILES or path.suffix == ".lock"
        if path.is_file() and not own:
            found.append(str(name))
    return tuple(found)


# -- what follows ----------------------------------------------------------------------------------------------


def waiting(storage: Storage) -> dict[str, int]:
    """By sink: deletions that it was not told yet."""
    return {name.removeprefix("sink:"): number for name, number in storage.store.erasing.waiting_deletions()}


def finish(storage: Storage, options: CrawlOptions, step: Step = lambda _what, _done, _all: None) -> bool:
    """Step 4, and the end of step 5: whether nothing is left to do. The lock is held."""
    store, left = storage.store, json.loads(storage.store.meta.get(UNFINISHED, "") or "{}")
    if not left:
        return True
    told = not store.erasing.waiting_deletions()
    if seeds := set(left.pop("seeds", ())):
        path = settings_file(storage.folder)
        with changing(path):
            write_seeds(path, tuple(seed for seed in load(storage.folder).seeds if seed.url not in seeds))
        store.meta.set(UNFINISHED, json.dumps(left))
    for name in left["files"]:
        (storage.archive.folder / name).unlink(missing_ok=True)
    sync_folder(storage.archive.folder)
    if left.get("thinned"):  # nothing was to be forgotten: the database uses its free pages again
        store.meta.set(UNFINISHED, "")
        return True
    if not left["cleaned"]:
        for name in _DERIVED:
            (storage.folder / "models" / name).unlink(missing_ok=True)
        rebuild_index(storage, options, lambda done, pages: step("index", done, pages))
    if told or not left["cleaned"]:
        step("database", 0, 1)
        store.compact()
        store.meta.set(UNFINISHED, "" if told else json.dumps({**left, "files": [], "cleaned": True}))
    return told
