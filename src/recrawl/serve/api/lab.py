"""What takes long: comparisons of policies on the repository's own history, and estimates over all of its visits."""

from __future__ import annotations

from typing import Any

from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.learn.rates.comparison import ESTIMATORS
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.times import duration
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import LIMIT, Arguments, Operation, rows
from recrawl.serve.api.queries import SITE
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.jobs.job_specs import COMPARISON
from recrawl.serve.jobs.job_specs import comparison as comparing
from recrawl.serve.problems import Problem

_MOST = 8


def comparison(context: Context, _: Arguments) -> dict[str, Any]:
    """The comparison that runs, or that ran last."""
    last = context.jobs.last(COMPARISON)
    if last is None:
        return {"state": "none"}
    told = {name: getattr(last, name) for name in ("number", "state", "told", "error")}
    return {**told, "question": last.asked, "rows": last.result or []}


def compare(context: Context, given: Arguments) -> dict[str, Any]:
    """Begin one: what would other policies or budgets have found?"""
    policies, budgets = tuple(given["policies"]), tuple(given["budgets"])
    if not 0 < len(policies) <= _MOST or not 0 < len(budgets) <= _MOST:
        raise UsageError(f"name one to {_MOST} policies and budgets")
    for name in policies:
        if name != Clairvoyant.name:
            make_policy(name)  # complains when it is none
    if not all(0 < budget <= 1e9 for budget in budgets):
        raise UsageError("a budget is more than zero and at most 1e9")
    if duration(given["cycle"]) < 60:
        raise UsageError("a cycle lasts a minute at least")
    if context.jobs.begin(comparing(context.folder, policies, budgets, given["cycle"])) is None:
        raise Problem(409, "Another job is under way: wait for it, or cancel it.")
    return comparison(context, given)


def rates(context: Context, given: Arguments) -> dict[str, Any]:
    """How often pages change. Estimated by the command line, since it may take long and much memory."""
    with context.reading() as repository:
        where = page_of(repository, given["url"])["url"] if given["url"] else origin_of(repository, given["site"])
    words = ["rates", *([where] if where else []), "--by", given["by"], "--estimator", given["estimator"]]
    words = [*words, "--limit", str(given["limit"]), "--json"]
    return rows(subprocess_queries.command(context, *words))


OPERATIONS = (
    Operation(
        method="GET",
        path="/lab/comparison",
        name="comparison",
        verbs=("lab compare",),
        summary="The last comparison of policies on this history.",
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
            Field("policies", "strings", "Policies; clairvoyant is the most that can be found.", required=True),
            Field("budgets", "numbers", "Visits a cycle; under 1, a share of the pages.", required=True),
            Field("cycle", "string", "How long a cycle is: 6h, 1d.", default="1d"),
        ),
    ),
    Operation(
        method="GET",
        path="/rates",
        name="rates",
        verbs=("rates",),
        summary="How often pages change.",
        answer=rates,
        query=(
            SITE,
            Field("url", "string", "One page: what all estimators say.", default=""),
            Field("by", "string", "What a row is about.", default="page", choices=("page", "directory", "site")),
            Field("estimator", "string", "Where rates come from.", default="gamma", choices=tuple(ESTIMATORS)),
            LIMIT,
        ),
        returns="rows",
    ),
)
