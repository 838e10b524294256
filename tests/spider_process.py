"""A process that runs the example spider once for each line of its input, and prints what came of it.

A line is JSON: settings of Scrapy, `now` for the recorded times, and `start`, the URL. `stop_after` stops the spider,
as Ctrl-C does, when that many answers have come.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.spider_runs import in_reactor, run_spider
from examples.scrapy_titles import TitlesSpider
from scrapy import signals

from recrawl.scrapy_bridge import RecrawlMiddleware


class StoppableSpider(TitlesSpider):
    """Stops itself after some answers; says of the front page when it was downloaded."""

    def parse(self, response: Any) -> Iterator[Any]:
        """Also the time of the front page, as a stat."""
        when = response.meta["recrawl_time"]
        if response.url == self.start_urls[0] and self.crawler.stats is not None:
            self.crawler.stats.set_value("front", when.isoformat() if when else "now")
        yield from super().parse(response)

    @classmethod
    def from_crawler(cls, crawler: Any, *arguments: Any, **options: Any) -> Any:
        """Count the answers."""
        left = options.pop("stop_after", 0)
        spider = super().from_crawler(crawler, *arguments, **options)
        answered: list[str] = []

        def count(response: Any) -> None:
            answered.append(response.url)
            if len(answered) == left:
                asyncio.ensure_future(crawler.stop_async())  # noqa: RUF006

        if left:
            crawler.signals.connect(count, signal=signals.response_received, weak=False)
        return spider


async def main() -> None:
    """One run for each line."""
    for line in sys.stdin:
        given = json.loads(line)
        now = given.pop("now")
        RecrawlMiddleware.clock = staticmethod(lambda now=now: now)
        arguments = {name: given.pop(name) for name in ("start", "stop_after") if name in given}
        result = await run_spider(StoppableSpider, given, **arguments)
        items = sorted(item["url"] + " " + str(item["heading"]) for item in result.items)
        stats = {name: value for name, value in result.stats.items() if isinstance(value, int | str)}
        print(json.dumps({"items": items, "downloads": result.downloads, "stats": stats}), flush=True)


if __name__ == "__main__":
    in_reactor(main)
