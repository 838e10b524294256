"""What a sink is: it takes changes in batches and returns when the receiver has stored them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from recrawl.repository.outgoing import NotSent
from recrawl.repository.results.values import iso

if TYPE_CHECKING:
    from recrawl.record.rows import VersionRow

MAX_CHARACTERS = 4_000_000
"""A batch ends after this much text."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a page: created, changed or removed."""

    id: int
    """Increases with every change of a repository."""
    source: str
    """The repository, as a URN; with `id` it names the change everywhere."""
    url: str
    site: str
    time: datetime
    outcome: str
    """new, changed or gone."""
    title: str = ""
    text: str = ""
    """The visible text; empty for a removal, or if the stored body cannot be read."""
    digest: str = ""
    divergence: float | None = None
    """The share of words that differ from the version before."""
    content: bool | None = None
    """False when only the frame of the site differs."""
    version: VersionRow | None = field(default=None, repr=False, compare=False)
    before: VersionRow | None = field(default=None, repr=False, compare=False)
    """The version before this change."""
    returned: bool = False
    """The page was removed after `before`."""
    text_omitted: bool = False
    """The text is left out, since the receiver takes no body of this size; it is at `url`."""

    @property
    def removed(self) -> bool:
        """Whether the page is gone."""
        return self.outcome == "gone"

    def as_dict(self) -> dict[str, Any]:
        """What receivers get, with the time as text."""
        names = ("id", "source", "url", "site", "outcome", "title", "text", "digest", "divergence", "content")
        omitted = {"text_omitted": True} if self.text_omitted else {}
        return {name: getattr(self, name) for name in names} | {"time": iso(self.time)} | omitted


class Sink(Protocol):
    """A receiver of changes. One that keeps only the newest state of each page has `newest_only = True`."""

    max_events: int
    """Changes in a batch at most; no two are of the same page."""

    def deliver(self, events: Sequence[Event]) -> Mapping[int, NotSent] | None:
        """Deliver a batch; return when the receiver has stored all of it, or why it has not stored some, by `id`.

        Raise `NotSent` if it is not known which ones were stored. Any of them may be sent again, alone or in another
        batch: storing a change again must change nothing.
        """

    def close(self) -> None:
        """Release files and connections."""
