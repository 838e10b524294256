"""A first repository: crawl a site, let it change for three days, refresh it, and look at what changed.

    python examples/first_repository.py

The site is generated and served on this machine, with a clock of its own. To track a site on the web, leave out
`GeneratedWeb`, `clock=` and `allow_private=`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import recrawl
from recrawl.testing import GeneratedWeb


def main() -> None:
    """Crawl once, refresh on three days with ten visits each."""
    with (
        tempfile.TemporaryDirectory() as folder,
        GeneratedWeb(pages=30, days=10.0, seed=2) as web,
        recrawl.init(Path(folder) / "news", clock=web.now) as repo,
    ):
        repo.add(*web.urls, allow_private=True, delay=0)
        report = repo.crawl()
        print(f"crawled {report.visits} pages, {report.received:,} bytes")
        for _ in range(3):
            web.advance(days=1)
            report = repo.cycle(budget=10, policy="round-robin")
            print(f"cycle {report.cycle}: {report.visits} visits found {report.changed} updates")

        print("\nchanges of the last two days:")
        for change in repo.changes(since="2d"):
            print(f"  {change.time:%Y-%m-%d %H:%M}  {change.outcome:8} {change.url}")

        changed = next(change for change in repo.changes() if change.outcome == "changed")
        page = repo.page(changed.url)
        print(f"\n{page.url} has {len(page.versions)} versions; the last change:")
        print(page.diff())
        print(f"\n{page.why()}")

        word = page.versions[-1].title.split()[0]
        print(f"\nsearch for '{word}': {[hit.title for hit in repo.search(word, limit=3)]}")


if __name__ == "__main__":
    main()
