"""URLs that an older version stored in another spelling than today's canonical form.

Rows of pages keep the URL under which they were found, and the keys of lookups are hashes of URLs. When the canonical
form changes, pages in an older spelling would no longer be found, and their URLs would become pages a second time. So
once for each form, all stored URLs are compared with it, and the keys of those that differ are kept in the metadata.
"""

from __future__ import annotations

import json

from recrawl.discover.urls import CANONICAL_FORM, UrlRules, canonical, key, origin
from recrawl.record.store import Store

_META = "old_spellings"


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
