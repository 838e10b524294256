"""What the Scrapy bridge saves: the downloads and items of a spider on generated sites that change for 30 days.

    python -m benchmarks.scrapy_bridge [--days 30] [--pages 60] [--budget 0.1 0.2] [--policy shock]

The same spider runs once a day without the bridge, and with it for each budget (a share of the known pages; pages that
are new are downloaded besides). An item is the URL, title and text of a page. The items without the bridge are the
truth of the day: an item with the bridge is current if the truth has the same one, stale if the page has another one by
then, and an extra if the page is no longer reached. The first day, on which every page is new, is counted too.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import scrapy
from scrapy.http import Response

from benchmarks.spider_runs import in_reactor, run_spider
from recrawl.scrapy_bridge import RecrawlMiddleware
from recrawl.testing import GeneratedWeb

Items = dict[str, tuple[str, str]]


class TextSpider(scrapy.Spider):
    """An ordinary spider: follows all links of its sites, and yields the title and text of every page."""

    name = "text"

    def __init__(self, start: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.start_urls = start

    def parse(self, response: Response) -> Iterator[Any]:
        """One item, and the links."""
        text = " ".join(" ".join(response.css("main *::text, body > p::text").getall()).split())
        yield {"url": response.url, "title": response.css("title::text").get(""), "text": text}
        for link in response.css("a::attr(href)").getall():
            if any(response.urljoin(link).startswith(start) for start in self.start_urls):
                yield response.follow(link)


class Day(NamedTuple):
    """What one run downloaded and yielded."""

    downloads: int
    items: Items


class Way:
    """One way to run the spider, day after day."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self._settings = settings
        self.days: list[Day] = []

    async def run(self, start: list[str]) -> None:
        """One day."""
        result = await run_spider(TextSpider, self._settings, start=start)
        items = {item["url"]: (item["title"], item["text"]) for item in result.items}
        self.days.append(Day(result.downloads, items))


def staleness(truth: list[Items], day: int, url: str, item: tuple[str, str]) -> int:
    """Days since the page had this item last."""
    return next((day - past for past in range(day, -1, -1) if truth[past].get(url) == item), day + 1)


def row(way: Way, plain: Way) -> list[str]:
    """A row of the table."""
    truth = [day.items for day in plain.days]
    current = stale = extra = missing = age = 0
    for number, day in enumerate(way.days):
        for url, item in day.items.items():
            if url not in truth[number]:
                extra += 1
            elif truth[number][url] == item:
                current += 1
            else:
                stale += 1
                age += staleness(truth, number, url, item)
        missing += len(truth[number].keys() - day.items.keys())
    downloads = sum(day.downloads for day in way.days)
    wanted = sum(map(len, truth))
    share = downloads / sum(day.downloads for day in plain.days)
    cells = [way.name, f"{downloads:,}", f"{share:.1%}", f"{sum(len(d.items) for d in way.days):,}"]
    cells += [f"{current / wanted:.1%}", f"{stale / wanted:.1%}", f"{missing / wanted:.1%}", f"{extra / wanted:.1%}"]
    return [*cells, f"{age / stale:.1f}" if stale else "-"]


async def measure(chosen: argparse.Namespace) -> None:
    """Run all ways side by side on the same days, and print a table."""
    resolve_localhost()
    plain = Way("without", {})
    with (
        GeneratedWeb(sites=chosen.sites, pages=chosen.pages, days=chosen.days + 2.0, seed=chosen.seed) as web,
        tempfile.TemporaryDirectory() as folder,
    ):
        RecrawlMiddleware.clock = staticmethod(web.now)
        ways = [plain]
        for policy in chosen.policy:
            for budget in chosen.budget:
                name = f"{policy or 'default policy'}, budget {budget:g}"
                settings = {"ADDONS": {"recrawl.scrapy_bridge.Addon": 0}, "RECRAWL_BUDGET": budget}
                settings |= {"RECRAWL_REPOSITORY": str(Path(folder) / name), "RECRAWL_POLICY": policy}
                ways.append(Way(name, settings))
        for _ in range(chosen.days):
            for way in ways:
                await way.run(web.urls)
            web.advance(days=1)
    heads = ["way", "downloads", "share", "items", "current", "stale", "missing", "extra", "days-stale"]
    for cells in (heads, ["---"] * len(heads), *(row(way, plain) for way in ways)):
        print(f"| {' | '.join(cells)} |")


def resolve_localhost() -> None:
    """Let names below `.localhost` be this machine, as browsers and curl do."""
    from twisted.internet import reactor
    from twisted.internet._resolver import GAIResolver

    def resolved(host: str, *rest: Any) -> Any:
        return socket.getaddrinfo("127.0.0.1" if host.endswith(".localhost") else host, *rest)

    reactor.installNameResolver(GAIResolver(reactor, reactor.getThreadPool, resolved))


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrapy_bridge", description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, nargs="+", default=[0.1, 0.2])
    parser.add_argument("--policy", nargs="+", default=[""])
    chosen = parser.parse_args()
    in_reactor(lambda: measure(chosen))


if __name__ == "__main__":
    main()
