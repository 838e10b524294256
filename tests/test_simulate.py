"""The simulator: crawls with faults that break no rule, and wrong rules that it notices."""

from __future__ import annotations

import pytest
from benchmarks.simulate import MUTANTS, caught_by, mutant

from recrawl.testing.simulate import Code, resume_exactly, simulate

_SEEDS = 120
KEPT = (2, 4, 6, 12, 132, 384)
"""Seeds that found something once: sitemaps read from a server whose robots.txt could not be read any more, or behind a
redirect to what it forbids; a file for the browser from a site whose bytes were spent."""


@pytest.mark.parametrize("seed", [1085, 1768])
def test_seeds_whose_web_was_not_steady_once(seed: int) -> None:
    """Pages that no reader could read, but that also answered with 304; sitemaps that led to pages."""
    resume_exactly(seed)


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_failed_once(seed: int) -> None:
    simulate(seed)


def test_many_seeds_break_no_rule() -> None:
    runs = [simulate(seed) for seed in range(1000, 1000 + _SEEDS)]
    assert sum(run.crashes for run in runs) > _SEEDS / 2
    assert sum(run.visits for run in runs) > 5 * _SEEDS
    assert all(run.commits for run in runs)
    kinds = {failure for run in runs for failure in run.failures}
    assert {"", "timeout", "robots-disallowed", "http-429", "redirect-away", "held-off", "not-found"} <= kinds


def test_a_seed_gives_the_same_run_each_time() -> None:
    assert simulate(5) == simulate(5)


@pytest.mark.parametrize("what", ["two requests at once", "robots.txt is ignored", "a visit is recorded twice"])
def test_wrong_rules_are_noticed(what: str) -> None:
    (rule,) = (rule for rule in MUTANTS if rule.what == what)
    assert caught_by(mutant(rule), 40) is not None
    assert caught_by(mutant(rule), 40, checks=False) is not None, "not by the servers and the record alone"


def test_the_code_of_every_wrong_rule_is_there() -> None:
    for rule in MUTANTS:
        assert mutant(rule) != Code()


def test_cycles_that_crashed_make_the_choices_of_undisturbed_ones() -> None:
    """Although servers answer at other speeds."""
    runs = [resume_exactly(seed) for seed in range(40)]
    assert sum(run.crashes for run in runs) > 60


def test_choices_that_follow_the_speed_of_servers_are_noticed() -> None:
    (rule,) = (rule for rule in MUTANTS if rule.what == "choices follow the speed of servers")
    assert caught_by(mutant(rule), 40) is not None
