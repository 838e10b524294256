"""The Scrapy bridge: a repository as the memory of a spider, and a policy that chooses what it downloads again.

    # settings.py of a Scrapy project
    ADDONS = {"recrawl.scrapy_bridge.Addon": 0}
    RECRAWL_REPOSITORY = "products"      # a folder; made if there is none
    RECRAWL_POLICY = "shock"             # the policy of the repository by default
    RECRAWL_BUDGET = 0.1                 # visits to known pages in a run, or under 1 a share of them

A run of the spider begins with a cycle: the policy chooses known pages, Scrapy downloads them, conditionally where the
site's validators can be trusted, and the repository records what they are now. Then the spider runs as always. Pages
that the repository holds are answered from there, others are downloaded and recorded. So a callback sees every page,
and yields the items of pages that were not downloaded from the versions that are stored.

    middleware   the downloader middleware: stored pages, and answers for the record
    recording    the thread that holds the repository for writing
    answers      Scrapy's responses and errors as answers of recrawl, and stored versions as responses

It needs the extra `scrapy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.scrapy_bridge.middleware import RecrawlMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["Addon", "RecrawlMiddleware"]

_PLACE = 545
"""Behind Scrapy's retries, redirects and decompression: what gets here is final, or has not begun."""


class Addon:
    """Adds the middleware to a project."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy."""
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RecrawlMiddleware, _PLACE)
