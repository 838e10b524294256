"""Scrapy made as quick as its settings allow. Runs in `.bench/venv`.

What it documents for broad crawls (no cookies, retries or redirects, no logging), and a set of seen URLs that
is asked before a Request is built, in place of its own filter, which builds and hashes a Request per link.
"""

import sys
from urllib.parse import urljoin

import scrapy
from scrapy.crawler import CrawlerProcess

START = sys.argv[1]


class Best(scrapy.Spider):
    name = "best"
    start_urls = [START]  # noqa: RUF012

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = {START}

    def parse(self, response):
        base, seen = response.url, self.seen
        for href in response.css("a::attr(href)").getall():
            url = urljoin(base, href.partition("#")[0])
            if url not in seen and url.startswith(START):
                seen.add(url)
                yield scrapy.Request(url, dont_filter=True)


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "COOKIES_ENABLED": False,
        "LOG_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "RETRY_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
    }
)
process.crawl(Best)
process.start()
