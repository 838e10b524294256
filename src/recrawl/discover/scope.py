"""The user's scopes: which sites, to what depth, how many pages, which paths (spec K1).

A site is a host and port. http and https of one host are the same site; `www.` is another host unless a redirect of the
seed says otherwise (`Scopes.adopt`). There are three kinds of patterns:

    /docs/*                     a glob on the path, with or without its query
    https://a.example/docs/*    a glob on the whole URL
    re:/[0-9]+$                 a regular expression, searched for in the whole URL

`*` matches slashes too. The seed's own page is always accepted.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

from recrawl.discover.urls import canonical
from recrawl.errors import UsageError
from recrawl.patterns import Pattern, compiled

_ASCII = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "'|^{}`\\")
"""ASCII as in canonical URLs, and the brackets of globs."""


def site(url: str) -> str:
    """Host and port of a canonical URL.

    >>> site("http://a.example:8080/x") == site("https://a.example:8080/")
    True
    """
    start = url.find("//") + 2
    return url[start : url.find("/", start)]


class Patterns:
    """Compiled patterns: those on the whole URL, and those on its path."""

    __slots__ = ("_path", "_whole")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._whole: list[Pattern | re.Pattern[str]] = []
        globs = []
        for pattern in patterns:
            if pattern.startswith("re:"):
                self._whole.append(_regular(pattern))
            elif "://" in pattern:
                self._whole.append(re.compile(_glob(pattern)))
            else:
                globs.append(_glob(pattern))
        self._path = re.compile("|".join(globs)) if globs else None

    def match(self, url: str) -> bool:
        """Whether any pattern matches."""
        if self._path is not None:
            target = url[url.find("/", 8) :]
            if self._path.match(target) or self._path.match(target.partition("?")[0]):
                return True
        return any(expression.search(url) for expression in self._whole)


def _regular(pattern: str) -> Pattern:
    try:
        return compiled(pattern[3:])
    except UsageError as error:
        raise UsageError(f"invalid regular expression '{pattern}': {error}") from error


def _glob(pattern: str) -> str:
    if "://" not in pattern and not pattern.startswith(("/", "*", "?", "[")):
        raise UsageError(
            f"the pattern '{pattern}' can never match; start it with '/' for a path, '*' for anything, "
            "'https://' for a whole URL or 're:' for a regular expression"
        )
    # Canonical URLs are ASCII: /straße/* has to be percent-encoded.
    return rf"\A{fnmatch.translate(quote(pattern, safe=_ASCII))}"


@dataclass(frozen=True, slots=True)
class Scope:
    """One seed and the part of its site to crawl. `limit`, the maximum number of pages, is enforced by the crawler.

    >>> docs = Scope("https://a.example/docs/", depth=3, exclude=("*/print/*",))
    >>> docs.refuses("https://a.example/docs/print/x", 1)
    'excluded'
    >>> docs.refuses("https://b.example/", 1), docs.refuses("http://a.example/y", 4)
    ('other-site', 'too-deep')
    >>> docs.refuses("http://a.example/y", 3)
    """

    seed: str
    depth: int | None = None
    limit: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    site: str = field(init=False, compare=False, repr=False)
    _start: str = field(init=False, compare=False, repr=False)
    _include: Patterns = field(init=False, compare=False, repr=False)
    _exclude: Patterns = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        start = canonical(self.seed)
        if start is None:
            raise UsageError(f"'{self.seed}' is not a valid URL; use https://host/path")
        for name, number in (("depth", self.depth), ("limit", self.limit)):
            if number is not None and number < 0:
                raise UsageError(f"invalid {name} {number} of {self.seed}; use 0 or more")
        object.__setattr__(self, "site", site(start))
        object.__setattr__(self, "_start", start.partition("//")[2])
        object.__setattr__(self, "_include", Patterns(self.include))
        object.__setattr__(self, "_exclude", Patterns(self.exclude))

    def refuses(self, url: str, depth: int) -> str | None:
        """Why a canonical URL at this link depth is out of scope; None if it is in scope."""
        start = url.find("//") + 2
        if url[start : url.find("/", start)] != self.site:
            return "other-site"
        if url[start:] == self._start or url == self.seed:
            return None
        if self.depth is not None and depth > self.depth:
            return "too-deep"
        if self.exclude and self._exclude.match(url):
            return "excluded"
        if self.include and not self._include.match(url):
            return "not-included"
        return None


class Scopes:
    """All scopes; a URL is in scope if it is in any of them.

    When a seed redirects permanently to another host, its scope moves along: `adopt` makes the new host an alias of the
    old one. `aliases` (new site to old) has to be stored.

    >>> scopes = Scopes([Scope("https://a.example/", exclude=("/x/*",))])
    >>> scopes.adopt("https://a.example/", "https://www.a.example")
    >>> scopes.refuses("https://www.a.example/y", 1), scopes.refuses("https://www.a.example/x/1", 1)
    (None, 'excluded')
    """

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self._by_site: dict[str, list[Scope]] = {}
        for scope in scopes:
            self._by_site.setdefault(scope.site, []).append(scope)
        self.aliases: dict[str, str] = {}

    def describe(self) -> list[list[object]]:
        """The scopes as plain values; equal scopes give equal values."""
        return _described(scope for group in self._by_site.values() for scope in group)

    def describe_sites(self) -> dict[str, list[list[object]]]:
        """The scopes of each site as plain values."""
        return {name: _described(group) for name, group in self._by_site.items()}

    def names(self, url: str) -> set[str]:
        """The sites whose scopes decide on a URL: its own, and those that have moved there."""
        name = site(url)
        old = self.aliases.get(name, name)
        return {name, old, self.aliases.get(old, old)}

    def of(self, url: str) -> list[Scope]:
        """The scopes of the URL's site."""
        name = site(url)
        return self._by_site.get(self.aliases.get(name, name), [])

    def knows(self, origin: str) -> bool:
        """Whether the site has a scope."""
        return bool(self.of(origin + "/"))

    def wants_sitemaps(self, origin: str) -> bool:
        """Whether a scope of the site covers more than its seed."""
        return any(scope.depth is None or scope.depth > 0 for scope in self.of(origin + "/"))

    def scope_of(self, seed: str) -> Scope | None:
        """The scope of a seed; None if there is none."""
        return next((scope for scope in self.of(seed) if scope.seed == seed), None)

    def is_seed(self, url: str) -> bool:
        """Whether this is the URL of a seed."""
        return self.scope_of(url) is not None

    def adopt(self, seed: str, origin: str) -> None:
        """Make the host of `origin` an alias of the seed's host."""
        self.aliases[site(origin + "/")] = site(seed)

    def refuses(self, url: str, depth: int) -> str | None:
        """None if a scope accepts the URL, else the reason of the last scope that refused it."""
        name = site(url)
        if name in self.aliases:
            old = self.aliases[name]
            url, name = url.replace(f"//{name}/", f"//{old}/", 1), self.aliases.get(old, old)
        reason: str | None = "other-site"
        for scope in self._by_site.get(name, ()):
            reason = scope.refuses(url, depth)
            if reason is None:
                return None
        return reason


def _described(scopes: Iterable[Scope]) -> list[list[object]]:
    return sorted(([s.seed, s.depth, sorted(s.include), sorted(s.exclude)] for s in scopes), key=str)
