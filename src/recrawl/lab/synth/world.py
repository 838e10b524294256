"""The parameters of a synthetic world, each with its default and help.

The command line and the docs read `PARAMETERS`. Where a default comes from a paper, the help cites it: T = Tan 2007,
B = Barbosa 2003, Q = Al-Qaaideh 2009.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from recrawl.errors import UnknownName, UsageError

# --------------------------------------------------------------------------------------------------------------------
# The kinds of site. Paces are relative: they multiply the rates of the `SyntheticWorld`.
#
# The paces follow published figures: pages of news sites change about as often as in B (22 % found changed in a uniform
# pass) and Q table 4.1 (3 % to 82 % per day), university sites between 2 % and 44 % (Q), commercial and governmental
# ones near 0. Over five sites of the five kinds the paces average about 1.


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of site differs from the others."""

    name: str
    sections: tuple[str, ...]
    """Names of its main directories, which are also its menu."""
    change: float
    """Pace of changes to a page."""
    birth: float
    """Pace of new pages."""
    removal: float
    """Pace of removals."""
    early: float
    """Mean number of corrections to a new page in its first hours."""
    latest: int
    """Number of newest pages that the front page links. A news site's front page is its anchor (spec A1)."""
    sidebar: bool
    """Whether all pages show the newest ones in a sidebar."""
    dated: bool
    """Whether the month is a directory in the URL."""
    blocks: tuple[float, float, float, float, float, float]
    """Shares of paragraph, heading, list, table, code and figure."""


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="news",
            sections=("politics", "business", "world", "local", "sports", "culture", "science", "travel"),
            change=1.6,
            birth=3.6,
            removal=0.5,
            early=1.5,
            latest=40,
            sidebar=False,
            dated=True,
            blocks=(0.78, 0.06, 0.04, 0.02, 0.0, 0.10),
        ),
        Kind(
            name="docs",
            sections=("guide", "tutorial", "reference", "howto", "concepts", "releases", "faq"),
            change=0.5,
            birth=0.2,
            removal=0.6,
            early=0.3,
            latest=5,
            sidebar=False,
            dated=False,
            blocks=(0.48, 0.14, 0.12, 0.08, 0.16, 0.02),
        ),
        Kind(
            name="shop",
            sections=("kitchen", "garden", "books", "toys", "tools", "clothing", "music", "outlet", "gifts"),
            change=1.4,
            birth=0.6,
            removal=2.5,
            early=0.2,
            latest=12,
            sidebar=False,
            dated=False,
            blocks=(0.40, 0.08, 0.16, 0.18, 0.0, 0.18),
        ),
        Kind(
            name="blog",
            sections=("notes", "essays", "travel", "code", "photos", "reading"),
            change=0.4,
            birth=0.4,
            removal=0.3,
            early=0.8,
            latest=10,
            sidebar=True,
            dated=True,
            blocks=(0.70, 0.08, 0.06, 0.02, 0.04, 0.10),
        ),
        Kind(
            name="university",
            sections=("research", "study", "people", "library", "campus", "events", "alumni", "faculties"),
            change=1.1,
            birth=0.2,
            removal=1.1,
            early=0.1,
            latest=6,
            sidebar=False,
            dated=False,
            blocks=(0.52, 0.12, 0.16, 0.14, 0.0, 0.06),
        ),
    )
}


# --------------------------------------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """A parameter with its default and help."""

    name: str
    default: int | float | str
    help: str


def _parameter(default: Any, explanation: str) -> Any:
    return field(default=default, metadata={"help": explanation})


