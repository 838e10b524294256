"""The downloader middleware: it answers requests for stored pages, and passes on what is downloaded for the record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import blockingCallFromThread
from twisted.python.failure import Failure as TwistedFailure

import recrawl
from recrawl import Answer
from recrawl.errors import NoRepository
from recrawl.scrapy_bridge.answers import STORED, answer_of, failure_of, redirects_of, stored_response
from recrawl.scrapy_bridge.recording import Recording, SpiderRun, StopRecording

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

TIME = "recrawl_time"
"""Key of `response.meta`: when the version was downloaded; None if it was downloaded just now."""
_log = logging.getLogger(__name__)


class Gate:
    """Lets callers wait until it is open."""

    def __init__(self) -> None:
        self._is_open = False
        self._waiting: list[Deferred[None]] = []

    def open(self) -> None:
        """Let everybody go on."""
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        for caller in waiting:
            caller.callback(None)

    def passed(self) -> Deferred[None]:
        """Fires when the gate is open."""
        caller: Deferred[None] = Deferred()
        if self._is_open:
            caller.callback(None)
        else:
            self._waiting.append(caller)
        return caller


class RecrawlMiddleware:
    """Gives a spider the memory of a repository.

    Requests with another method than GET, with a body, with `meta={"recrawl": False}`, and those that do not come from
    the spider's callbacks (robots.txt, images) are left alone.
    """

    clock: ClassVar[Callable[[], float] | None] = None
    """The times that are recorded, in seconds since 1970; the system's by default."""

    def __init__(self, crawler: Crawler) -> None:
        folder = crawler.settings.get("RECRAWL_REPOSITORY")
        if not folder:
            raise NotConfigured("set RECRAWL_REPOSITORY to the folder of a recrawl repository")
        clock = type(self).clock
        self._crawler = crawler
        self._repository = _opened(Path(folder), clock)
        self._recording = Recording(
            SpiderRun(
                folder=self._repository.folder,
                policy=crawler.settings.get("RECRAWL_POLICY") or "",
                budget=_budget(crawler.settings.get("RECRAWL_BUDGET")),
                clock=clock,
            ),
            fetch=self._fetch,
            stop=lambda: not crawler.crawling,
            refreshed=lambda: self._call(self._open_stored),
            ended=lambda: self._call(self._closed.open),
        )
        self._started = False
        self._stored, self._closed = Gate(), Gate()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        made = cls(crawler)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        return made

    # -- the spider's requests -----------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> Response | None:
        """The stored page, once the cycle is over; None downloads it."""
        if not _remembered(request):
            return None
        if not self._started:
            self._started = True
            self._recording.start()
        await maybe_deferred_to_future(self._stored.passed())
        found, request.meta[TIME] = stored_response(self._repository, request.url)
        self._count("stored" if found is not None else "downloaded")
        return found

    def process_response(self, request: Request, response: Response) -> Response:
        """Pass on what was downloaded, after Scrapy's redirects and retries."""
        if _remembered(request):
            at = self._repository.now()
            before = redirects_of(request, at)
            if STORED not in response.flags or before:
                self._recording.add([*before, answer_of(request, response, at)] if _whole(before, response) else before)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Pass on a download that has failed for good."""
        if _remembered(request):
            at = self._repository.now()
            self._recording.add([*redirects_of(request, at), failure_of(request.url, exception, at)])

    async def spider_closed(self) -> None:
        """Wait until everything is recorded."""
        if self._started:
            self._recording.finish()
            await maybe_deferred_to_future(self._closed.passed())
            self._report()
        self._repository.close()

    # -- the cycle's requests ------------------------------------------------------------------------------------

    def _fetch(self, requests: Sequence[recrawl.Request]) -> Iterable[Answer]:
        """Called in the recording's thread: download pages by Scrapy."""
        from twisted.internet import reactor  # lazy: the import installs a reactor

        if not self._crawler.crawling:
            raise StopRecording
        answers: list[Answer] = blockingCallFromThread(reactor, self._download_all, requests)
        return answers

    def _download_all(self, requests: Sequence[recrawl.Request]) -> Deferred[list[Answer]]:
        at = self._repository.now()
        downloads = []
        for request in requests:
            download = deferred_from_coro(self._download(request, at))
            downloads.append(download.addErrback(_failed, request.url, at))
        return gatherResults(downloads)

    async def _download(self, wanted: recrawl.Request, at: float) -> Answer:
        request = Request(
            wanted.url,
            headers=wanted.validators.headers if wanted.validators else None,
            callback=NO_CALLBACK,
            meta={"dont_redirect": True, "dont_cache": True},
        )
        self._count("refreshed")
        assert self._crawler.engine is not None
        answer = answer_of(request, await self._crawler.engine.download_async(request), at)
        answer.url = wanted.url
        return answer

    # -- helpers -------------------------------------------------------------------------------------------------

    def _open_stored(self) -> None:
        """The cycle is over: its versions can be read."""
        self._repository.close()
        self._stored.open()

    def _call(self, function: Callable[[], None]) -> None:
        """Call a function in Scrapy's thread."""
        from twisted.internet import reactor  # lazy: the import installs a reactor

        reactor.callFromThread(function)

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"recrawl/{name}")

    def _report(self) -> None:
        """Outcomes of the visits in Scrapy's stats; an error also in its log."""
        if self._recording.error:
            self._count("errors")
            _log.error("recrawl has not recorded this run: %s", self._recording.error)
        for report in (self._recording.cycle, self._recording.record):
            for outcome, count in (report.outcomes if report is not None else {}).items():
                assert self._crawler.stats is not None
                self._crawler.stats.inc_value(f"recrawl/{outcome.name.lower()}", count)


def _budget(given: object) -> float | None:
    try:
        budget = None if given is None else float(str(given))
    except ValueError:
        budget = -1.0
    if budget is not None and not budget >= 0:
        raise ValueError(f"invalid RECRAWL_BUDGET {given!r}; use a number of visits, or a share of the pages under 1")
    return budget


def _opened(folder: Path, clock: Callable[[], float] | None) -> recrawl.Repository:
    """The repository in this very folder; made if there is none."""
    try:
        found = recrawl.open(folder, clock=clock)
    except NoRepository:
        return recrawl.init(folder, clock=clock)
    return found if found.folder.resolve() == folder.resolve() else recrawl.init(folder, clock=clock)


def _failed(error: TwistedFailure, url: str, at: float) -> Answer:
    return failure_of(url, error.value, at)


def _remembered(request: Request) -> bool:
    plain = request.method == "GET" and not request.body and request.url.startswith(("http://", "https://"))
    return plain and request.callback is not NO_CALLBACK and request.meta.get("recrawl", True)


def _whole(redirects: Sequence[Answer], response: Response) -> bool:
    """Whether the last answer belongs to the visit: a stored page was not visited where a page has moved to it."""
    return STORED not in response.flags or redirects[0].status not in (301, 308)
