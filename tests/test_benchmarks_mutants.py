"""The list of mutants fits the code: `python -m benchmarks.mutants` runs them."""

from __future__ import annotations

import json

from benchmarks.mutants import MUTANTS, SOURCE

from tests.test_golden import FILE


def test_every_mutant_changes_code_that_is_there_and_that_a_golden_policy_uses() -> None:
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(MUTANTS) >= 60
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert mutant.code in (SOURCE / mutant.file).read_text(encoding="utf-8"), mutant.name
        assert mutant.code != mutant.instead
        assert mutant.file.startswith(("choose/", "learn/"))
        assert set(mutant.policies) <= golden.keys(), mutant.name
