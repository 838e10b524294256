"""Scrapy made as quick as its settings allow. Runs in an environment of its own.

What it documents for broad crawls (no cookies, retries or redirects, no logging), and a set of seen URLs that
is asked before a Request is built, in place of its own filter, which builds and hashes a Request per link.
With `wacz` as last argument it records what it downloads, as scrapy-webarchive does it: as WARC, then as WACZ.
"""

import os
import sys
from pathlib import Path
from urllib.parse import urljoin

import scrapy
from scrapy.crawler import CrawlerProcess

START, FOLDER, RECORDS = sys.argv[1], sys.argv[3], sys.argv[4:] == ["wacz"]
RECORD = {"EXTENSIONS": {"scrapy_webarchive.extensions.WaczExporter": 543}, "SW_EXPORT_URI": f"{FOLDER}/"}


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


if RECORDS:
    Path(FOLDER).mkdir()
    os.chdir(FOLDER)  # where it writes the WARC file
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
        **(RECORD if RECORDS else {}),
    }
)
process.crawl(Best)
process.start()
