"""Which replays to run: every policy with every budget, cycle length and seed."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recrawl.choose import Policy, describe, make_policy
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.lab.replays.replay import Setup


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay to run."""

    policy: str | Policy
    """The text of a policy, or a policy object; each replay of an object works on a copy of it."""
    setup: Setup


def policy_for(policy: str | Policy, history: History, setup: Setup) -> Policy:
    """Return a fresh policy; only the clairvoyant gets the history and the setup."""
    if not isinstance(policy, str):
        return copy.deepcopy(policy)
    if is_clairvoyant(policy):
        if setup.discover == "crawl":
            raise UsageError("the clairvoyant needs a repository that holds all pages at first: use no discover=crawl")
        return Clairvoyant(history, setup.budget, setup.cycle, setup.cycles)
    return make_policy(policy)


def needs_of(policies: Iterable[str | Policy]) -> frozenset[str]:
    """Return what the policies together need from an archive."""
    return frozenset[str]().union(*(made(policy).needs for policy in policies if not is_clairvoyant(policy)))


def name_of(policy: str | Policy) -> str:
    """Return the policy's text in its canonical form; raise a UsageError for an invalid text."""
    if is_clairvoyant(policy):
        return Clairvoyant.name
    try:
        return describe(made(policy))
    except UsageError:
        if isinstance(policy, str):
            raise
        return policy.name  # an object that has no text, such as one of a local class


def made(policy: str | Policy) -> Policy:
    """Return the policy of a text, or the object itself."""
    return make_policy(policy) if isinstance(policy, str) else policy


def is_clairvoyant(policy: str | Policy) -> bool:
    """Whether this is the bound `clairvoyant`, which knows the history."""
    return isinstance(policy, str) and policy.strip() == Clairvoyant.name


def setup_for(
    history: History, budget: float, cycle: float, cycles: int | None = None, seed: int = 1, **options: Any
) -> Setup:
    """Return the setup of a replay; further options are fields of `Setup`. Sites keep a fair share, as in a crawl.

    Parameters
    ----------
    budget
        Visits per cycle; a number between 0 and 1 is a share of the history's pages, at least one visit.
    cycle
        Length of a cycle in seconds.
    cycles
        Number of cycles; by default as many as the history lasts.
    """
    if not 0 <= budget < float("inf"):
        raise UsageError(f"invalid budget {budget:g}; use a number of visits per cycle, or a share below 1")
    if not 0 < cycle < float("inf"):
        raise UsageError(f"invalid cycle length {cycle:g} s; it must be more than 0")
    return Setup(
        **{"site_share": "auto", **options},
        budget=max(1, round(budget * len(history))) if 0 < budget < 1 else int(budget),
        cycle=cycle,
        cycles=cycles or max(1, math.ceil(history.span / cycle)),
        seed=seed,
    )


def trials_of(
    history: History,
    policies: Iterable[str | Policy],
    budgets: Sequence[float],
    lengths: Sequence[float],
    cycles: int | None,
    seeds: Sequence[int],
    **options: Any,
) -> list[Trial]:
    """Return one trial for each cycle length, budget, policy and seed, without duplicates.

    Several shares of a small history can round to the same number of visits.
    """
    policies = [name_of(policy) if isinstance(policy, str) else policy for policy in policies]
    return list(
        dict.fromkeys(
            Trial(policy, setup_for(history, budget, length, cycles, seed, **options))
            for length in lengths
            for budget in budgets
            for policy in policies
            for seed in seeds
        )
    )
