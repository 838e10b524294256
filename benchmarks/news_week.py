"""Barbosa et al.'s case study, crawled: a week of made news sites, served over HTTP and visited by the real crawler.

    python -m benchmarks.news_week [--sites 3] [--pages 60] [--days 7] [--seeds 10] [--only POLICY ...] [--out FILE]

Every policy gets the same web, the same first crawl and the same budget: every six hours the share of the pages that
B's 141 pages a minute are of its 1,475,000 in that time. Virtual time jumps from cycle to cycle, so the week takes
minutes; pages are downloaded, compared, recorded and indexed as ever. Measured on the server and in the index:

    requests, MB    what the server answered in the week, robots.txt and 304 included
    success         visits that found a change or a new page (B's success rate)
    hours           from a change to the end of the cycle after which it is searchable; of all changes, where one that
                    was not found yet counts until the end of the week
    currency        pages of the web whose newest version is in the index, mean over the cycles' ends
    searched        changes found whose new words the search finds on their page, of those tried

`meta` serves a meta-updates tag on every page (Al-Qaaideh 2009 §1.3.1) with its rate in the days before the week.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.crashes import Bench

import recrawl
from benchmarks.four_papers import interval
from recrawl.columns import DAY, HOUR
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Reply, ServedRequest
from recrawl.model import Outcome

PACE = b.PER_MINUTE * 60 * b.EVERY_HOURS / b.PAGES
"""Share of the pages that B visited in six hours."""
META = "meta"
POLICIES = (
    "round-robin",
    "anchor-depth(rest=0, slow=14)",
    "anchor-depth(n=1, rest=0, slow=14)",
    "anchor-depth(rest=0, slow=365)",
    "anchor-depth",
    "frequency-greedy",
    "frequency-adaptive",
    f"shock, {META}",
    "shock",
    "shock(objective=age)",
)
FIGURES = {"visits": 0, "requests": 0, "megabytes": 2, "success": 3, "hours": 1, "currency": 3, "searched": 3}
"""With the digits that are printed."""
_BEFORE = 7.0
"""Days before the week."""
_SEARCHES = 5
"""Changes that are searched for after a cycle, at most."""
_WORD = re.compile(r"[a-z]{7,}")


@dataclass
class Watch:
    """What the server has answered."""

    archive: Archive
    tags: bool
    requests: int = 0
    sent: int = 0
    held: dict[int, int] = field(default_factory=dict)
    """Per page: the row served last."""
    begun: float = 0.0
    """When the week begins."""

    def around(self, bench: Bench) -> None:
        """Count every answer of a bench's server."""
        answer = bench.app.answer

        def counted(request: ServedRequest, now: float) -> Reply:
            reply = answer(request, now)
            found = self._page(bench, request)
            if found is not None and reply.status in (200, 304):
                row = self.archive.row_at(found, now)
                if row is not None:
                    self.held[found] = row
                if self.tags and reply.status == 200:
                    reply = self._with_tag(reply, found)
            elif found is not None and reply.status == 404:
                self.held.pop(found, None)
            self.requests += 1
            self.sent += len(reply.body)
            return reply

        bench.app.answer = counted  # type: ignore[method-assign]

    def _page(self, bench: Bench, request: ServedRequest) -> int | None:
        host = bench.app.addresses.host(request.host, request.port)
        if host is None or host.site is None:
            return None
        found = bench.app.addresses.find(host.site, request.path, request.query)
        return None if found is None else found.page

    def _with_tag(self, reply: Reply, page: int) -> Reply:
        """The page with a tag of its rate before the week."""
        times = self.archive.times[self.archive.first[page] : self.archive.first[page + 1]]
        changes = int((times <= self.begun).sum()) - 1
        days = max(1, round(_BEFORE / changes)) if changes > 0 else 0
        word = f"PERIODIC={days}" if days else "STATIC"
        body = reply.body.replace(b"<head>", f'<head><meta name="change-frequency-based" content="{word}">'.encode(), 1)
        headers = [(name, b"%d" % len(body) if name == b"content-length" else value) for name, value in reply.headers]
        return Reply(reply.status, headers, body)


