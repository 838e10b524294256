"""The kinds of site. Paces are relative: they multiply the rates of the `SyntheticWorld`.

The paces follow published figures: pages of news sites change about as often as in B (22 % found changed in a uniform
pass) and Q table 4.1 (3 % to 82 % per day), university sites between 2 % and 44 % (Q), commercial and governmental ones
near 0. Over five sites of the five kinds the paces average about 1.
"""

from __future__ import annotations

from dataclasses import dataclass


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
