"""API: policy comparison on the repository's own history, and estimated change rates."""

from __future__ import annotations

from recrawl import parameters as given
from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.operations import operation
from recrawl.repository.reports.pages import find
from recrawl.repository.reports.sites import origin_named
from recrawl.serve.api.answers import ComparisonAnswer, ListAnswer, RateAnswer, listing
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.jobs.job_specs import COMPARISON
from recrawl.serve.jobs.job_specs import comparison as comparison_job
from recrawl.serve.jobs.queue import JOB_RUNNING
from recrawl.serve.problems import Problem
from recrawl.times import duration

_MAX_CHOICES = 8


@operation(http="GET /lab/comparison", commands=("lab compare",))
def comparison(context: Context) -> ComparisonAnswer:
    """Get the latest comparison of policies on this history."""
    last = context.jobs.last(COMPARISON)
    if last is None:
        return ComparisonAnswer(state="none")
    return ComparisonAnswer(
        state=last.state,
        number=last.number,
        told=last.message,
        error=last.error,
        question=last.request,
        rows=last.result or [],
    )


@operation(http="POST /lab/comparison", commands=("lab compare",), status=202, writes=True)
def compare(
    context: Context,
    *,
    policies: given.ComparedPolicies,
    budgets: given.ComparedBudgets,
    cycle: given.CycleLength = "1d",
) -> ComparisonAnswer:
    """Compare policies and budgets on this history."""
    if not 0 < len(policies) <= _MAX_CHOICES or not 0 < len(budgets) <= _MAX_CHOICES:
        raise UsageError(f"give 1 to {_MAX_CHOICES} policies and 1 to {_MAX_CHOICES} budgets")
    for name in policies:
        if name != Clairvoyant.name:
            make_policy(name, imports=False)  # raises UsageError for an invalid policy
    if not all(0 < budget <= 1e9 for budget in budgets):
        raise UsageError("budgets must be greater than 0 and at most 1e9")
    if duration(cycle) < 60:
        raise UsageError(f"cycle '{cycle}' is too short; use at least 1m")
    if context.jobs.start(comparison_job(context.folder, policies, budgets, cycle)) is None:
        raise Problem(409, JOB_RUNNING)
    return comparison(context)


@operation(http="GET /rates", commands=("why",))
def rates(
    context: Context,
    *,
    site: given.Site = "",
    url: given.RatedPage = "",
    by: given.RateOf = "page",
    estimator: given.Estimator = "gamma",
    limit: given.PageLimit = 50,
) -> ListAnswer[RateAnswer]:
    """Estimate change rates. The command line computes them, because they may need much time and memory."""
    with context.reading() as repository:
        where = find(repository, url)["url"] if url else origin_named(repository, site)
    words = ["why", "--rate", *([where] if where else []), "--by", by, "--estimator", estimator, "--limit", str(limit)]
    return listing(RateAnswer, subprocess_queries.run_command(context, *words, "--json"))
