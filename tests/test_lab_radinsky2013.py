"""R's figure 8: the simulated crawl, and what a crawler knows between visits."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.lab.experiments.radinsky2013.crawling import Crawl, carried_forward, simulate_crawl
from recrawl.lab.predict.planted_world import Planted, planted

DAYS = planted(Planted(groups=3, size=4, days=30)).days


@pytest.mark.parametrize("method", ["random", "frequency", "pooled"])
def test_more_visits_give_higher_freshness(method: str) -> None:
    few, many = (simulate_crawl(DAYS, Crawl(method, seed=1, share=share)).mean() for share in (0.1, 0.6))
    assert few < many < 1
    assert simulate_crawl(DAYS, Crawl(method, seed=1, share=1.0)).all()


def test_the_same_seed_gives_the_same_crawl() -> None:
    first, second = (simulate_crawl(DAYS, Crawl("frequency", seed=3)) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, simulate_crawl(DAYS, Crawl("frequency", seed=4)))


def test_between_visits_versions_are_carried_forward_and_labels_are_not() -> None:
    where = np.zeros(DAYS.seen.shape, np.bool_)
    where[:, [0, 10, 20]] = True
    known = DAYS.visited(where)
    held = carried_forward(known)
    assert (held.text[:, 19] == DAYS.text[:, 10]).all()
    assert (held.text[:, 25] == DAYS.text[:, 20]).all()
    assert np.array_equal(held.labelled, known.labelled)
    assert held.labelled.sum() == 2 * len(DAYS)
