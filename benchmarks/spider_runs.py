"""Runs of a Scrapy spider, one after another in one process: Scrapy's reactor cannot be started twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings
from scrapy.utils.reactor import install_reactor

QUIET: dict[str, Any] = {
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "EXTENSIONS": {"scrapy.extensions.memusage.MemoryUsage": None},
}


@dataclass(frozen=True)
class SpiderResult:
    """What a run of a spider came to."""

    items: list[dict[str, Any]]
    stats: dict[str, Any]

    @property
    def downloads(self) -> int:
        """Requests that reached the network."""
        return int(self.stats.get("downloader/request_count", 0))


async def run_spider(spider: type[scrapy.Spider], settings: dict[str, Any], **arguments: Any) -> SpiderResult:
    """Run a spider to its end."""
    items: list[dict[str, Any]] = []
    chosen = Settings()
    chosen.setdict({**QUIET, **settings}, priority="cmdline")  # above the spider's own
    runner = AsyncCrawlerRunner(chosen)
    crawler = runner.create_crawler(spider)
    crawler.signals.connect(lambda item: items.append(dict(item)), signal=signals.item_scraped, weak=False)
    await runner.crawl(crawler, **arguments)
    assert crawler.stats is not None
    return SpiderResult(items, crawler.stats.get_stats())


def in_reactor(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in Scrapy's reactor."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import task
    from twisted.internet.defer import Deferred

    task.react(lambda _: Deferred.fromFuture(asyncio.ensure_future(work())))
