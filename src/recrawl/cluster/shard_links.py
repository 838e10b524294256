"""Links and requisites that other shards have found for a shard.

Links are taken while it crawls, and before a cycle begins; requisites when the pages of its run are done.
"""

from __future__ import annotations

from collections.abc import Callable

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.redirects import add_aliases, recall_aliases
from recrawl.discover.scope import site
from recrawl.record.rows import OutgoingRequisite
from recrawl.record.store import Store
from recrawl.record.store.postgres.cluster.links import OutboxLink
from recrawl.record.store.postgres.cluster.store import ClusterStore

_LINKS = 10_000
"""Links or requisites that are taken at once."""


class ShardLinks:
    """The links that wait for a shard (see `recrawl.crawl.given_pages.IncomingLinks`)."""

    def __init__(
        self,
        cluster: ClusterStore,
        shard: int,
        store: Store,
        options: CrawlOptions,
        wait: Callable[[], bool] | None = None,
    ) -> None:
        """`wait` waits for links, and returns False if there will be none; without it, none are waited for."""
        self._links, self._requisites = cluster.links, cluster.requisites
        self._shard, self._store, self._scopes = shard, store, options.scopes
        self._wait = wait
        self._taken: list[OutboxLink] = []
        self._taken_requisites: list[int] = []

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

    def take_requisites(self) -> list[OutgoingRequisite]:
        """The requisites that wait."""
        found = self._requisites.waiting(self._shard, _LINKS)
        self._taken_requisites = list(found)
        return list(found.values())

    def requisites_recorded(self) -> None:
        """Remove those that were taken."""
        self._requisites.remove(self._taken_requisites)
