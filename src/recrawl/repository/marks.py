"""What people attach to pages, sites and changes: tags, read marks, saved filters, requests for a visit.

A target is a page (a URL) or a whole site (`example.org`, or the URL of its origin without a path). None of this needs
the lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from recrawl.discover.urls import origin
from recrawl.errors import NotKnown, UsageError
from recrawl.parameters import ChangeQuery
from recrawl.record.storage import Storage
from recrawl.record.store.marks import WHOLE_SITE
from recrawl.repository.lookup import key_of, origin_of, page_of
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Settings
from recrawl.times import duration

_TAG = re.compile(r"[\w][\w .:/+-]{0,63}")
FILTER_FIELDS = ("site", "path", "since", "until", "least", "what", "significant", "tag", "unread")
"""Fields of a saved filter: those of the dashboard's list of changes."""
_SWITCHES = ("significant", "unread")
_NO = ("0", "false", "no", "off")


class Target(NamedTuple):
    """A page, or a whole site if `page` is `WHOLE_SITE`."""

    site: int
    page: int


def target(storage: Storage, text: str) -> Target:
    """The page or site that a text names; `NotKnown` if it is not in the repository."""
    written = text.strip()
    try:
        path = urlsplit(written if "://" in written else f"https://{written}").path
    except ValueError:
        path = "/"  # the lookup below says what is wrong with it
    if not path:
        number = storage.store.sites.number(origin_of(storage, written))
        assert number is not None
        return Target(number, WHOLE_SITE)
    page = page_of(storage, written)
    return Target(page["site"], page["id"])


def tag(storage: Storage, name: str, targets: Iterable[str]) -> None:
    """Put a tag on pages and sites."""
    checked = checked_tag(name)
    for found in [target(storage, text) for text in targets]:
        storage.store.marks.tag(checked, *found)


def untag(storage: Storage, name: str, targets: Iterable[str]) -> None:
    """Remove a tag from pages and sites; `NotKnown` if one does not have it."""
    for text in targets:
        if not storage.store.marks.untag(name.strip(), *target(storage, text)):
            raise NotKnown(f"{text} has no tag '{name}'; 'recrawl tag' lists the tags")


def checked_tag(name: str) -> str:
    """The name of a tag, if it can be one.

    >>> checked_tag(" to read ")
    'to read'
    """
    clean = name.strip()
    if not _TAG.fullmatch(clean):
        raise UsageError(f"invalid tag '{name}'; use 1 to 64 letters, digits, spaces or . : / + -")
    return clean


def request(storage: Storage, targets: Iterable[str], now: float) -> list[int]:
    """Request a visit to pages, or to all pages of sites; returns the pages."""
    pages: list[int] = []
    for site, page in [target(storage, text) for text in targets]:
        pages += storage.store.marks.pages_to_recheck(site) if page == WHOLE_SITE else [page]
    storage.store.marks.request(pages, now)
    return pages


def due_pages(storage: Storage, values: Settings, now: float) -> list[int]:
    """The pages to visit whatever the policy chooses: requested ones first, then those whose interval is over."""
    found = storage.store.marks.requested()
    for seed in values.seeds:
        site = storage.store.sites.number(origin(seed_url(seed.url))) if seed.every else None
        if site is not None:
            page = storage.store.pages.number(key_of(storage, seed.url)[0]) if seed.depth == 0 else None
            if page is None and seed.depth == 0:
                continue  # not found yet: the next crawl downloads it
            found += storage.store.marks.pages_not_tried_since(site, page, now - interval(seed.every), now)
    return list(dict.fromkeys(found))


def interval(every: str) -> float:
    """Seconds of a seed's interval."""
    seconds = duration(every)
    if seconds < 60:
        raise UsageError(f"invalid interval '{every}'; use 1m or more")
    return seconds


def save_filter(storage: Storage, name: str, fields: dict[str, Any]) -> None:
    """Save a filter of changes under a name."""
    unknown = sorted(set(fields) - set(FILTER_FIELDS))
    if unknown:
        raise UsageError(f"unknown filter field '{unknown[0]}'; use {', '.join(FILTER_FIELDS)}")
    given = {key: fields[key] for key in FILTER_FIELDS if key in fields and fields[key] is not None}
    kept = {key: str(value).strip() for key, value in given.items() if not isinstance(value, bool)}
    kept = {key: text for key, text in kept.items() if text and not (key in _SWITCHES and text.lower() in _NO)}
    kept |= {key: "1" for key in _SWITCHES if key in kept or given.get(key) is True}
    if not kept.get("site", "0").isdigit():
        kept["site"] = str(target(storage, origin_of(storage, kept["site"])).site)
    storage.store.marks.save_filter(checked_tag(name), json.dumps(kept))


def filter_of(storage: Storage, name: str) -> dict[str, str]:
    """The fields of a saved filter, the site by its origin; `NotKnown` if there is none of this name."""
    saved = saved_filters(storage)
    if name not in saved:
        raise NotKnown(f"there is no saved filter '{name}'; 'recrawl changes --saved' lists them")
    fields = saved[name]
    return {**fields, "site": storage.store.sites.get(int(fields["site"])).origin} if fields.get("site") else fields


def query_of(fields: dict[str, str]) -> ChangeQuery:
    """The conditions of a saved filter.

    >>> query_of({"least": "10", "what": "changed", "significant": "1", "site": "https://a.example"})
    {'site': 'https://a.example', 'outcome': 'changed', 'divergence': 0.1, 'significant': True}
    """
    query: Any = {name: fields[name] for name in ("since", "until", "site", "path", "tag") if fields.get(name)}
    query |= {"outcome": fields["what"]} if fields.get("what") else {}
    query |= {"divergence": float(fields["least"]) / 100} if fields.get("least") else {}
    return cast("ChangeQuery", query | {name: True for name in _SWITCHES if fields.get(name)})


def fields_of(query: ChangeQuery) -> dict[str, Any]:
    """The fields of a saved filter with these conditions; the other way round."""
    query_ = {name: value for name, value in query.items() if value}
    least = query_.pop("divergence", None)
    renamed = {"what": query_.pop("outcome", ""), "least": "" if least is None else f"{float(str(least)) * 100:.10g}"}
    return {**query_, **{name: value for name, value in renamed.items() if value}}


def saved_filters(storage: Storage) -> dict[str, dict[str, str]]:
    """The saved filters by name."""
    return {name: json.loads(query) for name, query in storage.store.marks.saved_filters().items()}
