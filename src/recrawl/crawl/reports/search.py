"""Full-text search with snippets: the index finds the pages, the archive has their text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recrawl.compare.noise.filters import Noise
from recrawl.crawl.reports.frames import content_first, frame_of
from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.crawl.visits.stored_text import read_lines
from recrawl.discover.urls import key, origin
from recrawl.errors import DamagedRecord, Unreadable
from recrawl.record.index import Hit
from recrawl.record.storage import Storage
from recrawl.record.store import Store


def search(
    repository: Storage,
    query: str,
    noise: Callable[[str], Noise],
    *,
    limit: int = 10,
    site: str = "",
    language: str = "",
    offset: int = 0,
    since: float | None = None,
    until: float | None = None,
) -> list[Hit]:
    """The best pages for a query, with snippets of their content; `noise` gives the noise filter of an origin.

    Of a group of copies there is one, under the URL that stands for it.
    """

    def text(page: int, at: float) -> str:
        return _text(repository, page, at, noise, frames)

    frames: dict[int, SiteFrame] = {}
    table = repository.store.pages
    same = table.representative_of if table.has_copies() else None
    hits = repository.index.search(
        query, limit=limit, site=site, language=language, offset=offset, since=since, until=until, text=text, same=same
    )
    return hits if same is None else _of_groups(repository.store, hits)


def _of_groups(store: Store, hits: list[Hit]) -> list[Hit]:
    """The hits, copies replaced by the pages that they are copies of, each with the URLs of its copies."""
    leaders = store.pages.representative_of([hit.page for hit in hits])
    also = store.pages.copies_of({*leaders.values(), *(hit.page for hit in hits)})
    found = []
    for hit in hits:
        page = leaders.get(hit.page, hit.page)
        if page != hit.page and (row := store.listings.page(key(url := store.pages.get(page).url))):
            shown = replace(hit, page=page, url=url, title=row["title"] or hit.title)
        else:
            shown = hit
        found.append(replace(shown, also=tuple(also.get(page, ()))))
    return found


def _text(
    repository: Storage, page: int, at: float, noise: Callable[[str], Noise], frames: dict[int, SiteFrame]
) -> str:
    """The text of a page at that time, its content before the frame, so that a snippet shows content if it can.

    Empty, hence without snippet, if its body cannot be read.
    """
    version = repository.store.versions.at(page, at)
    if version is None or version.warc not in repository.archive.names:
        return ""
    row = repository.store.pages.get(page)
    if row.site not in frames:
        frames[row.site] = frame_of(repository, row.site)
    try:
        _, headers, body = repository.body(version)
        return content_first(read_lines(body, headers, noise(origin(row.url))), frames[row.site])
    except (DamagedRecord, Unreadable):
        return ""
