"""What the headers of a page say to crawlers: robots directives (X-Robots-Tag) and where it refreshes to (Refresh).

The same rules apply to the `meta` elements `robots` and `refresh`, so `links` uses these functions too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

OUR_NAMES = frozenset({"robots", "recrawl"})
"""Names under which directives are for us."""

_REFRESH = re.compile(r"[\d.]*[;,\s]\s*(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|([^\"'].*))", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"\s*([a-z0-9_.*-]+)\s*:(.*)", re.DOTALL)
_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Directives with a value, which is not the name of a crawler's directive. None of them concerns us."""
_MAX_LENGTH = 10_000


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


def header_links(headers: Iterable[tuple[str, str]]) -> tuple[Directives, list[str]]:
    """The robots directives of an answer's headers, and the links in its Refresh headers.

    >>> header_links([("X-Robots-Tag", "noindex"), ("Refresh", "0; url=/b")])
    (Directives(follow=True, index=False), ['/b'])
    """
    tags: list[str] = []
    refreshes: list[str] = []
    for name, value in headers:
        match name.lower():
            case "x-robots-tag":
                tags.append(value)
            case "refresh":
                refreshes.append(refresh_target(value))
    return robots_tag(tags) if tags else Directives(), refreshes


def refresh_target(content: str) -> str:
    """The link in a Refresh header or element; empty if it only reloads the page.

    >>> refresh_target("5; url='/next'"), refresh_target("30")
    ('/next', '')
    """
    match = _REFRESH.match(content.strip())
    return (match[1] or match[2] or match[3] or "") if match else ""
