"""The cluster benchmarks: the verdict finds what was lost, doubled or never asked for, and a cycle is planned."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.cluster_verdict import Visit, request_faults, visit_faults
from hypothesis import given
from hypothesis import strategies as st

from recrawl.choose.shards import offers


def visit(number: int, shard: int) -> Visit:
    return Visit(shard, number, 0, f"http://s{shard}.localhost:8/p/{number}.html", 1.0 + number, 1, "")


def asked_for(visits: list[Visit]) -> list[list[Any]]:
    """The requests that belong to visits."""
    return [[f"s{it.shard}.localhost", "7", it.at, it.at, f"/p/{it.number}.html", 200] for it in visits]


VISITS = [visit(number, shard) for shard in (0, 1) for number in range(5)]
SOME = st.sampled_from(VISITS)


@given(st.integers(0, len(VISITS)))
def test_visits_that_only_grow_have_no_fault(known: int) -> None:
    assert visit_faults(VISITS[:known], VISITS) == []
    assert request_faults(VISITS, asked_for(VISITS)) == ([], 0)


@given(SOME)
def test_a_lost_visit_is_found(lost: Visit) -> None:
    faults = visit_faults(VISITS, [it for it in VISITS if it != lost])
    assert any(fault.startswith("lost") for fault in faults)


@given(SOME)
def test_a_visit_that_was_changed_is_found(changed: Visit) -> None:
    after = [replace(it, outcome=0) if it == changed else it for it in VISITS]
    assert any(fault.startswith("lost") for fault in visit_faults(VISITS, after))


@given(SOME)
def test_a_doubled_visit_is_found(doubled: Visit) -> None:
    again = replace(doubled, number=5, at=99.0)
    after = sorted([*VISITS, again], key=lambda it: (it.shard, it.number))
    assert visit_faults([], after) == [f"{doubled.url} was visited 2 times in one run"]
    assert visit_faults(VISITS, after) == []  # a second run may visit it again
    (fault,) = request_faults(after, asked_for(VISITS))[0]
    assert "2 visits, 1 requests" in fault


@given(SOME)
def test_a_gap_of_numbers_is_found(lost: Visit) -> None:
    faults = visit_faults([], [it for it in VISITS if it != lost])
    inside = 0 < lost.number < 4
    assert faults == ([f"the numbers of the visits of shard {lost.shard} have gaps"] if inside else [])


@given(st.lists(SOME, unique=True))
def test_answers_that_no_visit_recorded_are_counted(twice: list[Visit]) -> None:
    assert request_faults(VISITS, asked_for(VISITS + twice)) == ([], len(twice))


def test_the_benchmark_plans_a_cycle_over_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "settle", vars(offers)["settle"])  # it is replaced by one with a clock
    benchmark: Any = importlib.import_module("benchmarks.cluster")  # without types, as benchmarks are
    row = benchmark.plan(20_000, shards=2, batches=4, bins=10)
    assert row["offer, bytes a shard and round"] > 0
    assert 0 < row["found"] <= 200
