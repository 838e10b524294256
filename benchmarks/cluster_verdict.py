"""What must not be after faults: see `benchmarks.cluster_faults`. It compares the tables of all shards with the web."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchmarks.cluster_stand import Stand
from recrawl.choose.shards.placement import shard_of
from recrawl.cluster.layout import layout_of
from recrawl.discover.registrable_domains import registrable_domain
from recrawl.record import storage
from recrawl.repository.repository import Repository


@dataclass(frozen=True)
class Visit:
    """A row of `visits`, with the URL instead of the page."""

    shard: int
    number: int
    cycle: int
    """The number within its shard; a crawl of the cluster can have several."""
    url: str
    at: float
    outcome: int
    failure: str


def visits_of(stand: Stand, shards: int) -> list[Visit]:
    """All visits of all shards."""
    found = []
    for shard in range(shards):
        schema = f"{stand.schema}_s{shard:03d}"
        rows = stand.query(
            f"""SELECT v.id, v.cycle, p.url, v.at, v.outcome, coalesce(v.failure, '') FROM {schema}.visits v
                JOIN {schema}.pages p ON p.id = v.page ORDER BY v.id"""
        )
        found += [Visit(shard, *row) for row in rows]
    return found


def pages_of(stand: Stand, shards: int) -> Counter[tuple[str, int]]:
    """All pages, as URL and shard, with the number of their rows."""
    return Counter(
        (url, shard)
        for shard in range(shards)
        for (url,) in stand.query(f"SELECT url FROM {stand.schema}_s{shard:03d}.pages")
    )


def shard_of_url(url: str, shards: int) -> int:
    """The shard that owns a URL."""
    return shard_of(registrable_domain(urlsplit(url).hostname or ""), shards)


def page_faults(stand: Stand, shards: int, also: Iterable[str] = ()) -> list[str]:
    """Pages of the web, and others that were imported, that are unknown, known twice, or in a wrong shard."""
    return known_faults(pages_of(stand, shards), {*stand.web.sites.urls(stand.web.port), *also}, shards)


def known_faults(known: Counter[tuple[str, int]], expected: set[str], shards: int) -> list[str]:
    """URLs that are unknown, unexpected, known twice, or in a wrong shard."""
    urls = {url for url, _ in known}
    return [
        *(f"{url} is unknown" for url in sorted(expected - urls)),
        *(f"{url} is not of this web" for url in sorted(urls - expected)),
        *(f"{url} has {count} rows in shard {shard}" for (url, shard), count in known.items() if count > 1),
        *(f"{url} is in shard {at}" for url, at in known if shard_of_url(url, shards) != at),
    ]


def visit_faults(before: list[Visit], after: list[Visit]) -> list[str]:
    """What a run did to visits: some that were recorded are gone, a page was visited twice, numbers have gaps."""
    lost = set(before) - set(after)
    times = Counter(visit.url for visit in set(after) - set(before))
    numbers: dict[int, list[int]] = {}
    for visit in after:
        numbers.setdefault(visit.shard, []).append(visit.number)
    return [
        *(f"lost: {visit}" for visit in sorted(lost, key=str)[:5]),
        *(f"{url} was visited {count} times in one run" for url, count in times.items() if count > 1),
        *(
            f"the numbers of the visits of shard {shard} have gaps"
            for shard, found in numbers.items()
            if found != list(range(found[0], found[0] + len(found)))
        ),
    ]


def request_faults(visits: list[Visit], rows: list[list[Any]]) -> tuple[list[str], int]:
    """Visits that no server has seen; and how many answers of pages were recorded by no visit."""
    asked = Counter((row[0], row[4]) for row in rows if row[5] == 200)
    visited: Counter[tuple[str, str]] = Counter()
    for visit in visits:
        if not visit.failure:
            parts = urlsplit(visit.url)
            visited[(parts.hostname or "", parts.path)] += 1
    faults = [f"{host}{path}: {n} visits, {asked[host, path]} requests" for (host, path), n in visited.items()
              if n > asked[host, path]]  # fmt: skip
    return faults, sum((asked - visited).values())


def check_faults(stand: Stand, shards: int) -> list[str]:
    """What `check` finds in each shard, opened as a repository of its own."""
    layout, faults = layout_of(stand.folder), []
    for shard in range(shards):
        folder = stand.work / f"check{shard}"
        layout.prepare_folder(folder, shard, (stand.folder / storage.SETTINGS).read_text())
        with Repository(folder) as repo:
            faults += [f"shard {shard}: {problem.what}" for problem in repo.check(wait=True).problems]
    return faults


def turns_of(stand: Stand, shards: int) -> dict[str, int]:
    """How often each site may have passed from one process to another: as often as the lease of its shard was taken."""
    taken = dict(stand.query(f"SELECT shard, epoch FROM {stand.schema}.leases"))
    hosts = [f"s{number}.localhost" for number in range(stand.web.sites.sites)]
    return {host: taken[shard_of_url(f"http://{host}/", shards)] - 1 for host in hosts}
