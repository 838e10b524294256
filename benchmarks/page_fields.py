"""What reading the fields of a page costs: CPU time within the parsing of a new page, in one run.

    python -m benchmarks.page_fields [--pages 400] [--rounds 7]

Pages of 30 kB with 20 meta elements and a JSON-LD script each. Rounds with and without the fields alternate; the
figure is the median of each.
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest import mock

from recrawl.compare.tree.stated import PageFields
from recrawl.crawl.visits import reader_process
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import PageReader
from recrawl.discover.urls import DEFAULT_RULES

_METAS = "".join(f'<meta property="og:x{n}" content="value {n} of this page">' for n in range(14))
_HEAD = (
    '<html lang="en"><head><title>A page</title><meta name="description" content="About the page">'
    '<meta property="og:image" content="/a.jpg"><meta property="article:published_time" content="2024-05-01T10:00:00Z">'
    '<meta name="viewport" content="width=device-width"><meta charset="utf-8"><meta name="robots" content="all">'
    f'{_METAS}<script type="application/ld+json">{{"@type": "Article", "headline": "x", "inLanguage": "en"}}</script>'
)


def page(number: int) -> bytes:
    links = "".join(f'<li><a href="/page-{(number * 7 + n) % 997}">link {n}</a></li>' for n in range(60))
    words = " ".join(
        f"<p>Paragraph {n} of page {number} with some words that fill it to its end.</p>" for n in range(300)
    )
    return f"{_HEAD}<body><ul>{links}</ul>{words}</body></html>".encode()


def _none(*_: object) -> PageFields:
    return PageFields()


def cost(tasks: list[Task]) -> float:
    """Microseconds of CPU time for one page."""
    reader = PageReader(ReaderConfig(DEFAULT_RULES))
    used = time.process_time()
    for task in tasks:
        reader.parse(task)
    return 1e6 * (time.process_time() - used) / len(tasks)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_fields", description=__doc__)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    headers = (("Content-Type", "text/html; charset=utf-8"),)
    tasks = [
        Task(n, f"https://a.example/{n}", 0.0, "", 200, headers, b"", page(n), b"", 0, None, None, same_noise=False)
        for n in range(chosen.pages)
    ]
    cost(tasks)
    with_fields, without = [], []
    for _ in range(chosen.rounds):
        with_fields.append(cost(tasks))
        with mock.patch.object(reader_process, "page_fields", _none):
            without.append(cost(tasks))
    ratios = sorted(one / two for one, two in zip(with_fields, without, strict=True))
    ours, theirs = statistics.median(with_fields), statistics.median(without)
    spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
    print(f"{ours:.0f} µs with the fields, {theirs:.0f} without; ratio {statistics.median(ratios):.3f} ({spread})")


if __name__ == "__main__":
    main()
