"""Frames of sites in memory: those of many small sites, but not of many large ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from recrawl.crawl.state.site_frames import SiteFrames
from recrawl.crawl.visits.messages import Reading
from recrawl.record.store import Store

SITES = 300


@pytest.mark.parametrize(("lines", "loaded"), [(5, SITES), (1000, 2 * SITES)])
def test_the_frames_of_many_small_sites_are_loaded_once(lines: int, loaded: int) -> None:
    """One page of each site, twice: frames that were dropped are read again."""
    stored: dict[int, bytes] = {}
    reads: list[int] = []

    def frame(site: int) -> bytes | None:
        reads.append(site)
        return stored.get(site)

    store: Any = SimpleNamespace(sites=SimpleNamespace(frame=frame))
    frames = SiteFrames(cast(Store, store), lambda _: iter(()))
    keys = np.arange(lines, dtype=np.int64).tobytes()
    for page in (0, 1):
        for site in range(SITES):
            frames.note(site, page, f"https://h{site}.example/{page}", Reading(page, lines=keys))
            if site % 50 == 0:
                stored |= dict(frames.take_dirty())
        stored |= dict(frames.take_dirty())
    assert len(reads) == loaded
