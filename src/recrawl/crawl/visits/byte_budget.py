"""Bytes that a cycle receives, against what it may: a page can weigh far more than anybody expected.

The plan goes by what pages will probably bring. This counts what they really bring, redirects and retries included, so
that no server can make us take more than was meant: what is under way is finished, then no more is asked for. Only what
is recorded with visits counts, so that a cycle that is resumed counts on from where it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable


class ByteBudget:
    """What was received, in all and from each site.

    >>> count = ByteBudget(1000.0, 600.0)
    >>> count.add(3, 700)
    >>> count.used_up, count.closed(3), count.closed(4)
    (False, True, False)
    """

    def __init__(
        self, most: float = math.inf, most_of_a_site: float = math.inf, before: Iterable[tuple[int, int]] = ()
    ) -> None:
        self._most = most
        self._most_of_a_site = most_of_a_site
        self._by_site: Counter[int] = Counter(dict(before))
        self._total = sum(self._by_site.values())

    def add(self, site: int, received: int) -> None:
        """An answer has come."""
        self._total += received
        self._by_site[site] += received

    @property
    def used_up(self) -> bool:
        """Whether nothing more may be asked for."""
        return self._total >= self._most

    def closed(self, site: int) -> bool:
        """Whether this site has brought as much as it may."""
        return self._by_site[site] >= self._most_of_a_site