def week(archive: Archive, text: str, folder: Path, days: float) -> dict[str, Any]:
    """Crawl the sites, then refresh them every six hours for a week."""
    policy, _, with_tags = text.partition(f", {META}")
    watch = Watch(archive, tags=bool(with_tags) or text.endswith(META))
    with Bench(archive) as bench:
        watch.around(bench)
        bench.create(folder, sitemap_hours=0.0, feed_hours=0.0, policy=policy)
        watch.begun = begin = archive.start + _BEFORE * DAY
        bench.clock.set(begin)
        bench.crawl(folder)
        budget = max(1, round(PACE * len(archive.pages_at(begin))))
        watch.requests = watch.sent = 0
        counts: Counter[str] = Counter()
        found_at: dict[int, float] = {}
        currency = []
        for cycle in range(1, int(days * DAY / (b.EVERY_HOURS * HOUR)) + 1):
            now = begin + cycle * b.EVERY_HOURS * HOUR
            bench.clock.set(now)
            before = dict(watch.held)
            tally = bench.cycle(folder, policy, budget).tally
            counts["visits"] += tally.visits
            counts["changed"] += tally.outcomes[Outcome.CHANGED] + tally.outcomes[Outcome.NEW]
            fresh = {page: row for page, row in watch.held.items() if before.get(page) != row}
            for page, row in fresh.items():
                for one in range(before.get(page, int(archive.first[page]) - 1) + 1, row + 1):
                    found_at[one] = now
            there = archive.pages_at(now)
            currency.append(
                float(np.mean([watch.held.get(int(page)) == archive.row_at(int(page), now) for page in there]))
            )
            searched, hit = searches(bench, folder, archive, before, fresh)
            counts["tried"] += searched
            counts["hit"] += hit
    end = begin + days * DAY
    rows = [row for row in np.flatnonzero((archive.times > begin) & (archive.times <= end)) if not archive.removed[row]]
    waits = [(found_at.get(int(row), end) - archive.times[row]) / HOUR for row in rows]
    return {
        "visits": counts["visits"],
        "requests": watch.requests,
        "megabytes": watch.sent / 1e6,
        "success": counts["changed"] / max(1, counts["visits"]),
        "hours": float(np.mean(waits)),
        "currency": float(np.mean(currency)),
        "searched": counts["hit"] / counts["tried"] if counts["tried"] else None,
        "tried": counts["tried"],
        "changes": len(rows),
    }


def searches(
    bench: Bench, folder: Path, archive: Archive, before: dict[int, int], fresh: dict[int, int]
) -> tuple[int, int]:
    """Search for words that a change brought; how many were tried, and how many of them led to the page."""
    tried = hit = 0
    with recrawl.open(folder) as repository:
        for page, row in fresh.items():
            old = archive.html(before[page]).decode() if page in before else ""
            new = sorted(set(_words(archive.html(row).decode())) - set(_words(old)))
            if not new or tried == _SEARCHES:
                continue
            tried += 1
            served = bench.server.url_of(archive.urls[page])
            hits = repository.search(f"+{' +'.join(new[:3])}", limit=50)
            hit += any(one.url == served for one in hits)
    return tried, hit


def _words(html: str) -> list[str]:
    return _WORD.findall(re.sub(r"<[^>]*>", " ", html).lower())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=list(POLICIES))
    parser.add_argument("--out", type=Path, help="append one JSON object per week; weeks in it are not crawled again")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out and asked.out.exists() else []
    for seed in range(1, asked.seeds + 1):
        with tempfile.TemporaryDirectory() as scratch:
            parameters = {"sites": asked.sites, "pages": asked.pages, "days": asked.days + _BEFORE + 1, "kinds": "news"}
            world = SyntheticWorld(seed=seed, links=20, size_min=1500, size_max=4000, **parameters)
            write(world, Path(scratch) / "world.parquet")
            archive = Archive.open([Path(scratch) / "world.parquet"])
            for number, policy in enumerate(asked.only):
                if any((row["policy"], row["seed"]) == (policy, seed) for row in rows):
                    continue
                row = {"policy": policy, "seed": seed} | week(archive, policy, Path(scratch) / str(number), asked.days)
                rows.append(row)
                if asked.out:
                    with asked.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
    sys.stdout.write(f"| policy | seeds | {' | '.join(FIGURES)} |\n|---|--:|{'--:|' * len(FIGURES)}\n")
    for policy in asked.only:
        of_policy = [row for row in rows if row["policy"] == policy]
        cells = [
            interval([row[figure] for row in of_policy if row[figure] is not None], digits)
            for figure, digits in FIGURES.items()
        ]
        sys.stdout.write(f"| `{policy}` | {len(of_policy)} | {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
