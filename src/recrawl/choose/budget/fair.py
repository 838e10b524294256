"""The fair share of each site: visits that no other site may take while the site has a use for them.

Every site has a right to a part of the budget: by its pages (by their importance, if the user has set it), or the same
for each. What a site has no use for goes to the others, so that quiet sites cost nothing (water-filling).

A policy picks by expected gain, and a site that rewrites its pages for every visit promises a find at each. So what a
site takes beyond its right has diminishing returns: a find is worth less if the page has changed, or was found, within
the last `NOVEL` days, and the less the more of the site's pages have. A visit is of use to a site that is within its
right if it finds at least `USEFUL` times what visits beyond others' rights are worth on average. So a site whose pages
seldom change yields to one that was rebuilt today, but not to one that is rewritten day after day.

Without a site that would exceed its right there is nothing to protect, and nothing is reserved. A claim is lost as soon
as the visits of the cycle find less than it promised (see `allowance`).

A site is in one shard as a whole. Shards of a cluster add up what concerns all sites (`EXCHANGES` times, see `claims`),
and each reserves visits for its own sites. What is left over in all shards together is in `Commons`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast, get_args

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import ChangeEstimator, Chooser
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.learn.rates import fit_rates
from recrawl.model import Pages

Division = Literal["auto", "equal"]
"""How rights are divided: by pages and their importance, or the same for every site."""
USEFUL = 0.8
"""The finds of a useful visit, in parts of what visits beyond other sites' rights are worth."""
NOVEL = 30 * DAY
"""The time after which a page counts as unchanged for long."""
MOST = 2.0
"""The most visits that a site claims, in parts of its right: one that has had less than its share of all visits so far
may make up for it, with pages that have waited for more than a whole round."""
YIELD = 0.5
"""The most of its right that a site which would exceed it, and has had more than its share so far, yields to these."""
FAVOURED = 2.0
"""A site that has had more than this many times its share of all visits was favoured."""
FIRST = 10
"""URLs that count for a site of which hardly any was downloaded."""
MOST_HELD = 20
"""Sites that are named as held to their share."""
_LEAST, _STEP = 1e-6, 1.01
"""Change probabilities are counted in levels, each this much above the one before; lower ones count as the least."""
_LEVELS = int(np.log(1 / _LEAST) / np.log(_STEP)) + 2
NEAR = 5
"""Change probabilities that differ by this many levels at most count as equal."""
EXCHANGES = 3
"""How often shards add up numbers until each knows the claims of its sites."""
SAMPLE = 50_000
"""About this many pages are looked at; all if there are not many more."""


class Claims(NamedTuple):
    """What sites claim in one cycle, one entry per site."""

    right: Floats
    """The visits that are each site's by right: a part of the budget, not rounded."""
    wished: Floats
    """The visits that it would get if nobody had rights."""
    reserved: Ints
    """The visits that are kept for it."""
    hope: Floats
    """The share of these that should find something."""
    common: int = 0
    """The visits that no site claims, of all shards together."""

    def held(self) -> dict[int, tuple[int, int]]:
        """Return the sites that will get less than they wish: to their visits by right, and to those left to them.

        Only the most excessive ones are returned, so that it can be stored with every cycle.
        """
        room = self.common + self.reserved
        excess = self.wished - np.maximum(room, self.right)
        sites = np.flatnonzero(excess >= 1)
        sites = sites[np.argsort(-excess[sites], kind="stable")][:MOST_HELD]
        return {int(site): (round(float(self.right[site])), int(room[site])) for site in sites}


def site_share(text: str) -> tuple[Division | None, float]:
    """Parse what one site may take of a cycle: how the budget is divided by right, and the largest share of a site.

    >>> site_share("auto"), site_share("0.5"), site_share("1")
    (('auto', 1.0), (None, 0.5), (None, 1.0))
    """
    if text in get_args(Division):
        return cast(Division, text), 1.0
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 1e-9 <= share <= 1:
        raise UsageError(f"invalid site_share '{text}'; use auto, equal, or a share up to 1")
    return None, share


@dataclass(slots=True)
class Commons:
    """What a shard of several knows of the others: how to add numbers up, and what is left that no site claims."""

    claims: Callable[[Book, int], Claims]
    """The claims of this shard's sites."""
    alone: bool
    """Whether there is no other shard."""
    limit: float = np.inf
    """Visits beyond claims that this shard may make until it is told again, those before included."""
    used: int = 0
    """Visits beyond claims that it has made."""
    reserved: int = 0
    """Visits that its sites claim and have not used."""

    exhausted: bool = False
    """Whether none of these visits is left in any shard."""

    def allow(self, visits: int, *, exhausted: bool = False) -> None:
        """Allow so many more visits beyond claims."""
        self.limit, self.exhausted = self.used + visits, exhausted


