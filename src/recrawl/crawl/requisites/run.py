"""What the requisites of a run share with its pages."""

from __future__ import annotations

from typing import Protocol

from recrawl.crawl.hints.site_resources import SiteResources
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.reader_pool import Readers
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Servers
from recrawl.fetch.fetcher import Fetcher
from recrawl.fetch.lanes import Lanes


class RequisiteRun(Protocol):
    """What pages and requisites of a run share."""

    servers: Servers
    lanes: Lanes
    client: Fetcher
    readers: Readers
    recorder: Recorder
    resources: SiteResources
    tally: RunCounts
