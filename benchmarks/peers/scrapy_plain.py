"""Scrapy as its tutorial has it: a CrawlSpider that follows every link. Runs in an environment of its own."""

import sys

from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Plain(CrawlSpider):
    name = "plain"
    start_urls = [sys.argv[1]]  # noqa: RUF012
    allowed_domains = ["127.0.0.1"]  # noqa: RUF012
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response):
        pass


process = CrawlerProcess()
process.crawl(Plain)
process.start()
