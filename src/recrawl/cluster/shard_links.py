"""The links that other shards have found for a shard: taken while it crawls, and before a cycle begins."""

from __future__ import annotations

from collections.abc import Callable

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.redirects import add_aliases, recall_aliases
from recrawl.discover.scope import site
from recrawl.record.store import Store
from recrawl.record.store.postgres.cluster.links import OutboxLink, OutboxLinks

_LINKS = 10_000
"""Links that are taken at once."""


class ShardLinks:
    """The links that wait for a shard (see `recrawl.crawl.given_pages.IncomingLinks`)."""

    def __init__(
        self,
        links: OutboxLinks,
        shard: int,
        store: Store,
        options: CrawlOptions,
        wait: Callable[[], bool] | None = None,
    ) -> None:
        """`wait` waits for links, and returns False if there will be none; without it, none are waited for."""
        self._links, self._shard, self._store, self._scopes = links, shard, store, options.scopes
        self._wait = wait
        self._taken: list[OutboxLink] = []

    def take(self, *, idle: bool) -> list[tuple[str, int]] | None:
        """The links that wait; what they say of sites that have moved is recorded."""
        if idle and (self._wait is None or not self._wait()):
            return None
        self._taken = self._links.waiting(self._shard, _LINKS)
        aliases = {site(link.url): link.alias for link in self._taken if link.alias}
        if aliases:
            add_aliases(self._store, aliases)
            recall_aliases(self._store, self._scopes)
        return [(link.url, link.depth) for link in self._taken]

    def recorded(self) -> None:
        """Remove what was taken."""
        self._links.remove(self._taken)
