"""Page and Version: one page of a repository, and what was stored of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recrawl.discover.urls import origin
from recrawl.errors import NotKnown
from recrawl.model import State
from recrawl.record import listings
from recrawl.record.rows import VersionRow
from recrawl.repository.lookup import When, as_text, place_of
from recrawl.repository.results.rows import Rows
from recrawl.repository.results.values import Explanation, Row, Visit, at, flag, iso, utc

if TYPE_CHECKING:
    from recrawl.crawl.reports.frames import VersionDifference
    from recrawl.repository.explain.prediction import Prediction
    from recrawl.repository.reader import Reader
    from recrawl.repository.results.content import PageContent
    from recrawl.repository.results.difference import Difference
    from recrawl.repository.results.pictures import PictureDifference

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Version:
    """One stored version of a page. `body`, `html`, `text`, `headers` and `status` are read from the archive."""

    url: str
    number: int
    """1 is the page's oldest."""
    time: datetime
    """When it was downloaded."""
    changed: bool
    """False when the markup alone differs from the version before."""
    divergence: float | None
    """The share of words that differ from the version before."""
    significant: bool | None
    """Whether the change is significant by the chi-squared test."""
    content: bool | None
    """False when only the frame of the site differs from the version before; None if it was not judged."""
    content_share: float | None
    """The share of the content's words that differ."""
    significance: float | None
    """The probability that a reader calls the change news."""
    new_links: int
    size: int
    """Bytes of the body."""
    title: str
    mime: str
    encoding: str
    language: str
    """The language tag that the page declares, in lower case; empty if it declares none."""
    description: str
    image: str
    """The URL of its picture."""
    published: datetime | None
    updated: datetime | None
    digest: str
    """Of the text without noise, in hexadecimal."""
    rendered: bool
    """Whether the text is that of the page after its scripts had run in a browser."""
    _row: VersionRow = field(repr=False, compare=False)
    _repository: Reader = field(repr=False, compare=False)

    @classmethod
    def of(cls, repository: Reader, row: VersionRow, url: str, number: int) -> Version:
        """From a row of the store."""
        return cls(
            url=url,
            number=number,
            time=at(row.at),
            changed=bool(row.changed),
            divergence=row.divergence,
            significant=flag(row.significant),
            content=flag(row.content),
            content_share=row.content_share,
            significance=row.significance,
            new_links=row.new_links,
            size=row.size,
            title=row.title,
            mime=row.mime,
            encoding=row.encoding,
            language=row.language,
            description=row.description,
            image=row.image,
            published=None if row.published is None else at(row.published),
            updated=None if row.updated is None else at(row.updated),
            digest=row.digest.hex(),
            rendered=bool(row.rendered),
            _row=row,
            _repository=repository,
        )

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._content(plain=True)[0]

    @property
    def headers(self) -> Headers:
        """The response headers, in order."""
        return self._content(plain=True)[1]

    @property
    def body(self) -> bytes:
        """The body as it was received, decompressed."""
        return self._content(plain=True)[2]

    @property
    def html(self) -> str:
        """The body as text."""
        return self.body.decode(self.encoding or "latin-1", "replace")

    @property
    def lines(self) -> list[str]:
        """The visible text by lines, without noise."""
        from recrawl.crawl.visits.stored_text import read_lines  # lazy: loads what parses pages

        _, headers, body = self._content()
        return read_lines(body, headers, self._repository.noise_filter(origin(self.url)))

    @property
    def text(self) -> str:
        """The visible text, without noise."""
        return "\n".join(self.lines)

    @property
    def main_content(self) -> PageContent:
        """The content without the frame of the site: `text`, `markdown`, `html`, `facts()` and `document()`."""
        from recrawl.repository.results.content import content_of  # lazy: loads what parses pages

        return content_of(self._repository, self.url, self._row)

    @property
    def markdown(self) -> str:
        """The content as Markdown, without the frame of the site."""
        return self.main_content.markdown

    @property
    def screenshot(self) -> bytes:
        """The newest screenshot of this version, as PNG; `NotKnown` if there is none."""
        from recrawl.repository.results.pictures import picture_of  # lazy: loads what compares pictures

        return picture_of(self._repository, self._row, self.url)

    @property
    def kind(self) -> str:
        """new, changed, frame only (menus, footers, stamps) or markup only."""
        if self.number == 1:
            return "new"
        if not self.changed:
            return "markup only"
        return "frame only" if self.content is False else "changed"

    def as_dict(self) -> Row:
        """As `recrawl log --json` prints it."""
        return {
            "url": self.url,
            "number": self.number,
            "at": iso(self.time),
            "what": self.kind,
            "divergence": self.divergence,
            "significant": self.significant,
            "content": self.content,
            "content_share": self.content_share,
            "significance": self.significance,
            "size": self.size,
            "title": self.title,
            "rendered": self.rendered,
        }

    def compared_with(self, before: Version) -> VersionDifference:
        """What changed since another version."""
        from recrawl.crawl.reports.frames import compare_versions  # lazy: loads what compares pages

        noise = self._repository.noise_filter(origin(self.url))
        return compare_versions(self._repository.storage, before._row, self._row, noise)

    def _content(self, *, plain: bool = False) -> tuple[int, Headers, bytes]:
        return self._repository.storage.body(self._row, plain=plain)


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was when it was read; `versions`, `visits` and all methods read the repository anew."""

    url: str
    site: str
    state: str
    """found, live, missing, gone, moved, barred or dropped; see `recrawl.model.State`."""
    depth: int
    """Links from the seed."""
    visit_count: int
    """Visits without failures."""
    change_count: int
    failures: int
    """Failed visits in a row."""
    found: datetime
    last_visit: datetime | None
    last_change: datetime | None
    size: int
    """Bytes of the newest version."""
    title: str | None
    """None before the first download."""
    moved_to: str
    """The URL that a moved page redirects to; else empty."""
    id: int
    _repository: Reader = field(repr=False, compare=False)

    @classmethod
    def of(cls, repository: Reader, row: Row) -> Page:
        """From a row of the store."""
        names = ("url", "site", "depth", "failures", "size", "title", "moved_to", "id")
        times = {"found": at(row["found"]), **{name: utc(row[name]) for name in ("last_visit", "last_change")}}
        own = {"state": State(row["state"]).name.lower(), "visit_count": row["visits"], "change_count": row["changes"]}
        values: dict[str, Any] = {**{name: row[name] for name in names}, **times, **own}
        return cls(**values, _repository=repository)

    @property
    def versions(self) -> tuple[Version, ...]:
        """The stored versions, oldest first; empty before the first download."""
        rows = self._repository.storage.store.versions.of_page(self.id)
        return tuple(Version.of(self._repository, row, self.url, number) for number, row in enumerate(rows, 1))

    @property
    def answered_url(self) -> str:
        """The URL that its newest version came from: another one if the page redirects temporarily."""
        return self._repository.storage.store.pages.get(self.id).state.archived_url or self.url

    @property
    def visits(self) -> Rows[Visit]:
        """All visits, newest first."""
        opened = self._repository.opened
        return Rows(Visit, lambda: map(Visit.of, listings.visits_of_page(opened, self.id)))

    def version(self, which: int | When = -1) -> Version:
        """A version by its number (1 is the oldest, -1 the newest), or the one stored at a time."""
        versions = self.versions
        if not versions:
            raise NotKnown(f"{self.url} was never downloaded; 'recrawl why' explains it")
        times = [version.time.timestamp() for version in versions]
        return versions[place_of(times, as_text(which), self._repository.now())]

    @property
    def text(self) -> str:
        """The visible text of the newest version, without noise."""
        return self.version().text

    @property
    def html(self) -> str:
        """The newest version as it was received."""
        return self.version().html

    def diff(self, old: int | When | None = None, new: int | When = -1) -> Difference:
        """What changed between two versions; the last change by default."""
        from recrawl.repository.results.difference import Difference  # lazy: loads what compares pages

        after = self.version(new)
        before = self.version(max(1, after.number - 1) if old is None else old)
        verdict, hunks, share = after.compared_with(before)
        return Difference(before, after, share, tuple(hunks), verdict.content, verdict.share, verdict.significance)

    def visual_diff(self, old: int | When | None = None, new: int | When = -1) -> PictureDifference:
        """What changed between the screenshots of two versions; the last change by default. Needs Pillow."""
        from recrawl.repository.results.pictures import compare_pictures  # lazy: loads what compares pictures

        after = self.version(new)
        before = self.version(max(1, after.number - 1) if old is None else old)
        return compare_pictures(before.screenshot, after.screenshot)

    def why(self) -> Explanation:
        """Why it was visited or not, and whether the next cycle would choose it."""
        return self._repository.why(self.url)

    def predict(self) -> Prediction:
        """How likely it has changed since its last visit."""
        return self._repository.predict(self.url)

    def as_dict(self) -> Row:
        """As `recrawl pages --json` prints it."""
        return {
            "url": self.url,
            "state": self.state,
            "depth": self.depth,
            "visits": self.visit_count,
            "changes": self.change_count,
            "failures": self.failures,
            "found": iso(self.found),
            "last_visit": iso(self.last_visit),
            "last_change": iso(self.last_change),
            "size": self.size,
            "title": self.title,
        }
