"""Addresses that cannot exist: what a site answers for one is no page, whatever its status says.

When several URLs of a directory show the same text, the site is asked for one random address beside them, once. If it
answers with that text, or a redirect, every other URL of the site that does the same is missing. A site that answers
404 there, as it should, has told that its equal pages are pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import DAY, Flags, Int32s, Ints
from recrawl.learn.copies.variants import plain_form

AGAIN = 30 * DAY
"""Between two requests for an address that cannot exist of one template."""
MOST_TEMPLATES = 3
"""Templates of a site that are asked for."""
_MOST_GROUPS, _MEMBERS = 8, 4
"""Groups of equal pages of a site that are looked at, and URLs of each."""
_FEWEST_WORDS = 3
"""Words of a text without those of the URL; fewer tell nothing."""
_LEAST_PART = 3
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_EMPTY = np.frombuffer(bytes.fromhex("d41d8cd98f00b204e9800998ecf8427e"), np.uint64)
"""The digest of a page without text."""


class AbsentAnswer(NamedTuple):
    """What a site answers for addresses of a template that cannot exist."""

    at: float
    digest: bytes = b""
    """Of the text of a page; empty for 404, for a redirect, and if no answer came."""
    shape: bytes = b""
    """The same without the words of the URL."""
    target: str = ""
    """The URL that it redirects to."""


class AbsentAddresses:
    """Of all sites: what they answer, and what they are to be asked."""

    def __init__(self, stored: str = "{}") -> None:
        rows = json.loads(stored)
        self._answers: dict[int, dict[str, AbsentAnswer]] = {
            int(site): {
                template: AbsentAnswer(at, bytes.fromhex(digest), bytes.fromhex(shape), target)
                for template, at, digest, shape, target in answers
            }
            for site, (answers, _) in rows.items()
        }
        self._wanted: dict[int, list[str]] = {int(site): wanted for site, (_, wanted) in rows.items() if wanted}

    def want(self, site: int, templates: Iterable[str], at: float) -> None:
        """Ask for these templates in the next run, unless their answer is known."""
        known, wanted = self._answers.get(site, {}), self._wanted.setdefault(site, [])
        for template in templates:
            fresh = template in known and 0 <= at - known[template].at < AGAIN
            if not fresh and template not in wanted and len({*wanted, *known, template}) <= MOST_TEMPLATES:
                wanted.append(template)

    def take(self, site: int) -> list[str]:
        """The templates that the site is to be asked for, once."""
        return self._wanted.pop(site, [])

    def answered(self, site: int, template: str, answer: AbsentAnswer) -> None:
        """A site has answered."""
        self._answers.setdefault(site, {})[template] = answer

    def shows(self, site: int, digest: bytes, shape: bytes = b"") -> bool:
        """Whether a page shows what the site shows for addresses that cannot exist."""
        answers = self._answers.get(site)
        if not answers:
            return False
        return any(
            (digest and digest == answer.digest) or (shape and shape == answer.shape) for answer in answers.values()
        )

    def leads(self, site: int, url: str, target: str) -> bool:
        """Whether a page redirects to where addresses beside it lead that cannot exist."""
        answers = self._answers.get(site)
        if not answers:
            return False
        answer = answers.get(template_of(url))
        return answer is not None and answer.target == target

    def stored(self) -> str:
        """All of it as text."""
        return json.dumps(
            {
                site: [
                    [
                        [template, answer.at, answer.digest.hex(), answer.shape.hex(), answer.target]
                        for template, answer in self._answers.get(site, {}).items()
                    ],
                    self._wanted.get(site, []),
                ]
                for site in sorted({*self._answers, *(site for site, wanted in self._wanted.items() if wanted)})
            }
        )


def template_of(url: str) -> str:
    """A URL with a star where another page of the directory has another name.

    >>> template_of("https://a.example/shop/chairs/oak.html"), template_of("https://a.example/shop/oak/")
    ('https://a.example/shop/chairs/*.html', 'https://a.example/shop/*/')
    >>> template_of("https://a.example/item.php?lang=en&id=7")
    'https://a.example/item.php?lang=en&id=*'
    """
    parts = urlsplit(url)
    if parts.query:
        return f"{url.rpartition('=')[0]}=*" if "=" in parts.query else f"{url.partition('?')[0]}?*"
    slash = "/" if parts.path.endswith("/") and parts.path != "/" else ""
    directory, _, name = parts.path.removesuffix(slash).rpartition("/")
    ending = _ENDING.search(name)
    return f"{parts.scheme}://{parts.netloc}{directory}/*{ending.group() if ending else ''}{slash}"


def absent_address(template: str, at: float) -> str:
    """An address of a template that nobody has made.

    >>> absent_address("https://a.example/shop/*.html", 0.0)
    'https://a.example/shop/no-650329effc65.html'
    """
    return template.replace("*", f"no-{blake2b(f'{template} {at}'.encode(), digest_size=6).hexdigest()}")


def shape_of(text: str, url: str) -> bytes:
    """A digest of a text without the words of its own URL, which error pages like to repeat; empty if little is left.

    >>> one = shape_of("We have no page called Blue Chair, sorry", "https://a.example/shop/blue-chair.html")
    >>> one == shape_of("We have no page called x7, sorry", "https://a.example/shop/x7.html")
    False
    >>> one == shape_of("We have no page called oak table, sorry", "https://a.example/shop/oak-table.html")
    True
    """
    path = unquote(urlsplit(url).path).casefold()
    name = path.rstrip("/").rpartition("/")[2]
    stem = _ENDING.sub("", name)
    left = text.casefold()
    for part in (url.casefold(), path, name, stem, re.sub(r"[-_+]+", " ", stem)):
        if len(part) >= _LEAST_PART:
            left = left.replace(part, " ")
    words = left.split()
    if len(words) < _FEWEST_WORDS:
        return b""
    return blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).digest()


Urls = Callable[[Sequence[int]], Mapping[int, str]]
"""Returns the URLs of pages."""


def suspects(
    site: Int32s, stored: Flags, digest: NDArray[np.uint64], updated: Ints, urls: Urls
) -> dict[int, list[str]]:
    """By site: templates of URLs that show the same text, a text that a page of `updated` shows.

    Not those whose URLs are variants of each other, nor a text that half of the site shows.
    """
    pages = np.flatnonzero(stored & np.any(digest != _EMPTY, axis=1))
    fold = (digest[pages, 0] ^ (digest[pages, 1] >> np.uint64(7))) + site[pages].astype(np.uint64)
    _, group, size = np.unique(fold, return_inverse=True, return_counts=True)
    of_site = np.bincount(site[pages], minlength=int(site.max(initial=-1)) + 1)
    shared = (size[group] > 1) & (2 * size[group] < of_site[site[pages]])
    told = np.isin(group, group[shared & np.isin(pages, updated)])
    order = np.argsort(group[told], kind="stable")
    members, group = pages[told][order], group[told][order]
    first = np.r_[True, group[1:] != group[:-1]] if len(group) else np.zeros(0, bool)
    place = np.arange(len(group)) - np.maximum.accumulate(np.where(first, np.arange(len(group)), 0))
    looked, group = members[place < _MEMBERS], group[place < _MEMBERS]
    known = urls(looked.tolist()) if len(looked) else {}
    groups: dict[int, list[int]] = {}
    for page, number in zip(looked.tolist(), group.tolist(), strict=True):
        groups.setdefault(number, []).append(page)
    found: dict[int, list[str]] = {}
    looked_at: dict[int, int] = {}
    for alike in groups.values():
        number = int(site[alike[0]])
        looked_at[number] = looked_at.get(number, 0) + 1
        names = [known[page] for page in alike if page in known]
        if looked_at[number] > _MOST_GROUPS or len({*map(plain_form, names)}) < 2:
            continue
        found[number] = list(dict.fromkeys([*found.get(number, []), *map(template_of, names)]))
    return found