def claims(
    book: Book,
    budget: int,
    chooser: Chooser,
    division: Division = "auto",
    total: Callable[[int, Floats], Floats] | None = None,
) -> Claims:
    """Return what each site claims of a cycle's budget, given the policy that will choose.

    The result depends on the book and the budget only, so that a resumed cycle finds the same. In a shard, `total` adds
    a column up over all shards; it gets the number of the exchange, from 0 to `EXCHANGES`, and the shard's own column.

    >>> from recrawl.choose.papers.round_robin import RoundRobin
    >>> book = Book.blank(40, now=100 * DAY)
    >>> book.site[20:] = 1
    >>> book.visits[:], book.last_change[:], book.last_visit[:] = 10, 99 * DAY, 99 * DAY
    >>> book.last_try[:] = book.last_visit
    >>> book.changes[:20], book.changes[20:], book.last_change[20:] = 10, 6, 60 * DAY
    >>> found = claims(book, 10, RoundRobin())
    >>> found.wished.tolist(), found.right.tolist(), found.reserved.tolist(), found.held()
    ([10.0, 0.0], [5.0, 5.0], [5, 5], {0: (5, 5)})
    """
    sites = book.sites
    open_ = np.flatnonzero(book.known)
    size = np.bincount(book.site[open_], minlength=sites)
    nothing = np.zeros(sites, np.int64)
    share = _shares(book, open_, size, division)
    if total is None and (np.count_nonzero(size) < 2 or budget >= len(open_)):
        right = share * (min(budget, len(open_)) / max(float(share.sum()), 1e-300))
        return Claims(right, right, nothing, np.zeros(sites), min(budget, len(open_)))
    total = total or (lambda _, own: own)
    pages, stands_for = _sample(book, open_, size)
    probability = _probability(book, chooser, pages)
    level = _levels(probability)

    def by_site(column: Floats) -> Floats:
        return np.bincount(book.site[pages], column, sites).astype(np.float64)

    counts = np.bincount(level, stands_for, _LEVELS)
    made = np.bincount(book.site[open_], book.visits[open_], sites).astype(np.float64)
    of_all = total(0, np.concatenate(([share.sum(), len(open_), made.sum()], counts)))
    visits = min(budget, int(of_all[1]))
    right = share * (visits / max(of_all[0], 1e-300))
    taken = stands_for * _taken(of_all[3:], budget)[level]
    worth = probability * _novelty(book, pages, stands_for)
    wished, gained = (by_site(column) for column in (taken, taken * worth))
    had = made * of_all[0] / np.maximum(share * of_all[2], 1e-300)
    favoured = had > FAVOURED
    goes_by_probability = isinstance(chooser, ChangeEstimator)
    so_far = visits * made / max(of_all[2], 1e-300)  # of other policies, this tells what they would do
    beyond = _beyond(wished if goes_by_probability else np.maximum(wished, so_far), right, favoured)
    excess, of_excess = total(1, np.array([beyond.sum(), (beyond * gained / np.maximum(wished, 1e-300)).sum()]))
    enough = USEFUL * of_excess / max(excess, 1e-300)
    useful = np.where(probability >= enough, stands_for, 0.0)
    waited = book.now - book.last_try[pages] > _round(book, open_)
    late = useful * (waited & (book.visits[pages] > 0))
    useful, late, hoped = (by_site(column) for column in (useful, late, useful * probability))
    late[(beyond > 0) | (had > 1)] = 0
    claimed = np.minimum(np.clip(late, right, MOST * right), useful)
    yields = (beyond > 0) & (had > 1)
    all_claimed, by_excessive = total(2, np.array([claimed.sum(), claimed[yields].sum()]))
    if excess < 1 or budget >= of_all[1]:
        return Claims(right, wished, nothing, np.zeros(sites), visits)
    over, others = max(0.0, all_claimed - visits), all_claimed - by_excessive
    # Those who exceed their right and were favoured so far yield a part of it to those who have waited for theirs.
    kept = max(1 - YIELD, 1 - over / max(by_excessive, 1e-300))
    claimed[yields] *= kept
    claimed[~yields] *= min(1.0, (visits - kept * by_excessive) / max(others, 1e-300))
    reserved = _whole(claimed, np.random.default_rng([int(book.now), budget]))
    hope = hoped / np.maximum(useful, 1e-300)
    elsewhere = max(0.0, min(all_claimed, visits) - float(claimed.sum()))
    return Claims(right, wished, reserved, hope, max(0, visits - int(reserved.sum()) - round(elsewhere)))


def _beyond(wished: Floats, right: Floats, favoured: Flags) -> Floats:
    """Return the visits that each site would get beyond its right.

    A single visit is beyond no right, unless so far the site was `favoured`. Sites with a right to less than one have a
    right together: a site that pretends to be a thousand has no right to a thousand visits.

    >>> _beyond(np.array([9.0, 1.0, 0.0]), np.array([5.0, 0.5, 4.5]), np.zeros(3, bool)).tolist()
    [4.0, 0.0, 0.0]
    >>> _beyond(np.array([1.0, 1.0, 1.0, 1.0, 0.0]), np.array([0.5, 0.5, 0.5, 0.5, 2.0]), np.zeros(5, bool)).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.0]
    >>> _beyond(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.5]), np.array([True, False, False])).tolist()
    [0.5, 0.0, 0.0]
    """
    beyond = np.maximum(wished - right, 0.0)
    small = (right < 1) & ~favoured
    together = max(0.0, float(wished[small].sum()) - max(1.0, float(right[small].sum())))
    beyond[small] *= min(1.0, together / max(float(beyond[small].sum()), 1e-300))
    return beyond


