"""The brake: when many pages of a site suddenly show one text, that text is not their content.

It is a login wall, a notice of maintenance, a parked domain. While the brake is on, visits that find this text fail
(`Failure.SHARED_TEXT`): the stored versions stay what search shows, and no change is reported. Any other text is
recorded as usual, and when most pages have their own text again the brake is released.

The pages whose answers showed that there is something to brake were recorded as changed: their former versions go back
into the index (`recrawl.crawl.state.reindex`). The state is kept in the store, so that it outlives the run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from recrawl.record.store import Store

_NOTHING = (b"", b"")
_bytes = bytes.fromhex
_META = "shared-texts"
_RECENT = 20
"""Pages of a site that are considered: those that answered last."""
_FEWEST = 5
"""Pages that must have changed from different texts to the same one; and they must be over half of the recent ones."""
_RELEASE = 4
"""The brake is released when fewer than a quarter of the recent pages show the text."""


class Brake(NamedTuple):
    """A site whose pages share a text, for people."""

    site: int
    since: float
    title: str
    """The title of the page with the shared text."""
    pages: int
    """Pages among the last visited ones that show it."""
    recent: int
    """The last visited pages."""


@dataclass(slots=True)
class _Site:
    """What the pages of a site that answered last show."""

    recent: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """Page to digest of its text and, if it has changed, digest before; the latest last."""
    digest: bytes = b""
    """The text that is refused; empty while the brake is off."""
    since: float = 0.0
    title: str = ""
    recorded: list[int] = field(default_factory=list)
    """Pages that were recorded with the refused text, of which the index holds a former one."""
    changed: int = field(init=False)
    """Recent pages that have changed. Where they are few, as nearly always, there is nothing to look for."""

    def __post_init__(self) -> None:
        self.changed = sum(bool(before) for _, before in self.recent.values())

    def note(self, page: int, digest: bytes, before: bytes) -> None:
        """A page has answered with this text."""
        recent = self.recent
        earlier = recent.pop(page, _NOTHING)[1]
        former = earlier if before in (b"", digest) else before
        recent[page] = (digest, former)
        self.changed += bool(former) - bool(earlier)
        if len(recent) > _RECENT:
            self.changed -= bool(recent.pop(next(iter(recent)))[1])

    def pages(self, digest: bytes) -> list[int]:
        """The recent pages with this text."""
        return [page for page, (text, _) in self.recent.items() if text == digest]

    def suspect(self, digest: bytes) -> int:
        """The number of different texts that have changed to this one."""
        return len({before for text, before in self.recent.values() if text == digest and before})


class SharedTexts:
    """The brakes of all sites. `stored` is what an earlier run has kept."""

    def __init__(self, stored: str = "{}") -> None:
        self._sites = _load(stored)
        self.freed: list[int] = []
        """Pages whose recorded text is no longer refused: the index takes it after all."""
        self.toggled = False
        """Whether a brake was set or released."""

    def take_freed(self) -> list[int]:
        """The pages of `freed`, once."""
        freed, self.freed = self.freed, []
        return freed

    def refuses(self, site: int, page: int, digest: bytes, before: bytes | None, at: float, title: str) -> list[int]:
        """Whether a page has answered with a text that its site's pages suddenly share: then a list with the page and,
        if this answer has shown it, the pages that were recorded with the text. Empty for any other text.

        `before` is the digest of the stored version.
        """
        state = self._sites.get(site)
        if state is None:
            state = self._sites[site] = _Site()
        state.note(page, digest, before or b"")
        if state.digest:
            if _RELEASE * len(state.pages(state.digest)) < len(state.recent):
                self.freed += state.recorded
                state.digest, state.recorded = b"", []
                self.toggled = True
            return [page] if digest == state.digest else []
        if state.changed < _FEWEST or state.suspect(digest) < _FEWEST:
            return []
        same = state.pages(digest)
        if 2 * len(same) <= len(state.recent):
            return []
        state.digest, state.since, state.title = digest, at, title
        state.recorded = [other for other in same if other != page]
        self.toggled = True
        return same

    def stored(self) -> str:
        """The brakes, and the sites where several pages share a text without reaching the limit yet."""
        rows = {
            site: [
                state.digest.hex(),
                state.since,
                state.title,
                [[page, text.hex(), before.hex()] for page, (text, before) in state.recent.items()],
                state.recorded,
            ]
            for site, state in self._sites.items()
            if state.digest or any(state.suspect(text) > 1 for text, before in state.recent.values() if before)
        }
        return json.dumps(rows)


def load_shared_texts(store: Store) -> SharedTexts:
    """The brakes as earlier runs have left them."""
    return SharedTexts(store.meta.get(_META, "{}"))


def save_shared_texts(store: Store, texts: SharedTexts) -> None:
    """Store the brakes, so that they outlive the run."""
    text = texts.stored()
    if text != store.meta.get(_META, "{}"):
        store.meta.set(_META, text)


def refused_texts(store: Store) -> dict[int, bytes]:
    """The digest of the shared text of each site whose brake is on."""
    return {site: state.digest for site, state in _load(store.meta.get(_META, "{}")).items() if state.digest}


def brakes(store: Store) -> list[Brake]:
    """The brakes that are on, by site."""
    return [
        Brake(site, state.since, state.title, len(state.pages(state.digest)), len(state.recent))
        for site, state in sorted(_load(store.meta.get(_META, "{}")).items())
        if state.digest
    ]


def _load(stored: str) -> dict[int, _Site]:
    rows = json.loads(stored)
    return {
        int(site): _Site(
            {page: (_bytes(text), _bytes(before)) for page, text, before in recent},
            *(_bytes(digest), since, title, recorded),
        )
        for site, (digest, since, title, recent, recorded) in rows.items()
    }
