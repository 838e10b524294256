"""Crawlee as its guide has it: a ParselCrawler that enqueues every link. Runs in an environment of its own."""

import asyncio
import logging
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler
from crawlee.storage_clients import MemoryStorageClient


async def main() -> None:
    crawler = ParselCrawler(
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(desired_concurrency=16, max_concurrency=64),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def follow(context) -> None:
        await context.enqueue_links()

    await crawler.run([sys.argv[1]])


logging.disable(logging.WARNING)
asyncio.run(main())
