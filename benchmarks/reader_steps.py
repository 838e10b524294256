"""What the steps of a reader process cost a page: `python -m benchmarks.reader_steps [--site FILE.parquet]`.

Reads the pages of the benchmark's site, or of archived sites, in this process, a message at a time as a reader does,
as new pages and as changed ones. The CPU time of each step is taken within the whole; the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import pages, real_pages
from benchmarks.report import Table
from recrawl.compare import digest
from recrawl.compare.parsing import text
from recrawl.crawl.visits import reader_process
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import PageReader, TaskReader
from recrawl.discover.links import LinkReader
from recrawl.discover.urls import UrlRules

BATCH = 32
HEADERS = (
    ("Server", "bench"),
    ("Connection", "keep-alive"),
    ("Date", "Tue, 17 Nov 2026 21:45:00 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
)
REQUEST = (
    b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: recrawl/0.1 (+https://example.org)\r\n"
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    b"Accept-Encoding: gzip, deflate, br\r\n\r\n"
)
STEPS: list[tuple[str, Any, str]] = [
    ("decode", reader_process, "hypertext"),
    ("parse", reader_process, "parse"),
    ("links", LinkReader, "read"),
    ("keys of links", PageReader, "_keys_of"),
    ("page fields", reader_process, "page_fields"),
    ("title", text, "title"),
    ("visible text, and that outside the frame", reader_process, "page_texts"),
    ("visible text of the stored version", text, "visible"),
    ("sketch", reader_process, "sketch_of"),
    ("digest of the text", digest, "of_text"),
    ("stored version", TaskReader, "_stored_text"),
    ("equal ends", reader_process, "split_texts"),
    ("divergence", reader_process, "split_distance"),
    ("significance", reader_process, "_significant"),
    ("lines", reader_process, "version_lines"),
    ("lines of both versions compared", TaskReader, "_compare_lines"),
    ("WARC records", reader_process, "_records"),
    ("change priors", reader_process, "change_priors"),
]


def tasks(found: list[pages.Page]) -> Iterator[Task]:
    """The pages as new ones."""
    for number, page in enumerate(found):
        body = page.body(0)
        url = f"http://127.0.0.1:8000{page.path}"
        request = REQUEST % page.path.encode()
        yield Task(
            *(number, url, 1.79e9 + number, "127.0.0.1", 200, HEADERS, request, body, digest.of_payload(body)),
            *(0, None, None, True),
            prior=True,
        )


def changed(new: list[Task], found: list[pages.Page]) -> Iterator[Task]:
    """The same pages as changed ones."""
    reader = TaskReader(ReaderConfig(UrlRules(), want_text=False))
    for task, page in zip(new, found, strict=True):
        body = page.body(1)
        before = reader.read(task)
        yield task._replace(
            body=body, payload=digest.of_payload(body), digest=before.digest, before=before.record, prior=False
        )


@contextmanager
def timed(spent: Counter[str]) -> Iterator[None]:
    """Add up the seconds of each step, without those of steps within it."""
    inner = [0.0]

    def wrapped(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            inner.append(0.0)
            start = time.thread_time()
            try:
                return step(*args, **options)
            finally:
                took = time.thread_time() - start
                spent[name] += took - inner.pop()
                inner[-1] += took

        return call

    with ExitStack() as patches:
        for name, home, attribute in STEPS:
            patches.enter_context(mock.patch.object(home, attribute, wrapped(name, getattr(home, attribute))))
        yield


def read(found: list[Task], spent: Counter[str]) -> None:
    """Read all pages as a reader process does, with the messages of both sides."""
    reader = TaskReader(ReaderConfig(UrlRules(), want_text=False))
    for start in range(0, len(found), BATCH):
        begin = time.thread_time()
        batch = pickle.loads(pickle.dumps(found[start : start + BATCH], pickle.HIGHEST_PROTOCOL))
        received = time.thread_time()
        readings = reader.read_all(batch)
        done = time.thread_time()
        pickle.loads(pickle.dumps(readings, pickle.HIGHEST_PROTOCOL))
        spent["messages"] += received - begin + time.thread_time() - done
        spent["all"] += time.thread_time() - begin


def table(title: str, found: list[Task], rounds: int) -> Table:
    """Microseconds a page of each step, the median of the rounds."""
    costs: list[Counter[str]] = []
    for _ in range(rounds):
        costs.append(Counter())
        with timed(costs[-1]):
            read(found, costs[-1])
    names = [name for name in costs[0] if name != "all"]
    for cost in costs:
        cost["everything else"] = cost["all"] - sum(cost[name] for name in names)
    micro = {
        name: statistics.median(1e6 * cost[name] / len(found) for cost in costs)
        for name in [*names, "everything else", "all"]
    }
    rows = [[name, f"{value:.1f}"] for name, value in sorted(micro.items(), key=lambda item: item[1])]
    return Table(title, ["step", "µs a page"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reader_steps", description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, action="append", default=[], help="archive whose pages are read instead")
    parser.add_argument("--pages", type=int, default=640, help="pages (640)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds (9)")
    chosen = parser.parse_args()
    found = (real_pages.site(chosen.site)[2:] if chosen.site else pages.site(chosen.pages))[: chosen.pages]
    new = list(tasks(found))
    kind = "real" if chosen.site else "generated"
    table(f"A new page, {kind}", new, chosen.rounds).show()
    table(f"A changed page, {kind}", list(changed(new, found)), chosen.rounds).show()


if __name__ == "__main__":
    main()
