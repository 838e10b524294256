"""Idle connections are kept for the next request to their server, as far as the limit of open files allows."""

from __future__ import annotations

import pytest

from recrawl.fetch.fetcher import Request
from recrawl.fetch.http import Client
from tests.world import Site, page

HOSTS = 150


def _after_two_rounds(site: Site) -> int:
    """Request a page of each host twice, one host at a time; return the number of open connections."""
    client = Client(agent="test")
    try:
        for ticket in [*range(HOSTS), *range(HOSTS)]:
            client.start(ticket, Request(site.url("/", f"h{ticket}.localhost"), private=True))
            while not (answers := client.wait(1.0)):
                pass
            assert answers[0][1].status == 200
        return len(site._writers)
    finally:
        client.close()


@pytest.mark.parametrize(("files", "kept"), [(20_000, HOSTS), (-1, HOSTS), (600, 44)])
def test_idle_connections(monkeypatch: pytest.MonkeyPatch, files: int, kept: int) -> None:
    monkeypatch.setattr("recrawl.fetch.http.resource.getrlimit", lambda _: (files, files))
    with Site({"/": page("Hello")}) as site:
        assert kept - 2 <= _after_two_rounds(site) <= kept + 2  # the server hears of closed ones a moment later
