"""A Scrapy spider with a memory: the first run downloads the site, later ones a tenth of its pages and what is new.

    pip install 'recrawl[scrapy]'
    scrapy runspider examples/scrapy_titles.py -a start=https://example.org/ -O items.json

The spider knows nothing of recrawl: the three settings are all it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import Response


class TitlesSpider(scrapy.Spider):
    """Yields the URL, title and heading of every page of a site."""

    name = "titles"
    custom_settings = {  # noqa: RUF012
        "ADDONS": {"recrawl.scrapy_bridge.Addon": 0},
        "RECRAWL_REPOSITORY": "titles",
        "RECRAWL_BUDGET": 0.1,
    }

    def __init__(self, start: str = "https://example.org/", **options: Any) -> None:
        super().__init__(**options)
        self.start_urls = [start]

    def parse(self, response: Response) -> Iterator[Any]:
        """One item, and the links of the page."""
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "heading": response.css("h1::text").get(),
        }
        for link in response.css("a::attr(href)").getall():
            if response.urljoin(link).startswith(self.start_urls[0]):
                yield response.follow(link)