@dataclass(frozen=True, slots=True)
class SyntheticWorld:
    """The parameters of a synthetic world.

    >>> SyntheticWorld(sites=2).pages
    200
    >>> SyntheticWorld.of({"days": "7", "kinds": "news=3,blog"}).weights
    {'news': 3.0, 'blog': 1.0}
    """

    seed: int = _parameter(1, "the same seed and parameters give the same bytes")
    start: int = _parameter(1704067200, "first second, since 1970 UTC (a Monday, so that weeks begin with the world)")
    days: float = _parameter(60.0, "length of the history in days")
    sites: int = _parameter(5, "number of sites (T: 210)")
    pages: int = _parameter(200, "pages of a site at the start, lists included (T table 1: 1,100 to 2,000)")
    kinds: str = _parameter("news,docs,shop,blog,university", "kinds of site with weights, as news=2,docs=1")
    change_rate: float = _parameter(
        0.15, "changes a day of a page that changes at all, times its kind's pace (Q: 12 % of pages a day)"
    )
    rate_shape: float = _parameter(
        1.0, "gamma shape of rates among directories, and again among pages: small is more uneven"
    )
    never: float = _parameter(0.3, "share of the pages whose own text never changes")
    folder_updates: float = _parameter(
        6.0, "times a year that about half of a directory is updated at once (T: same directory)"
    )
    template_changes: float = _parameter(3.0, "times a year that a site's template changes, and all its pages with it")
    template_text: float = _parameter(0.5, "share of template changes that alter visible text, not markup alone")
    births: float = _parameter(0.01, "pages born a day, as a share of the pages at the start, times the kind's pace")
    removals: float = _parameter(0.0005, "probability per day that a page is removed, times the kind's pace")
    publications: float = _parameter(24.0, "times per day, at most, at which a site publishes new pages")
    rhythm: float = _parameter(0.7, "strength of day and week: 0 is even, 1 is office hours only")
    noise: float = _parameter(0.04, "share of the pages whose footer has a date and a counter that tick every day")
    sidebar_days: float = _parameter(7.0, "sidebars with the newest pages are rebuilt at most this often")
    size_min: int = _parameter(5_000, "size of the smallest pages in bytes")
    size_max: int = _parameter(60_000, "size of the largest pages in bytes; sizes are log-uniform between")
    links: int = _parameter(60, "links on an ordinary page, about")

    def __post_init__(self) -> None:
        bounds: list[tuple[str, float, float]] = [
            ("seed", 0, 2**63),
            ("start", 0, 2**40),
            ("days", 0.01, 36525),
            ("sites", 1, 1_000_000),
            ("pages", 10, 10_000_000),
            ("change_rate", 0, 1000),
            ("rate_shape", 0.05, 1e6),
            ("publications", 0.01, 86400),
            ("sidebar_days", 0.01, 36525),
            ("size_min", 1000, self.size_max),
            ("size_max", 1000, 10_000_000),
            ("links", 0, 1000),
            *((name, 0, 1) for name in ("never", "template_text", "rhythm", "noise", "removals")),
            *((name, 0, 1000) for name in ("births", "folder_updates", "template_changes")),
        ]
        for name, low, high in bounds:
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise UsageError(f"{name} is {value}; it must lie between {low:g} and {high:g}")
        if not sum(self.weights.values()) > 0:
            raise UsageError("kinds has no kind of site with a weight above 0")

    @property
    def weights(self) -> dict[str, float]:
        """The kinds of site with their weights."""
        found: dict[str, float] = {}
        for part in filter(None, (piece.strip() for piece in self.kinds.split(","))):
            name, _, weight = part.partition("=")
            if name.strip() not in KINDS:
                raise UnknownName("kind of site", name.strip(), KINDS)
            found[name.strip()] = _number("kinds", weight or "1")
        if any(not 0 <= weight < math.inf for weight in found.values()):
            raise UsageError("invalid weight in kinds; use numbers from 0 up")
        return found

    @property
    def end(self) -> int:
        """The first second after the history."""
        return self.start + round(self.days * 86400)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SyntheticWorld:
        """Build a world from texts, as on the command line."""
        defaults = {parameter.name: parameter.default for parameter in PARAMETERS}
        values: dict[str, Any] = {}
        for name, text in given.items():
            if name not in defaults:
                raise UnknownName("parameter", name, defaults)
            values[name] = text if name == "kinds" else _number(name, text, type(defaults[name]))
        return cls(**values)


def _number(name: str, text: str, kind: type = float) -> Any:
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} is '{text}'; it must be {wanted}") from None


_DEFAULT = SyntheticWorld()
PARAMETERS = tuple(Parameter(f.name, getattr(_DEFAULT, f.name), f.metadata["help"]) for f in fields(SyntheticWorld))
"""The table: name, default, help."""
