"""Parameters of URLs that never change a page: learned from copies, left out of new URLs, forgotten when one differs.

A parameter is learned for the URLs of one template of one site, when several pages with it are copies of what the same
URL shows with another value and without it, and none is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from recrawl.learn.shocks.url_templates import url_template

FEWEST = 5
"""Copies that teach a parameter."""


class IdleParameter(NamedTuple):
    """A parameter that does not change the pages of a template."""

    place: str
    """The scheme and the template of the URLs."""
    name: str
    copies: int
    """Pages that have shown it."""


def learn_parameters(
    pages: Iterable[tuple[str, int]], group_of: Callable[[Sequence[str]], Sequence[int]]
) -> list[IdleParameter]:
    """The parameters that never changed a page, from the URLs with a query and the number of the group of each page.

    `group_of` returns the same for other URLs; 0 for one that is no page.

    >>> urls = [(f"https://a.example/p?from={number}&id={number % 2}", 7 + number % 2) for number in range(8)]
    >>> learn_parameters(urls, lambda urls: [7 if url.endswith("?id=0") else 0 for url in urls])
    [IdleParameter(place='https a.example/*', name='from', copies=7)]
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for url, group in pages:
        for name, rest in _without_each(url):
            groups[rest, name].append(group)
    bare = {rest for rest, _ in groups}
    plain = dict(zip(bare, group_of([*bare]), strict=True))
    same: dict[tuple[str, str], int] = defaultdict(int)
    without, wrong = set(), set()
    for (rest, name), found in groups.items():
        shown = found + [plain[rest]] * bool(plain[rest])
        place = _place(rest), name
        if len(set(shown)) > 1:
            wrong.add(place)
        elif plain[rest]:
            without.add(place)
        same[place] += len(shown) - 1
    proved = without - wrong
    return sorted(
        IdleParameter(*place, copies) for place, copies in same.items() if copies >= FEWEST and place in proved
    )


class KnownParameters:
    """Leaves parameters that change nothing out of URLs.

    >>> known = KnownParameters([IdleParameter("https a.example/*", "from", 6)])
    >>> known.without("https://a.example/p?from=x&id=2"), known.without("https://a.example/p/q?from=x")
    ('https://a.example/p?id=2', 'https://a.example/p/q?from=x')
    """

    def __init__(self, parameters: Iterable[IdleParameter]) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)
        for place, name, _ in parameters:
            self._names[place].add(name)

    def without(self, url: str) -> str:
        """The URL without parameters that change nothing."""
        if not self._names or "?" not in url:
            return url
        path, _, query = url.partition("?")
        names = self._names.get(_place(path))
        if not names:
            return url
        left = [piece for piece in query.split("&") if piece.partition("=")[0] not in names]
        return f"{path}?{'&'.join(left)}" if left else path


def _place(url: str) -> str:
    return f"{url.partition(':')[0]} {url_template(url)}"


def _without_each(url: str) -> Iterator[tuple[str, str]]:
    """The names of the parameters of a URL, each with the URL without it."""
    path, _, query = url.partition("?")
    pieces = query.split("&")
    for name in dict.fromkeys(piece.partition("=")[0] for piece in pieces):
        left = [piece for piece in pieces if piece.partition("=")[0] != name]
        yield name, f"{path}?{'&'.join(left)}" if left else path
