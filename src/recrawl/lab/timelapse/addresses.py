"""From a request's host and path to a page of the archive, and from a page to the URL at which it is served.

Paths are compared with their percent-escapes decoded. As on most web servers, `/dir/` shows `/dir/index.html` and
`/name` shows `/name.html` if the archive has no page of that URL, and `/dir` redirects to `/dir/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

from recrawl.lab.formats.archive import Archive

_SAFE = "/:@!$&'()*+,;=~"
_INDEXES = ("index.html", "index.htm", "index.xhtml")


class Found(NamedTuple):
    """A page; `exact` is false if the request used an alias of its URL."""

    page: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Host:
    """The meaning of a Host header: a site, or None for the list of all sites."""

    site: int | None
    base: str
    """The base URL of links in the response, as `http://host:port`."""


class Addresses:
    """The hosts and paths under which an archive is served."""

    def __init__(self, archive: Archive) -> None:
        # A host name cannot contain a port.
        self.labels = [site.replace(":", "-") for site in archive.sites]
        self._by_label = {label: site for site, label in enumerate(self.labels)}
        self._pages: list[dict[str, int]] = [{} for _ in archive.sites]
        self._aliases: list[dict[str, int]] = [{} for _ in archive.sites]
        self.paths: list[str] = []
        """Per page: the path at which it is served."""
        for page, (url, site) in enumerate(zip(archive.urls, archive.site_of.tolist(), strict=True)):
            path, query = _after_host(url)
            self._pages[site].setdefault(f"{path}?{query}" if query else path, page)
            self.paths.append(self.quoted(path, query))
        for pages, aliases in zip(self._pages, self._aliases, strict=True):
            _add_aliases(pages, aliases)

    def host(self, header: str, port: int) -> Host | None:
        """Return the meaning of a Host header, None if it is no host of the archive."""
        name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
        name = name.lower().rstrip(".")
        if name in ("localhost", "127.0.0.1", "[::1]"):
            return Host(0 if len(self.labels) == 1 else None, f"http://{name}:{port}")
        site = self._by_label.get(name.removesuffix(".localhost"))
        return None if site is None else Host(site, self.base(site, port))

    def base(self, site: int, port: int) -> str:
        """Return the base URL of a site."""
        return f"http://{self.labels[site]}.localhost:{port}"

    def find(self, site: int, path: str, query: str) -> Found | None:
        """Return the page at a path with decoded escapes."""
        key = f"{path}?{query}" if query else path
        page = self._pages[site].get(key)
        if page is not None:
            return Found(page, exact=True)
        page = self._aliases[site].get(key)
        return None if page is None else Found(page, exact=False)

    def served(self, url: str, port: int) -> str | None:
        """Return where a URL of the archive is served, None if its host is not in the archive."""
        host = url.partition("://")[2].partition("/")[0].lower()
        site = self._by_label.get(host.replace(":", "-"))
        if site is None:
            return None
        path, query = _after_host(url)
        return self.base(site, port) + self.quoted(path, query)

    @staticmethod
    def quoted(path: str, query: str) -> str:
        """Return a path with percent-escapes, and its query, if any."""
        return quote(path, safe=_SAFE) + ("?" + query if query else "")


def _after_host(url: str) -> tuple[str, str]:
    """Return the path with decoded escapes, and the query.

    >>> _after_host("https://h.example/a%20b.html?x=1"), _after_host("https://h.example")
    (('/a b.html', 'x=1'), ('/', ''))
    """
    path, _, query = url.partition("://")[2].partition("?")
    return "/" + unquote(path.partition("/")[2]), query


def _add_aliases(pages: dict[str, int], aliases: dict[str, int]) -> None:
    for key, page in pages.items():
        folder, _, name = key.rpartition("/")
        if name in _INDEXES and f"{folder}/" not in pages:
            aliases.setdefault(f"{folder}/", page)
    for key, page in pages.items():
        bare = key.removesuffix(".html")
        if bare != key and not bare.endswith("/") and bare not in pages:
            aliases.setdefault(bare, page)
