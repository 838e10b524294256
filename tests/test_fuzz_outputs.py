"""Pages that hurt, from a server to every output, with a fixed seed; `benchmarks.fuzz_outputs` goes on with others."""

from __future__ import annotations

from benchmarks.fuzz_outputs import SEED, run_round


def test_pages_that_hurt_harm_no_output_and_no_other_page() -> None:
    found = run_round(SEED, 0, 60, refreshes=1)
    assert found.problems == []
    assert found.pages >= 60
    assert found.outputs > 200
