"""Visits made by another program: its answers take the same way as those of our own requests.

    outside_options(options, fetch)   a cycle that asks `fetch` for pages instead of downloading them
    record(repository, ..., visits)   visits that were made already

The other program obeys robots.txt, paces requests and chooses the sites. Nothing else is downloaded: no sitemaps, no
feeds, no requisites, no rendering.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from recrawl.crawl.cycles import Controls, Summary, begin_run, finish_run, live_crawl
from recrawl.crawl.options import CrawlOptions, SiteOptions
from recrawl.crawl.visits.live import LiveCrawl
from recrawl.crawl.visits.machine import PERMANENT
from recrawl.discover.urls import canonical
from recrawl.errors import UsageError
from recrawl.fetch.fetcher import FetchLimits, Request, limited_answer
from recrawl.model import Answer, Failure, Picks, RequisiteLevel, Validators
from recrawl.record.rows import Batch, CycleRow
from recrawl.record.storage import Storage

Fetch = Callable[[Sequence[Request]], Iterable[Answer]]
"""Downloads pages: an answer for each request, in any order. It does not follow redirects."""
MadeVisit = Answer | Sequence[Answer]
"""A visit that was made: its answer, or its redirects in order and the last answer."""

_AT_ONCE = 32
"""Pages asked for, or recorded, together; their bodies are in memory."""


class OutsideFetcher:
    """Hands requests to a function, all that wait at once."""

    def __init__(self, fetch: Fetch, *, limits: FetchLimits, **_: Any) -> None:
        self._fetch = fetch
        self._limits = limits
        self._waiting: list[tuple[int, Request]] = []
        self._poll = select.poll()

    @property
    def room(self) -> int:
        """Number of pages that may still be asked for with the next call."""
        return _AT_ONCE - len(self._waiting)

    @property
    def busy(self) -> int:
        """Number of pages that the next call asks for."""
        return len(self._waiting)

    def start(self, ticket: int, request: Request) -> None:
        """Ask for a page with the next call."""
        self._waiting.append((ticket, request))

    def watch(self, fd: int) -> None:
        """Make `wait` return early when this descriptor becomes readable."""
        self._poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo `watch`."""
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> list[tuple[int, Answer]]:
        """Answers to all requests that wait; without any, wait for the descriptors."""
        if not self._waiting:
            self._poll.poll(seconds * 1000)
            return []
        waiting, self._waiting = self._waiting, []
        answers = {answer.url: answer for answer in self._fetch([request for _, request in waiting])}
        missing = next((request.url for _, request in waiting if request.url not in answers), None)
        if missing is not None:
            raise UsageError(f"no answer was given for {missing}; answer every request, with a failure if need be")
        return [(ticket, self._limited(request, answers[request.url])) for ticket, request in waiting]

    def request_head(self, url: str, validators: Validators | None, *, identity: bool = False) -> bytes:
        """Empty: what the other program sent is not known."""
        del url, validators, identity
        return b""

    def close(self) -> None:
        """Forget the requests."""
        self._waiting.clear()

    def _limited(self, request: Request, answer: Answer) -> Answer:
        """The answer, or the failure that our own download of it would have been."""
        if answer.failure is not None or answer.status != 200:
            return answer
        content_type = answer.header("content-type")
        if request.accepts is not None and not request.accepts(content_type):
            return replace(answer, body=b"", failure=Failure.CONTENT_TYPE, detail=f"content type {content_type}")
        return limited_answer(answer, self._limits.max_bytes)


def outside_options(options: CrawlOptions, fetch: Fetch) -> CrawlOptions:
    """Options of a run whose pages `fetch` downloads."""
    return replace(
        options,
        fetcher=partial(OutsideFetcher, fetch),
        outside=True,
        sites={name: SiteOptions(limit=own.limit, change=own.change) for name, own in options.sites.items()},
        access=(),
        delay=0.0,
        per_server=_AT_ONCE,
        per_second=0.0,
        sitemaps=False,
        feed_age=0.0,
        requisites=RequisiteLevel.NONE,
        render="never",
        screenshots="never",
    )


def record(repository: Storage, options: CrawlOptions, visits: Iterable[MadeVisit], controls: Controls) -> Summary:
    """Record visits as they come; pages that are not known become known, whatever their site.

    Each batch is committed before the next one is taken from `visits`.
    """
    given: dict[str, Answer] = {}
    options = outside_options(options, lambda requests: [_answer_of(request, given) for request in requests])
    options = replace(options, retries=0, patience=float("inf"))
    row, resumed = begin_run(repository.store, options, "record", "", 0, 0)
    started = options.timer()
    live = live_crawl(repository, options, row, controls, started)
    finished = True
    try:
        for batch in _batches(visits, options):
            given.clear()
            given.update({answer.url: answer for chain in batch.values() for answer in chain})
            _visit(live, row, batch)
            if controls.stop():
                finished = False
                break
        if finished:
            finish_run(repository, options, live, row)
    finally:
        live.close()
    return Summary(row, live.tally, resumed, finished, options.timer() - started)


def _batches(visits: Iterable[MadeVisit], options: CrawlOptions) -> Iterator[dict[str, Sequence[Answer]]]:
    """Visits by URL, none twice in a batch."""
    batch: dict[str, Sequence[Answer]] = {}
    for visit in visits:
        chain = _canonical([visit] if isinstance(visit, Answer) else visit, options)
        while chain:
            if chain[0].url in batch or len(batch) >= _AT_ONCE:
                yield batch
                batch = {}
            batch[chain[0].url] = chain
            chain = chain[1:] if chain[0].status in PERMANENT else []  # its target is a page of its own
    if batch:
        yield batch


def _canonical(chain: Sequence[Answer], options: CrawlOptions) -> list[Answer]:
    """The answers with the URLs by which pages are known; nothing if one is not valid."""
    urls = [canonical(answer.url, rules=options.rules) for answer in chain]
    return [replace(answer, url=url) for answer, url in zip(chain, urls, strict=True) if url] if all(urls) else []


def _visit(live: LiveCrawl, row: CycleRow, batch: dict[str, Sequence[Answer]]) -> None:
    pages, added = [], Batch()
    for url, chain in batch.items():
        pages.append(live.discovery.admit(url, at=chain[0].at or row.started, batch=added)[0])
    live.record_pages(added)
    chosen = np.array([page for page in pages if page >= 0], np.int64)  # the others were erased
    live.visit(Picks(chosen, np.zeros(len(chosen)), "another program has visited it"))
    live.commit()


def _answer_of(request: Request, given: dict[str, Answer]) -> Answer:
    """The answer that was given for a request; without one, the target of a redirect is not known."""
    found = given.get(request.url)
    if found is None:
        at = next(iter(given.values())).at
        return Answer.failed(request.url, Failure.CUT_OFF, "the answer of the redirect's target was not given", at=at)
    return found