def _levels(probability: Floats) -> Ints:
    """Return the level of each change probability.

    >>> _levels(np.array([0.0, 1e-6, 0.5, 0.506, 1.0])).tolist()
    [0, 0, 1318, 1319, 1388]
    """
    levels: Ints = (np.log(np.maximum(probability, _LEAST) / _LEAST) / np.log(_STEP)).astype(np.int64)
    return levels


def _taken(counts: Floats, budget: int) -> Floats:
    """Return, by level, the share of its pages that a budget would visit by change probability alone.

    Pages that are as likely to have changed as the last one visited, or almost, are visited in equal parts.

    >>> _taken(np.array([1.0] + 10 * [0.0] + [1.0, 1.0] + 10 * [0.0] + [1.0]), 2)[[0, 11, 12, 23]].tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    above = np.cumsum(counts[::-1])[::-1]
    last = int(np.flatnonzero(above >= budget)[-1]) if above[0] >= budget else 0
    level = slice(max(0, last - NEAR), last + NEAR + 1)
    taken = (np.arange(len(counts)) >= level.stop).astype(np.float64)
    left = budget - float((taken * counts).sum())
    taken[level] = np.clip(left / max(float(counts[level].sum()), 1e-300), 0.0, 1.0)
    return taken


def _novelty(book: Book, pages: Pages, stands_for: Floats) -> Floats:
    """Return, per page, what a find beyond its site's right is worth.

    It is worth 1 if the page has not changed for long, or if half of the site's pages have not.

    >>> book = Book.blank(5, now=100 * DAY)
    >>> book.site[:], book.visits[:] = [0, 0, 1, 1, 1], 2
    >>> book.last_change[:] = np.array([10, 97, 97, 97, 76]) * DAY
    >>> _novelty(book, np.arange(5), np.ones(5)).round(2).tolist()
    [1.0, 1.0, 0.67, 0.67, 0.8]
    """
    site, seen = book.site[pages], book.visits[pages] > 0
    same = np.where(seen, np.clip((book.now - book.last_change[pages]) / NOVEL, 0.0, 1.0), 0.0)
    total, pages_of = (np.bincount(site, column, book.sites) for column in (same * stands_for, stands_for))
    of_site = 2 * total / np.maximum(pages_of, 1e-300)
    return np.asarray(np.minimum(np.maximum(same, of_site[site]), 1.0))


def _round(book: Book, open_: Pages) -> float:
    """Return the time in which visits to all pages could be made, at the pace so far."""
    again = float(book.visits[open_].sum()) - len(open_)
    return (book.now - float(book.found[open_].min())) * len(open_) / again if again > 0 else np.inf


def _shares(book: Book, open_: Pages, size: Ints, division: Division) -> Floats:
    """Return each site's share, in proportion to those of others.

    URLs count if they were downloaded, and as many others: a space without end has no end of rights.
    """
    share: Floats = (size > 0).astype(np.float64)
    if division == "auto":
        weight = book.weight[open_] if any(book.weight.strides) else None
        share = np.bincount(book.site[open_], weight, len(size)).astype(np.float64)
        seen = np.bincount(book.site[open_], book.visits[open_] > 0, len(size))
        share *= (seen + np.minimum(size - seen, np.maximum(seen, FIRST))) / np.maximum(size, 1)
    return share


def _sample(book: Book, open_: Pages, size: Ints) -> tuple[Pages, Floats]:
    """Return pages, about as many of each site as it has, and how many each stands for; others in every cycle."""
    step = len(open_) // SAMPLE
    if step < 2:
        return open_, np.ones(len(open_))
    pages = open_[int(book.now) % step :: step]
    counts = np.bincount(book.site[pages], minlength=len(size))
    return pages, (size / np.maximum(counts, 1))[book.site[pages]]


def _probability(book: Book, chooser: Chooser, pages: Pages) -> Floats:
    """Return the change probability of each page, by the policy if it estimates it; 1 if never downloaded."""
    seen = book.visits[pages] > 0
    probability = np.ones(len(pages))
    if isinstance(chooser, ChangeEstimator):
        probability[seen] = chooser.change_probability(book, pages[seen])
    else:
        known = pages[seen]
        columns = book.site[known], book.visits[known], book.changes[known]
        rates = fit_rates(*columns, book.last_visit[known] - book.found[known], book.sites)
        probability[seen] = 1 - rates.unchanged(book.now - book.last_visit[known])
    return probability


def _whole(visits: Floats, rng: np.random.Generator) -> Ints:
    """Round to whole visits, up or down by chance so that the mean is right, and the sum too.

    >>> _whole(np.full(10, 0.5), np.random.default_rng(1)).sum()
    np.int64(5)
    """
    ends = np.floor(np.cumsum(visits) + rng.random())
    return np.diff(ends, prepend=0.0).astype(np.int64)
