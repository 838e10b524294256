"""Sources of hints for a replay: simulated sitemaps, or recorded sitemaps and feeds."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from recrawl.book import Hints
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.formats.hint_files import hint_digest, hint_files
from recrawl.lab.histories.history import LIES, History
from recrawl.lab.replays.recorded_hints import RecordedHints
from recrawl.lab.replays.simulated_hints import SimulatedSitemap, parse_source
from recrawl.parameters import SITEMAP_KINDS


class HintSource(Protocol):
    """Something that is read at the start of every cycle."""

    def read(self, now: float, last_visit: Floats) -> Hints:
        """Return the hints of the book."""

    def listed(self) -> Ints:
        """Return the pages that it makes known, as of the last reading."""


def is_simulated(text: str) -> bool:
    """Whether the text names a simulated sitemap, not a folder."""
    return text.startswith("sitemap:")


def check_hints(text: str) -> None:
    """Raise a UsageError if the text is neither a simulated sitemap nor a folder of hint files."""
    if is_simulated(text):
        parse_source(text)
    elif Path(text).exists():
        hint_files(Path(text))
    else:
        kinds = ", ".join(SITEMAP_KINDS)
        raise UsageError(f"invalid hints '{text}'; use a folder of hint files, or sitemap: followed by {kinds}")


def hint_source(history: History, text: str, seed: int) -> HintSource:
    """Return the source that the text names; an adversary that lies has a sitemap of its own."""
    liars = history.facts.get(LIES)
    if liars is not None and text and not is_simulated(text):
        raise UsageError("an adversary that lies cannot stand beside recorded hints; use --hints sitemap:HOW")
    if is_simulated(text) or liars is not None:
        return SimulatedSitemap(history, text or "sitemap:never", seed, liars)
    return RecordedHints(history, Path(text))


def hints_key(text: str) -> str:
    """Return what results depend on: the text, or the content of the files."""
    return text if not text or is_simulated(text) else hint_digest(Path(text))
