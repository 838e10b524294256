"""Search in all shards of a cluster: ask every worker at once, and merge what comes within a limit of time.

Each shard ranks by the words of its own pages, so that scores of different shards are comparable where shards hold many
pages of every kind, which placing by hash gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

from recrawl.cluster.layout import Layout
from recrawl.cluster.search_server import address_name, token_of
from recrawl.errors import UsageError
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.http import fetch_one
from recrawl.repository.results.values import SearchHit, SearchHits, at
from recrawl.version import __version__

SECONDS = 2.0
"""Time within which a shard must answer."""
_REFUSED = 400
_MOST = 64
"""Shards that are asked at once."""


def search_shards(
    layout: Layout,
    question: dict[str, Any],
    shards: Iterable[int],
    *,
    limit: int,
    offset: int = 0,
    seconds: float = SECONDS,
) -> SearchHits:
    """The best hits of these shards, with the shards that did not answer in time."""
    asked = sorted(shards)
    with closing(layout.open()) as cluster:
        token = token_of(cluster)
        places = [(shard, cluster.fact(address_name(shard))) for shard in asked]
    body = json.dumps({**question, "limit": offset + limit}).encode()
    with ThreadPoolExecutor(min(_MOST, max(1, len(asked)))) as pool:
        answers = list(pool.map(partial(_ask, body=body, token=token, seconds=seconds), (url for _, url in places)))
    found = SearchHits()
    for shard, answer in zip(asked, answers, strict=True):
        if answer is None:
            found.unanswered += (shard,)
        else:
            found += (_hit(row, shard, layout.shards) for row in answer)
    found.sort(key=lambda hit: (-hit.score, hit.page))
    found[:] = found[offset : offset + limit]
    return found


def _ask(url: str, *, body: bytes, token: str, seconds: float) -> list[dict[str, Any]] | None:
    """The hits of a shard; None if it does not answer in time, `UsageError` if the question is invalid."""
    if not url:
        return None
    headers = (f"Authorization: Bearer {token}", "Content-Type: application/json")
    limits = FetchLimits(connect_seconds=seconds, total_seconds=seconds, stall_seconds=seconds)
    request = Request(url, private=True, post=body, headers=headers)
    answer = fetch_one(request, agent=f"recrawl/{__version__}", limits=limits)
    if answer.failure is not None and answer.status != _REFUSED:
        return None
    try:
        found = json.loads(answer.body)
    except ValueError:
        return None
    if answer.status == _REFUSED:
        raise UsageError(found["error"])
    return list(found["hits"]) if "hits" in found else None


def _hit(row: dict[str, Any], shard: int, shards: int) -> SearchHit:
    marks = tuple((start, end) for start, end in row["marks"])
    page = row["page"] * shards + shard
    return SearchHit(
        page, row["url"], row["title"], at(row["at"]), row["score"], row["snippet"], marks, tuple(row["also"])
    )
