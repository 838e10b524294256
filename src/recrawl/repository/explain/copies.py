"""Pages with several URLs, whose word about their address is believed, and parameters that change nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from recrawl.crawl.state.copies import claim_records, known_parameters
from recrawl.record.rows import Row
from recrawl.record.storage import Storage


@dataclass(frozen=True, slots=True)
class Copies:
    """What is known of copies."""

    groups: tuple[Row, ...]
    """`url` of the page that stands for the others, and `also`: their URLs; the largest groups first."""
    claims: tuple[Row, ...]
    """By `site` how often pages were `right` and `wrong` about their address, and whether they are `believed`."""
    parameters: tuple[Row, ...]
    """By `place` (scheme and URL template) the `name` of a parameter that changed none of so many `copies`."""

    def as_dict(self) -> Row:
        """As `recrawl noise --copies --json` prints it."""
        return {"groups": list(self.groups), "claims": list(self.claims), "parameters": list(self.parameters)}


def found(storage: Storage, site: str, kept: Collection[str], limit: int) -> Copies:
    """The largest groups, of a site (an origin) or of all if empty; claims and parameters likewise."""
    store = storage.store
    groups = store.pages.groups(site, limit)
    also = store.pages.copies_of([row["id"] for row in groups])
    host = site.partition("://")[2]
    return Copies(
        tuple({"url": row["url"], "also": also.get(row["id"], [])} for row in groups),
        tuple(
            {"site": it.origin, "right": it.right, "wrong": it.wrong, "believed": it.right >= it.wrong}
            for it in claim_records(store)
            if site in ("", it.origin)
        ),
        tuple(
            it._asdict()
            for it in known_parameters(store, kept)
            if not site or it.place.partition(" ")[2].partition("/")[0] == host
        ),
    )
