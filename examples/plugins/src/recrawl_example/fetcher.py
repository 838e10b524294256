"""A fetcher: libcurl as usual, and a line in a file for each request."""

from __future__ import annotations

import os
from pathlib import Path

from recrawl.fetch.http import Client, Request


class CountingClient(Client):
    """Writes the URL of each request to the file that RECRAWL_EXAMPLE_LOG names."""

    def start(self, ticket: int, request: Request) -> None:
        """Start a download, and note it."""
        with Path(os.environ["RECRAWL_EXAMPLE_LOG"]).open("a") as log:
            log.write(f"{request.url}\n")
        super().start(ticket, request)
