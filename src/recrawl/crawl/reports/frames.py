"""What was learned as the frame of a site, and which lines of a change belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.content.judge import NOTHING, ContentChange, content_words, judge
from recrawl.compare.content.lines import Line
from recrawl.compare.noise.filters import Noise
from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.crawl.visits.stored_text import StoredText, read_lines
from recrawl.errors import DamagedRecord, Unreadable
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage

if TYPE_CHECKING:
    from recrawl.compare.diff import Hunk

_MAX_MEMBERS = 12
"""Pages whose lines are read to show a frame."""
_MIN_PAGES = 2
_FRAME_SHARE = 0.2
"""A line on more of a site's pages is quoted only if nothing else matches."""


class FrameLine(NamedTuple):
    """A line that stands on several pages of a site."""

    text: str
    pages: int
    of: int
    """Pages that were counted."""


def frame_of(repository: Storage, site: int) -> SiteFrame:
    """What was learned about a site; empty if nothing was."""
    data = repository.store.sites.frame(site)
    return SiteFrame.unpack(data) if data else SiteFrame()


def frame_lines(repository: Storage, site: int, noise: Noise, limit: int) -> list[FrameLine]:
    """The lines of a site's frame, those on most pages first."""
    frame = frame_of(repository, site)
    found: dict[int, FrameLine] = {}
    for page in list(frame.members)[:_MAX_MEMBERS]:
        version = repository.store.versions.pick(page, None)
        try:
            _, headers, body = repository.body(version) if version else (0, (), b"")
            texts = read_lines(body, headers, noise)
        except (DamagedRecord, Unreadable):
            continue
        for text in texts:
            key = Line.of(text).key
            pages = frame.census.count(key)
            if pages >= _MIN_PAGES:
                found.setdefault(key, FrameLine(text, pages, frame.census.pages))
    return sorted(found.values(), key=lambda line: (-line.pages, line.text))[:limit]


def content_first(texts: Sequence[str], frame: SiteFrame) -> str:
    """The lines of a page as one text: first those of its own, then those that most pages of the site share."""
    shared = max(_MIN_PAGES, _FRAME_SHARE * frame.census.pages)
    own: list[str] = []
    others: list[str] = []
    for text in texts:
        (others if frame.census.count(Line.of(text).key) > shared else own).append(text)
    return " ".join([*own, *others])


class VersionDifference(NamedTuple):
    """What changed between two stored versions of a page."""

    verdict: ContentChange
    hunks: list[Hunk]
    """Changed lines with context; those of the frame are marked."""
    divergence: float
    """The share of words that differ."""


def compare_versions(repository: Storage, old: VersionRow, new: VersionRow, noise: Noise) -> VersionDifference:
    """Compare two stored versions of a page; raises `DamagedRecord` or `Unreadable` if one cannot be read."""
    from recrawl.compare.diff import diff, with_frame  # lazy: a search compares nothing
    from recrawl.compare.divergence import divergence  # lazy: as above

    before, after = (StoredText(body, headers, noise) for _, headers, body in map(repository.body, (old, new)))
    old_lines, new_lines = before.shown_lines(noise), after.shown_lines(noise)
    hunks = diff([line.text for line in old_lines], [line.text for line in new_lines])
    verdict, framed = _judge(repository, new.page, before.lines(noise), after.lines(noise))
    parts = {line.text: line.parts for line in (*old_lines, *new_lines)}
    hunks = with_frame(hunks, lambda text: all(Line.of(part).key in framed for part in parts[text]))
    return VersionDifference(verdict, hunks, divergence(before.text, after.text))


def _judge(
    repository: Storage, page: int, before: list[Line] | None, after: list[Line] | None
) -> tuple[ContentChange, set[int]]:
    """The verdict on a change, and the keys of its lines that are frame; pages that are not HTML have no frame."""
    if before is None or after is None:
        return NOTHING, set()
    from recrawl.compare.content.changed_lines import changed_lines  # lazy: a search compares nothing

    frame = frame_of(repository, repository.store.pages.get(page).site)
    changes = changed_lines(before, after)
    known = CensusEvidence(frame.census, counts_new=page in frame.members)
    verdict = judge(changes, content_words(before, after), known)
    return verdict, {change.key for change, score in zip(changes, verdict.scores, strict=True) if score <= 0}
