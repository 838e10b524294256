"""What a web server must not see of a polite crawler, over a whole log of `benchmarks.referee`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.socket_owner import UNKNOWN


@dataclass(frozen=True)
class Verdict:
    """What the log shows; each fault is one sentence."""

    requests: int
    hosts: int
    clients: int
    unknown: int
    """Requests whose process had ended before it could be named; their times count all the same."""
    smallest_gap: float
    """The shortest time between an answer and the next request to the same host, in seconds."""
    at_once: list[str]
    """Requests that came while another one to the same host was under way."""
    too_soon: list[str]
    """Requests that came sooner after the last answer than the delay."""
    turns: list[str]
    """Hosts that were passed from client to client more often than their shards were."""

    @property
    def faults(self) -> list[str]:
        return self.at_once + self.too_soon + self.turns


def judge(rows: Iterable[Sequence[Any]], delay: float, turns: Mapping[str, int] | None = None) -> Verdict:
    """Judge a log.

    `turns` has how often each host may have passed from one client to another: as often as the lease of its shard was
    taken. Without it this is not judged.

    >>> first = ["s1.localhost", "7", 0.0, 1.0, "/", 200]
    >>> judge([first, ["s1.localhost", "8", 2.0, 2.5, "/a", 200]], delay=1.0).faults
    []
    >>> judge([first, ["s1.localhost", "8", 0.5, 2.5, "/a", 200]], delay=0.0).at_once
    ['s1.localhost: /a of 8 came 0.500 s before / of 7 was answered']
    """
    by_host: dict[str, list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        by_host[row[0]].append(row)
    at_once, too_soon, passed, gaps = [], [], [], []
    for host, asked in by_host.items():
        asked.sort(key=lambda row: row[2])
        last = asked[0]
        for row in asked[1:]:
            gap = row[2] - last[3]
            gaps.append(gap)
            if gap < 0:
                at_once.append(
                    f"{host}: {row[4]} of {row[1]} came {-gap:.3f} s before {last[4]} of {last[1]} was answered"
                )
            elif gap < delay:
                too_soon.append(
                    f"{host}: {row[4]} of {row[1]} came {gap:.3f} s after {last[4]} of {last[1]}, not {delay:g}"
                )
            last = row if row[3] > last[3] else last
        clients = [row[1] for row in asked if row[1] != UNKNOWN]
        changed = sum(one != other for one, other in pairwise(clients))
        if turns is not None and changed > turns.get(host, 0):
            passed.append(f"{host} passed from client to client {changed} times, its shard {turns.get(host, 0)} times")
    everyone = [row[1] for asked in by_host.values() for row in asked]
    return Verdict(
        requests=len(everyone),
        hosts=len(by_host),
        clients=len(set(everyone) - {UNKNOWN}),
        unknown=everyone.count(UNKNOWN),
        smallest_gap=min(gaps, default=float("inf")),
        at_once=at_once,
        too_soon=too_soon,
        turns=passed,
    )
