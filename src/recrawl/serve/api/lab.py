"""API: policy comparison on the repository's own history, and estimated change rates."""

from __future__ import annotations

from typing import Any

from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.repository.explain.rates import ESTIMATORS
from recrawl.repository.reports.pages import find
from recrawl.repository.reports.sites import origin_named
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import LIMIT, Arguments, Operation, rows
from recrawl.serve.api.queries import SITE
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.jobs.job_specs import COMPARISON
from recrawl.serve.jobs.job_specs import comparison as comparison_job
from recrawl.serve.jobs.queue import JOB_RUNNING
from recrawl.serve.problems import Problem
from recrawl.times import duration

_MAX_CHOICES = 8


def comparison(context: Context, _: Arguments) -> dict[str, Any]:
    """Return the running or latest comparison."""
    last = context.jobs.last(COMPARISON)
    if last is None:
        return {"state": "none"}
    job = {"number": last.number, "state": last.state, "told": last.message, "error": last.error}
    return {**job, "question": last.request, "rows": last.result or []}


def compare(context: Context, given: Arguments) -> dict[str, Any]:
    """Start a comparison of policies and budgets on the repository's history."""
    policies, budgets = tuple(given["policies"]), tuple(given["budgets"])
    if not 0 < len(policies) <= _MAX_CHOICES or not 0 < len(budgets) <= _MAX_CHOICES:
        raise UsageError(f"give 1 to {_MAX_CHOICES} policies and 1 to {_MAX_CHOICES} budgets")
    for name in policies:
        if name != Clairvoyant.name:
            make_policy(name, imports=False)  # raises UsageError for an invalid policy
    if not all(0 < budget <= 1e9 for budget in budgets):
        raise UsageError("budgets must be greater than 0 and at most 1e9")
    if duration(given["cycle"]) < 60:
        raise UsageError(f"cycle '{given['cycle']}' is too short; use at least 1m")
    if context.jobs.start(comparison_job(context.folder, policies, budgets, given["cycle"])) is None:
        raise Problem(409, JOB_RUNNING)
    return comparison(context, given)


def rates(context: Context, given: Arguments) -> dict[str, Any]:
    """Return estimated change rates, computed by the command line because it may need much time and memory."""
    with context.reading() as repository:
        where = find(repository, given["url"])["url"] if given["url"] else origin_named(repository, given["site"])
    words = ["rates", *([where] if where else []), "--by", given["by"], "--estimator", given["estimator"]]
    words = [*words, "--limit", str(given["limit"]), "--json"]
    return rows(subprocess_queries.run_command(context, *words))


OPERATIONS = (
    Operation(
        method="GET",
        path="/lab/comparison",
        name="comparison",
        verbs=("lab compare",),
        summary="Get the latest comparison of policies on this history.",
        answer=comparison,
    ),
    Operation(
        method="POST",
        path="/lab/comparison",
        name="compare",
        verbs=("lab compare",),
        summary="Compare policies on this history.",
        answer=compare,
        status=202,
        body=(
            Field("policies", "strings", "Policies; clairvoyant is the upper bound.", required=True),
            Field("budgets", "numbers", "Visits per cycle; below 1: a share of the pages.", required=True),
            Field("cycle", "string", "Cycle length: 6h, 1d.", default="1d"),
        ),
    ),
    Operation(
        method="GET",
        path="/rates",
        name="rates",
        verbs=("rates",),
        summary="Estimate change rates.",
        answer=rates,
        query=(
            SITE,
            Field("url", "string", "Only this page, with all estimators.", default=""),
            Field(
                "by",
                "string",
                "Group rows by page, directory or site.",
                default="page",
                choices=("page", "directory", "site"),
            ),
            Field("estimator", "string", "Rate estimator.", default="gamma", choices=tuple(ESTIMATORS)),
            LIMIT,
        ),
        returns="rows",
    ),
)
