"""Generate the rows of a `SyntheticWorld`, sorted by URL and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from recrawl.extras import pa
from recrawl.lab.formats.archive import schema, write_batches
from recrawl.lab.synth.page_versions import Histories, Words, plan_site
from recrawl.lab.synth.world import KINDS, Kind, SyntheticWorld

_BATCH_BYTES = 32 << 20
_VOCABULARY = 1 << 31  # a spawn key that no site has
_GOLDEN = (5**0.5 - 1) / 2
_FRIENDS = 3

Progress = Callable[[int, int], None]
"""Called with the number of finished sites and the number of rows."""


def hosts(world: SyntheticWorld) -> list[tuple[str, Kind]]:
    """Return the host and kind of each site; they do not depend on the number of sites after it.

    >>> [host for host, _ in hosts(SyntheticWorld(sites=4, kinds="news=3,blog=1"))]
    ['news1.example', 'news2.example', 'news3.example', 'blog1.example']
    """
    weights = world.weights
    edges = np.cumsum(list(weights.values())) / sum(weights.values())
    counts = dict.fromkeys(weights, 0)
    found = []
    for site in range(world.sites):
        # Multiples of the golden ratio fill the shares evenly even for few sites.
        name = list(weights)[min(int(np.searchsorted(edges, site * _GOLDEN % 1, side="right")), len(edges) - 1)]
        counts[name] += 1
        found.append((f"{name}{counts[name]}.example", KINDS[name]))
    return found


def generate(world: SyntheticWorld, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a world in the order of an archive, in batches of some megabytes."""
    words = Words(np.random.default_rng(np.random.SeedSequence(world.seed, spawn_key=(_VOCABULARY,))))
    named = hosts(world)
    rows = 0
    for done, site in enumerate(sorted(range(world.sites), key=lambda site: named[site][0] + "/")):
        for batch in _site(world, site, named, words):
            rows += batch.num_rows
            if progress:
                progress(done, rows)
            yield batch
    if progress:
        progress(world.sites, rows)


def write(world: SyntheticWorld, path: Path, progress: Progress | None = None) -> int:
    """Write a world as an archive; return the number of rows."""
    return write_batches(path, generate(world, progress))


def _site(world: SyntheticWorld, site: int, named: list[tuple[str, Kind]], words: Words) -> Iterator[pa.RecordBatch]:
    host, kind = named[site]
    rng = np.random.default_rng(np.random.SeedSequence(world.seed, spawn_key=(site,)))
    plan = plan_site(world, host, kind, words, rng)
    # A site links to earlier sites only, so that it does not depend on the number of sites.
    earlier = rng.permutation(site)[:_FRIENDS].tolist()
    histories = Histories(world, plan, words, [named[other][0] for other in earlier], rng)
    urls: list[str] = []
    times: list[int] = []
    bodies: list[bytes | None] = []
    size = 0
    for page in sorted(range(len(plan.path)), key=plan.path.__getitem__):
        url = f"https://{host}{plan.path[page]}"
        for time, body in histories.of(page):
            urls.append(url)
            times.append(time)
            bodies.append(body)
            size += len(body or b"")
        if size > _BATCH_BYTES:
            yield pa.record_batch([urls, times, bodies], schema=schema())
            urls, times, bodies, size = [], [], [], 0
    if urls:
        yield pa.record_batch([urls, times, bodies], schema=schema())
