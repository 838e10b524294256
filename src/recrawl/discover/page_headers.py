"""What the headers of a page say to crawlers: robots directives (X-Robots-Tag) and where it refreshes to (Refresh).

The same rules apply to the `meta` elements `robots` and `refresh`, so `links` uses these functions too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

OUR_NAMES = frozenset({"robots", "recrawl"})
"""Names under which directives are for us."""

_REFRESH = re.compile(r"[\d.]*[;,\s]\s*(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|([^\"'].*))", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"\s*([a-z0-9_.*-]+)\s*:(.*)", re.DOTALL)
_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Directives with a value, which is not the name of a crawler's directive. None of them concerns us."""
_MAX_LENGTH = 10_000
_CANONICAL = re.compile(r"<([^<>]*)>\s*;[^,<]*?\brel\s*=\s*[\"']?\s*canonical\b", re.IGNORECASE)
_DELAY = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?)")
_QUICK = 5.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Directives:
    """Whether links may be followed and whether the page may be found by a search."""

    follow: bool = True
    index: bool = True

    def with_words(self, text: str) -> Directives:
        """These directives and those of a comma- or space-separated list.

        >>> Directives().with_words("NoIndex, noarchive")
        Directives(follow=True, index=False)
        """
        words = set(text.lower().replace(",", " ").split())
        follow = self.follow and not words & {"nofollow", "none"}
        return Directives(follow, self.index and not words & {"noindex", "none"})


def robots_tag(values: Iterable[str]) -> Directives:
    """The directives of all X-Robots-Tag headers of an answer. A list may begin with the crawler that it is for.

    >>> robots_tag(["googlebot: noindex", "recrawl: nofollow"])
    Directives(follow=False, index=True)
    >>> robots_tag(["unavailable_after: Sat, 25 Jun 2010 15:00:00 GMT, noindex"])
    Directives(follow=True, index=False)
    """
    found = Directives()
    for value in values:
        ours = True
        for part in value[:_MAX_LENGTH].lower().split(","):
            named = _NAMED.fullmatch(part)
            if named and named[1] in _WITH_VALUE:
                continue
            if named:
                ours, part = named[1] in OUR_NAMES or named[1] == "*", named[2]  # noqa: PLW2901
            if ours:
                found = found.with_words(part)
    return found


class HeaderLinks(NamedTuple):
    """What the headers of an answer say about the page and its address."""

    robots: Directives = Directives()
    refreshes: tuple[str, ...] = ()
    """Where its Refresh headers lead."""
    moved: str = ""
    """The first of these that a browser follows at once."""
    canonical: str = ""
    """The address that its Link header claims as its own."""


def header_links(headers: Iterable[tuple[str, str]]) -> HeaderLinks:
    """The robots directives, refreshes and the canonical address in the headers of an answer.

    >>> header_links([("X-Robots-Tag", "noindex"), ("Refresh", "0; url=/b")])[:3]
    (Directives(follow=True, index=False), ('/b',), '/b')
    >>> header_links([("Link", "</style.css>; rel=preload, </a>; rel=canonical")]).canonical
    '/a'
    """
    tags: list[str] = []
    refreshes: list[str] = []
    moved = canonical = ""
    for name, value in headers:
        match name.lower():
            case "x-robots-tag":
                tags.append(value)
            case "refresh":
                refreshes.append(refresh_target(value))
                moved = moved or quick_target(value)
            case "link" if not canonical:
                found = _CANONICAL.search(value[:_MAX_LENGTH])
                canonical = found[1].strip() if found else ""
    return HeaderLinks(robots_tag(tags) if tags else Directives(), tuple(refreshes), moved, canonical)


def refresh_target(content: str) -> str:
    """The link in a Refresh header or element; empty if it only reloads the page.

    >>> refresh_target("5; url='/next'"), refresh_target("30")
    ('/next', '')
    """
    match = _REFRESH.match(content.strip())
    return (match[1] or match[2] or match[3] or "") if match else ""


def quick_target(content: str) -> str:
    """The same, if a browser goes there within five seconds: then the page is no page, but a redirect.

    >>> quick_target("0;url=/a"), quick_target("5; /a"), quick_target("30; url=/a"), quick_target("x;url=/a")
    ('/a', '/a', '', '')
    """
    delay = _DELAY.match(content)
    return refresh_target(content) if delay and float(delay[1]) <= _QUICK else ""
