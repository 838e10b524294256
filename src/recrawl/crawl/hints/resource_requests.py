"""Requests for what a server offers besides pages, and the sitemaps of a server while they are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from recrawl.model import Validators


@dataclass(slots=True)
class Fetch:
    """One resource to fetch."""

    kind: str
    server: int
    url: str
    redirects: int = 0
    level: int = 0
    validators: Validators | None = None
    identity: bool = False
    """Without compression, after an answer that could not be decoded."""


@dataclass(slots=True)
class Listing:
    """The sitemaps of one server while they are being read."""

    requested: set[str] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)
    dates: dict[int, float] = field(default_factory=dict)
    periods: dict[int, float] = field(default_factory=dict)
    priorities: dict[int, float] = field(default_factory=dict)
    bad_dates: int = 0
    left: int = 0
    complete: bool = True
    """Whether all sitemaps could be read so far."""
    stopped: bool = False
    """Whether one was not answered, or with a refusal: the pages come next, and the others wait for `sitemap_age`."""
