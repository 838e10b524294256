"""Thin out: take the records of versions that no rule keeps out of the archive; what is known of them stays.

A version that was thinned out keeps its row: when it was recorded, how much had changed, its title. So changes,
figures, estimates and what policies choose are as before; only its body cannot be shown any more. The newest version of
a page, the newest with another text, and all that is tagged `hold` always stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from recrawl.discover.urls import origin
from recrawl.record import warc
from recrawl.record.archive_rewriting import ArchiveCutter
from recrawl.record.storage import Storage
from recrawl.repository.erasing import HOLD, UNFINISHED, ErasePlan, Step, find_places, next_mark, rows_of_file
from recrawl.repository.seed_rules import seed_url
from recrawl.retention import KeepRule, keep_rule, kept
from recrawl.settings import Settings

_KINDS = ("keep", "keep_frame", "keep_screenshots")
Rules = tuple[KeepRule, KeepRule, KeepRule]


@dataclass(frozen=True, slots=True)
class Thinning:
    """What was thinned out, or would be."""

    versions: int = 0
    screenshots: int = 0
    pages: int = 0
    """Pages of which something went."""
    bytes: int = 0
    """Bytes of the archive; of what is planned, without the records of visits."""
    records: int = 0
    files: int = 0
    """Archive files that were written anew."""
    dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl thin --json` prints it."""
        return asdict(self)


class _PageRules:
    """The rules of each page: those of its tags, of its site, of all."""

    def __init__(self, storage: Storage, values: Settings) -> None:
        erasing = storage.store.erasing
        self._default: Rules = _rules([values[name] for name in _KINDS])
        self._held = erasing.tagged(HOLD)
        self._tagged: list[tuple[tuple[set[int], set[int]], Rules]] = []
        self._sites: dict[int, Rules] = {}
        for row in values.keeps:
            rules = _rules([getattr(row, name) or values[name] for name in _KINDS])
            if row.tag:
                self._tagged.append((erasing.tagged(row.tag), rules))
            else:
                number = storage.store.sites.number(origin(seed_url(row.site))) if row.site else None
                self._sites[-1 if number is None else number] = rules

    @property
    def everything(self) -> bool:
        """Whether nothing can go."""
        found = [self._default, *(rules for _, rules in self._tagged), *self._sites.values()]
        return all(rule.everything for rules in found for rule in rules)

    def of(self, page: int, site: int) -> Rules | None:
        """The rules of a page; None if all of it stays."""
        if page in self._held[0] or site in self._held[1]:
            return None
        for (pages, sites), rules in self._tagged:
            if page in pages or site in sites:
                return rules
        return self._sites.get(site, self._default)


def _rules(texts: Sequence[str]) -> Rules:
    versions, frame, screenshots = map(keep_rule, texts)
    return versions, frame, screenshots


def plan(storage: Storage, values: Settings) -> ErasePlan:
    """What no rule keeps."""
    made, erasing = ErasePlan(), storage.store.erasing
    rules = _PageRules(storage, values)
    bodies: list[int] = []
    pictures: list[int] = []
    if not rules.everything:
        shown = erasing.shown()
        sites = dict(_sites(storage))
        for page, group in groupby(erasing.bodies(), itemgetter(0)):
            own = rules.of(page, sites[page])
            rows = list(group)
            for content in (0, 1) if own is not None else ():
                some = [(number, at) for _, number, at, changed in rows if changed == content]
                keep = kept([at for _, at in some], own[1 - content])  # type: ignore[index]
                bodies += [it for (it, _), stays in zip(some, keep, strict=True) if not stays and it not in shown]
        gone = set(bodies)
        for page, found in groupby(erasing.pictures(), itemgetter(0)):
            own, taken = rules.of(page, sites[page]), list(found)
            keep = kept([at for _, _, at, _ in taken], own[2]) if own is not None else [True] * len(taken)
            newest = taken[-1][1]
            pictures += [
                number
                for (_, number, _, version), stays in zip(taken, keep, strict=True)
                if (not stays or version in gone) and number != newest
            ]
    made.bodies, made.screenshots = np.array(bodies, np.int64), np.array(pictures, np.int64)
    find_places(storage, made)
    return made


def _sites(storage: Storage) -> list[tuple[int, int]]:
    book = storage.store.pages.book_columns()["site"]
    return list(enumerate(book.tolist()))


def described(made: ErasePlan, *, dry_run: bool) -> Thinning:
    """What a plan takes out."""
    size = sum(end - start for extents in made.cut.gone.values() for start, end in extents)
    owners = [rows["owner"][np.isin(rows["id"], made.rows[table])] for table, rows in made.places.items()]
    pages = len(np.unique(np.concatenate(owners)))
    return Thinning(len(made.bodies), len(made.screenshots), pages, size, dry_run=dry_run)


def thin(storage: Storage, made: ErasePlan, step: Step) -> Thinning:
    """Take out what is planned, one archive file after the other; the lock is held.

    Each file is written anew and takes the place of the old one in a transaction of its own: one needs room.
    """
    found, store = described(made, dry_run=False), storage.store
    names, lengths = store.warcs.names(), store.warcs.lengths()
    cutter = ArchiveCutter(storage.archive.folder, made.cut, store.erasing.thinned_records(warc.record_id))
    mark, records, size, files = next_mark(storage), 0, 0, 0
    for done, (file, name) in enumerate(sorted(names.items())):
        step("archive files", done, len(names))
        fresh = cutter.rewrite(file, name, lengths[file], mark)
        if fresh is None:
            continue
        rows = rows_of_file(made, file, fresh)
        with store.erasing.transaction():
            store.erasing.erase(rows)
            store.meta.set(UNFINISHED, json.dumps({"files": [name], "thinned": True}))
        (storage.archive.folder / name).unlink()
        store.meta.set(UNFINISHED, "")
        records, size, files = records + fresh.dropped, size + fresh.dropped_bytes, files + 1
    return Thinning(found.versions, found.screenshots, found.pages, size, records, files)
