"""A second opinion on each page's chance of having changed: what happened lately to pages like it.

The belief of `shocks` is a model, and models are wrong in ways that repeat. A logistic regression over what was seen
puts much of it right: how visits to the page's group and site have gone since the page's own last visit, today and
lately, beside the page's own record. Its weights were fitted once, on replays of many sites, and are the same for
all; nothing in it depends on a site's size or on how often it changes.

`python -m benchmarks.opinion ARCHIVE...` fits the weights again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.shocks import DAY, FIRST_RATE, PAGE_WEIGHT, Floats, Shocks

NAMES = (
    "belief",
    "alone",
    "gap",
    "own",
    "visits",
    "site_lately",
    "group_lately",
    "site_today",
    "group_since",
    "group_since_many",
    "site_since",
    "site_since_many",
    "group_recent",
    "page_lately",
    "age",
)
"""What the regression looks at, in the order of its weights."""
WEIGHTS = np.array(
    [1.324, 0.186, -0.244, -0.512, -0.514, 0.099, 0.111, 0.227, -0.020, 0.123, -0.132, -0.148, 0.138, -0.719, 0.256]
)
BIAS = 1.385
_FADE = 0.95
"""How much of a mean stays when one more visit is taken in."""
_PAGE_FADE = 0.15
_FIRST = 0.3
_RECENT = 3


@dataclass(slots=True)
class Lately:
    """How visits have gone of late, as shares that found a change; older visits count less."""

    site: Floats
    group: Floats
    """Not a number where the group was never visited: it is taken to be like its site."""
    page: Floats

    @classmethod
    def of(cls, book: Book, belief: Shocks) -> Lately:
        """What the book's memory holds."""
        return cls(
            site=_longer(book.memory.get("shock.site_lately"), int(belief.site.max(initial=-1)) + 1, _FIRST),
            group=_longer(book.memory.get("shock.group_lately"), len(belief.key), np.nan),
            page=book.kept("shock.page_lately", _FIRST),
        )

    def keep(self, book: Book) -> None:
        """Save it in the book's memory."""
        book.memory |= {
            "shock.site_lately": self.site,
            "shock.group_lately": self.group,
            "shock.page_lately": self.page,
        }

    def observe(self, belief: Shocks, pages: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
        """Take in visits."""
        group = belief.group[pages]
        site = belief.site[group]
        fresh = np.isnan(self.group)
        self.group[fresh] = self.site[belief.site[fresh]]
        _fade_in(self.site, site, changed)
        visited = np.zeros(len(self.group), bool)
        visited[group] = True
        _fade_in(self.group, group, changed)
        self.group[fresh & ~visited] = np.nan
        self.page[pages] = _PAGE_FADE * self.page[pages] + (1 - _PAGE_FADE) * changed


def evidence(book: Book, belief: Shocks, lately: Lately, pages: NDArray[np.int64], chance: Floats) -> Floats:
    """What the regression looks at, page by feature (`NAMES`); `chance` is what `shocks` believes of the pages."""
    group = belief.group[pages]
    site = belief.site[group]
    gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
    age = np.maximum(book.now - book.found[pages], 0.0) / DAY
    again = np.maximum(book.visits[pages] - 1, 0)
    changes = np.maximum(book.changes[pages] - 1, 0)
    alone = (changes + PAGE_WEIGHT) / (np.maximum(age - gap, 0.0) + PAGE_WEIGHT / FIRST_RATE)
    of_site = lately.site[site]
    of_group = np.where(np.isnan(lately.group[group]), of_site, lately.group[group])
    low = belief.place(book.last_visit[pages] / DAY).astype(np.int64)
    groups, sites = _running(belief)
    columns = (
        log_odds(chance),
        log_odds(-np.expm1(-alone * gap)),
        np.log(gap),
        log_odds((changes + 0.5) / (again + 1.5)),
        np.log1p(again),
        log_odds(of_site),
        log_odds(of_group),
        _leaning(sites[:, site, -1] - sites[:, site, -2], of_site),
        *_since(groups, group, low, of_group),
        *_since(sites, site, low, of_site),
        _leaning(groups[:, group, -1] - groups[:, group, max(0, groups.shape[2] - 1 - _RECENT)], of_group),
        lately.page[pages],
        np.log1p(age),
    )
    return np.stack(columns, axis=1)


def chances(seen: Floats) -> Floats:
    """The regression's chances, from `evidence`."""
    odds: Floats = np.exp(-(seen @ WEIGHTS + BIAS))
    return 1 / (1 + odds)


def log_odds(chance: Floats) -> Floats:
    """
    >>> log_odds(np.array([0.5, 0.0])).round(2).tolist()
    [0.0, -9.21]
    """
    held = np.clip(chance, 1e-4, 1 - 1e-4)
    odds: Floats = np.log(held / (1 - held))
    return odds


def _running(belief: Shocks) -> tuple[Floats, Floats]:
    """Visits and finds from the beginning to each moment, of groups and of sites."""
    of_group = np.stack((belief.tries, belief.hits))
    of_site = np.zeros((2, int(belief.site.max(initial=-1)) + 1, of_group.shape[2]))
    for layer in (0, 1):
        np.add.at(of_site[layer], belief.site, of_group[layer])

    def summed(counts: Floats) -> Floats:
        # Where no time has passed yet there is no bin: today then has a beginning all the same.
        before = np.zeros((*counts.shape[:2], 1 if counts.shape[2] else 2))
        return np.concatenate((before, np.cumsum(counts, axis=2)), axis=2)

    return summed(of_group), summed(of_site)


def _since(running: Floats, row: NDArray[np.int64], low: NDArray[np.int64], usual: Floats) -> tuple[Floats, Floats]:
    """How visits to the same group (or site) have gone since a page's last visit, and how many there were."""
    since = running[:, row, -1] - running[:, row, low]
    return _leaning(since, usual), np.log1p(since[0])


def _leaning(counted: Floats, usual: Floats) -> Floats:
    """The log odds of finds among visits, leaning on what is usual by two visits."""
    return log_odds((counted[1] + 2 * usual) / (counted[0] + 2))


def _fade_in(mean: Floats, of: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
    tries, hits = np.bincount(of, minlength=len(mean)), np.bincount(of, changed, len(mean))
    some = tries > 0
    stays = _FADE ** tries[some]
    mean[some] = stays * mean[some] + (1 - stays) * hits[some] / tries[some]


def _longer(values: Floats | None, many: int, default: float) -> Floats:
    whole = np.full(many, default)
    if values is not None:
        whole[: len(values)] = values
    return whole
