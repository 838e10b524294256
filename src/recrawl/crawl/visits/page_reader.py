"""Text and links of a page, from its bytes. Used by reader processes, and wherever stored pages are read again."""

from __future__ import annotations

from array import array

from recrawl.compare import digest, text
from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.crawl.visits.messages import ReaderConfig, Reading, Task
from recrawl.crawl.visits.stored_text import HTML, header, plain, sniff
from recrawl.discover.links import LinkReader
from recrawl.discover.urls import key

_REMEMBER = 100_000
_FEEDS = 4
"""Feeds of one page that are looked at."""


class PageReader:
    """Turns tasks into readings, without a look at the version before."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._links = LinkReader(config.rules)
        self._keys: dict[str, int] = {}

    def understand(self, task: Task) -> Reading:
        """Text and links of a page; raises `Unreadable` when it must not be parsed."""
        content_type = header(task.headers, "content-type")
        mime = content_type.partition(";")[0].strip().lower() or sniff(task.body)
        noise = self._config.noises[task.noise]
        if not mime.startswith(HTML):
            words, encoding = plain(task.body, content_type, mime, noise)
            of = digest.of_text(words) if encoding else digest.of_payload(task.body)[:16]
            return Reading(task.ticket, mime=mime, encoding=encoding, text=words, digest=of)
        decoded = decode(task.body, content_type)
        tree = parse(decoded.text)
        links = self._links.read(tree, task.url)
        title = text.title(tree)
        words = text.visible(tree, noise)
        return Reading(
            task.ticket,
            mime=mime,
            encoding=decoded.encoding,
            title=title,
            text=words,
            digest=digest.of_text(words),
            urls="\n".join(links.urls),
            keys=self._keys_of(links.urls),
            follow=links.follow,
            searchable=links.index,
            feeds="\n".join(links.feeds[:_FEEDS]),
            updates=links.updates,
        )

    def _keys_of(self, urls: list[str]) -> bytes:
        """Keys of addresses; menus repeat, so most are remembered."""
        try:
            return array("q", map(self._keys.__getitem__, urls)).tobytes()
        except KeyError:
            if len(self._keys) > _REMEMBER:
                self._keys.clear()
            for url in urls:
                if url not in self._keys:
                    self._keys[url] = key(url)
        return array("q", map(self._keys.__getitem__, urls)).tobytes()
