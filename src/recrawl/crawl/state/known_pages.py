"""The pages of all known URLs, by the keys of the URLs, which are hashes.

A page never gets another key, so large repositories have a file of keys, to which only new pages have to be added:
reading a million keys from the store takes 0.4 s of CPU time. The file is checked against some rows of the store.

Rows of pages keep the URL under which they were found. When the canonical form changes, pages in an older spelling
would no longer be found, and their URLs would become pages a second time. So once for each form, all stored URLs are
compared with it, and the keys of those that differ are kept in the metadata.
"""

from __future__ import annotations

import json

import numpy as np

from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.discover.known_urls import KnownUrls
from recrawl.discover.urls import CANONICAL_FORM, UrlRules, canonical, key, origin
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_META = "old_spellings"
_MIN_ADDED = 100_000
"""New pages for which a file is written; an eighth of the pages in the file if that is more."""
_CHECKED = 128
"""Keys of a file that are compared with the store: as many all over it, and of its last pages."""


def known_urls(repository: Storage, rules: UrlRules) -> KnownUrls:
    """The pages of all known URLs."""
    store, path = repository.store, repository.folder / "models" / "url-keys.npz"
    kept = read_arrays(path) or {}
    if not _fits(kept, store):
        kept = {"key": np.zeros(0, np.int64), "page": np.zeros(0, np.int32)}
    known = KnownUrls(kept["key"], kept["page"])
    with store.scan():
        keys, pages = store.pages.keys(len(kept["page"]))
        known.add_all(keys, pages)
    if len(pages) >= max(_MIN_ADDED, len(kept["page"]) // 8):
        write_arrays(path, dict(zip(("key", "page"), known.columns(), strict=True)))
    for number, page in learn_spellings(store, rules).items():
        if known.get(number) < 0:
            known.add(number, page)
    return known


def _fits(file: Arrays, store: Store) -> bool:
    """Whether the file has the keys of the first pages of the store."""
    if file.keys() != {"key", "page"} or not len(file["page"]) == len(file["key"]) <= store.next_id("pages"):
        return False
    keys, pages, count = file["key"], file["page"], len(file["page"])
    places = np.append(np.flatnonzero(pages >= count - _CHECKED), np.arange(0, count, 1 + count // _CHECKED))
    found = store.pages.keys_of(pages[places].tolist())
    return found == dict(zip(pages[places].tolist(), keys[places].tolist(), strict=True))


def learn_spellings(store: Store, rules: UrlRules) -> dict[int, int]:
    """The pages in older spellings, by the key of today's spelling; looks for them when the form has changed."""
    known = _stored(store)
    if known is not None:
        return known
    found: dict[int, int] = {}
    for page, url in enumerate(store.pages.urls()):
        clean = canonical(url, rules=rules)
        # A page under another origin belongs to another row of `sites`, so it stays a page of its own.
        if clean is not None and clean != url and origin(clean) == origin(url):
            found.setdefault(key(clean), page)
    store.meta.set(_META, json.dumps({"form": CANONICAL_FORM, "pages": found}))
    return found


def old_spelling(store: Store, clean: str) -> str:
    """The URL under which the store knows the page of a canonical URL; the same if it is in no older spelling."""
    page = (_stored(store) or {}).get(key(clean), -1)
    return clean if page < 0 else store.pages.get(page).url


def _stored(store: Store) -> dict[int, int] | None:
    saved = json.loads(store.meta.get(_META, "{}"))
    if saved.get("form") != CANONICAL_FORM:
        return None
    return {int(number): page for number, page in saved["pages"].items()}
