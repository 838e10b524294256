"""The referee of the cluster benchmarks: a web server that names its clients, and a verdict that cannot be fooled."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.referee import Sites, path_of, running
from benchmarks.referee_verdict import judge
from hypothesis import given
from hypothesis import strategies as st

DELAY = 0.5
Row = list[Any]


@st.composite
def polite_logs(draw: st.DrawFn) -> list[Row]:
    """A log without fault: three hosts, each with one client at a time, and pauses of the delay or more."""
    rows: list[Row] = []
    for host in ("s0.localhost", "s1.localhost", "s2.localhost"):
        now, count = draw(st.floats(0, 5)), draw(st.integers(2, 8))
        handed_over = draw(st.integers(1, count))
        for number in range(count):
            end = now + draw(st.floats(0, 2))
            rows.append([host, "8" if number >= handed_over else "7", now, end, f"/{number}", 200])
            now = end + DELAY + draw(st.floats(0.001, 2))
    return draw(st.permutations(rows))


ONE_TURN = {f"s{n}.localhost": 1 for n in range(3)}


@given(polite_logs())
def test_a_polite_log_has_no_fault(rows: list[Row]) -> None:
    verdict = judge(rows, DELAY, ONE_TURN)
    assert verdict.faults == []
    assert (verdict.requests, verdict.hosts) == (len(rows), 3)
    assert verdict.smallest_gap >= DELAY


@given(polite_logs(), st.data())
def test_one_planted_violation_is_found(rows: list[Row], data: st.DataObject) -> None:
    host = data.draw(st.sampled_from(["s0.localhost", "s1.localhost", "s2.localhost"]))
    mine = sorted((row for row in rows if row[0] == host), key=lambda row: row[2])
    kind = data.draw(st.sampled_from(["at once", "too soon", "turns"]))
    victim = data.draw(st.sampled_from(mine[:-1] if kind != "turns" else mine))
    planted = [host, "9", victim[3], victim[3] + 0.01, "/planted", 200]
    if kind == "at once":
        victim[3] = max(victim[3], victim[2] + 0.01)
        planted[2] = data.draw(st.floats(victim[2], victim[3], exclude_min=True, exclude_max=True))
        planted[3] = planted[2] + data.draw(st.floats(0, 9))
    elif kind == "too soon":
        planted[2] += data.draw(st.floats(0, DELAY * 0.99))
        planted[3] = planted[2]
    else:  # both clients keep the delay, but the host goes back and forth between them
        last = mine[-1][3]
        rows += [[host, str(number), last + number, last + number, "/turn", 200] for number in range(1, 4)]
    verdict = judge(rows if kind == "turns" else [*rows, planted], DELAY, ONE_TURN)
    found = {"at once": verdict.at_once, "too soon": verdict.too_soon, "turns": verdict.turns}[kind]
    assert found
    assert all(host in sentence for sentence in verdict.faults)


ASKS = """
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Host": "s1.localhost"})).close()
"""


def test_the_server_names_the_process_that_asks(tmp_path: Path) -> None:
    with running(Sites(3, 4), tmp_path / "log", latency=0) as web:
        url = f"http://127.0.0.1:{web.port}/"
        asking = subprocess.Popen([sys.executable, "-c", ASKS, url])
        assert asking.wait() == 0
        request = urllib.request.Request(f"{url}nothing", headers={"Host": f"s2.localhost:{web.port}"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(request)
        rows = web.requests()
    assert [(row[0], row[1], row[4], row[5]) for row in rows] == [
        ("s1.localhost", str(asking.pid), "/", 200),
        ("s2.localhost", str(os.getpid()), "/nothing", 404),
    ]
    assert all(row[2] <= row[3] for row in rows)


def test_every_page_is_linked_and_the_same_seed_gives_the_same_web() -> None:
    sites = Sites(20, 8, seed=3)
    linked = {f"http://s{site}.localhost:80/"[:-1] + path_of(0) for site in range(20)}  # the seeds
    for site in range(20):
        text = sites.body(site, 0, 0, 80).decode()
        hrefs = [part.partition('"')[0] for part in text.split('href="')[1:]]
        linked |= {href if href.startswith("http") else f"http://s{site}.localhost:80{href}" for href in hrefs}
    assert linked == set(sites.urls(80))
    assert any(other != site for site in range(20) for other, _ in sites.hidden[site])
    again, other = replace(sites), replace(sites, seed=4)
    assert [list(it) for it in sites.versions(5)] == [list(it) for it in again.versions(5)]
    assert sites.body(1, 0, 2, 80) != sites.body(1, 0, 3, 80) != other.body(1, 0, 3, 80)
    assert sum(it.sum() for it in sites.versions(1)) > 0
