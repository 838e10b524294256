"""The time of an answer is the server's, not ours: what the client does between two waits does not count."""

from __future__ import annotations

import time

import pytest

from recrawl.fetch.fetcher import Request
from recrawl.fetch.http import Client
from tests.world import Site, page


class Watch:
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._monotonic = time.monotonic

    def __call__(self) -> float:
        return self._monotonic() + self.ahead


def test_time_in_which_nobody_listens_is_not_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes by our clock while a request is under way and we are busy: libcurl's clock shows a moment."""
    watch = Watch()
    monkeypatch.setattr("recrawl.fetch.http.time.monotonic", watch)
    with Site({"/": page("Hello")}) as site:
        client = Client(agent="test")
        try:
            client.wait(0.0)
            watch.ahead += 3600.0  # before the request: not of its time
            client.start(1, Request(site.url("/"), private=True))
            answers = client.wait(0.0)
            assert answers == []
            before = client._away
            while not (answers := client.wait(1.0)):
                pass
        finally:
            client.close()
    (_, answer) = answers[0]
    assert before >= 3600.0
    assert answer.status == 200
    assert answer.seconds > 0.0, "time before the request was taken off"


def test_time_in_which_we_were_busy_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    monkeypatch.setattr("recrawl.fetch.http.time.monotonic", watch)
    with Site({"/": page("Hello")}) as site:
        client = Client(agent="test")
        try:
            client.start(1, Request(site.url("/"), private=True))
            watch.ahead += 3600.0
            while not (answers := client.wait(1.0)):
                pass
        finally:
            client.close()
    assert (answers[0][1].status, answers[0][1].seconds) == (200, 0.0)
