"""The content of a stored version: its tree, judged with what is known of its site, in all forms that leave recrawl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from recrawl.characters import storable
from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.tree.blocks import ContentBlock, ContentTree
from recrawl.compare.tree.documents import read_document
from recrawl.compare.tree.fields import StatedFields
from recrawl.compare.tree.main_content import main_blocks, weigh_site
from recrawl.compare.tree.renderers import html, markdown, plain_text
from recrawl.crawl.reports.frames import frame_of
from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.crawl.visits.stored_text import header, media_type
from recrawl.discover.urls import origin
from recrawl.record.rows import VersionRow
from recrawl.repository.results.values import at, iso

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader

_AI_HEADERS = ("tdm-reservation", "tdm-policy", "content-usage")


@dataclass(frozen=True)
class PageContent:
    """The content of a version, without the frame of its site."""

    url: str
    version: VersionRow
    tree: ContentTree
    fields: StatedFields
    ai_use: str
    """What its headers and the page say about uses by machines; empty if nothing."""

    @cached_property
    def blocks(self) -> list[ContentBlock]:
        """The blocks of the tree that are content."""
        return main_blocks(self.tree)

    @property
    def text(self) -> str:
        """As plain text, a line for each paragraph."""
        return storable(plain_text(self.blocks))

    @property
    def markdown(self) -> str:
        """As Markdown; see `document` for front matter."""
        return storable(markdown(self.blocks))

    @property
    def html(self) -> str:
        """As HTML for a reader: no script, style, image or other element that would be loaded."""
        return html(self.blocks)

    def facts(self) -> dict[str, str]:
        """What is known of the page, without what is not."""
        row, said = self.version, self.fields
        found = {
            "title": said.title or row.title,
            "description": row.description or self.tree.description[:500],
            "author": said.author,
            "language": said.language or row.language,
            "published": _day(said.published, row.published),
            "modified": _day(said.modified, row.updated),
            "url": self.url,
            "canonical": said.canonical,
            "version": iso(at(row.at)),
            "digest": row.digest.hex(),
            "licence": said.licence,
            "ai_use": self.ai_use,
        }
        return {name: storable(" ".join(value.split())) for name, value in found.items() if value}

    def document(self, more: Mapping[str, object] | None = None) -> str:
        """As Markdown with front matter, whose values are written as JSON, which YAML includes."""
        return f"{front_matter({**self.facts(), **(more or {})})}\n{self.markdown}\n"


def front_matter(values: Mapping[str, object]) -> str:
    r"""Values by name, as a file of Markdown begins with them.

    >>> front_matter({"title": "a: b"})
    '---\ntitle: "a: b"\n---\n'
    """
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items()]
    return f"---\n{''.join(lines)}---\n"


class ContentReader:
    """Reads the content of versions, one after the other; remembers the frames of their sites."""

    def __init__(self, repository: Reader) -> None:
        self._repository = repository
        self._frames: dict[int, SiteFrame] = {}

    def read(self, url: str, version: VersionRow) -> PageContent:
        """The content of a version; raises `DamagedRecord` or `Unreadable`."""
        repository = self._repository
        _, headers, body = repository.storage.body(version)
        content_type, mime = media_type(body, headers)
        tomorrow = (at(version.at) + timedelta(days=2)).date()
        tree, stated = read_document(body, content_type, mime, url, tomorrow, repository.noise_filter(origin(url)))
        frame = self._frame(version.page)
        weigh_site(tree, CensusEvidence(frame.census, counts_new=version.page in frame.members))
        stated_use = [f"{name}: {value}" for name in _AI_HEADERS if (value := header(headers, name))]
        robots = [word for word in header(headers, "x-robots-tag").lower().split(",") if "ai" in word.split("-")[0]]
        uses = [*stated_use, *(word.strip() for word in robots), *filter(None, [stated.ai_use])]
        return PageContent(url, version, tree, stated, "; ".join(dict.fromkeys(uses)))

    def _frame(self, page: int) -> SiteFrame:
        site = self._repository.storage.store.pages.get(page).site
        if site not in self._frames:
            self._frames[site] = frame_of(self._repository.storage, site)
        return self._frames[site]


def content_of(repository: Reader, url: str, version: VersionRow) -> PageContent:
    """The content of one version; raises `DamagedRecord` or `Unreadable`."""
    return ContentReader(repository).read(url, version)


def _day(stated: date | None, stored: float | None) -> str:
    if stated is not None:
        return stated.isoformat()
    return at(stored).date().isoformat() if stored is not None else ""
