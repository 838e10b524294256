"""Lab: compares policies and budgets by replaying this repository's history."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from recrawl.choose import POLICIES, make_policy
from recrawl.errors import UsageError
from recrawl.repository.results.words import count
from recrawl.serve.dashboard.charts import bar_rows
from recrawl.serve.dashboard.forms import Form, value_text
from recrawl.serve.dashboard.render import percent
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.job_specs import COMPARISON, comparison
from recrawl.serve.jobs.queue import Job
from recrawl.times import duration

_UPPER_BOUND = "clairvoyant"
"""Not a usable policy, but the upper bound for all policies."""
_MAX_POLICIES = 8
_MAX_BUDGETS = 4
_STATE_PATH = "/lab/state"
_OF = re.compile(r"([\d,]+) of ([\d,]+)")


def lab(views: Views, request: Request) -> Response:
    """Show the form, and the result of the last comparison."""
    values = views.settings()
    last = views.jobs.last(COMPARISON)
    if last is not None:
        chosen = last.request["policies"]
        given = {"budget": ", ".join(map(value_text, last.request["budgets"])), "cycle": last.request["cycle"]}
    else:
        chosen = list(dict.fromkeys([make_policy(values["policy"]).name, "round-robin", _UPPER_BOUND]))
        chosen = [name for name in chosen if name in _names()]
        given = {"budget": f"{value_text(values['budget'])}, {value_text(values['budget'] * 2)}", "cycle": "1d"}
    return _show(views, request, Form(given, ("budget", "cycle")), chosen, last)


def start(views: Views, request: Request, given: FormData) -> Response:
    """Start a comparison."""
    form = Form(given, ("budget", "cycle"))
    chosen = [str(name) for name in given.getlist("policy")][: _MAX_POLICIES + 1]
    if not chosen:
        form.errors["policy"] = "select at least one policy"
    elif len(chosen) > _MAX_POLICIES:
        form.errors["policy"] = f"select at most {_MAX_POLICIES} policies"
    elif unknown := [name for name in chosen if name not in _names()]:
        form.errors["policy"] = f"unknown policy '{unknown[0]}'"
    budgets = form.read("budget", _budgets)
    if budgets is None and not form.errors["budget"]:
        form.errors["budget"] = "give the visits per cycle"
    length = form.read("cycle", duration)
    if not form.errors["cycle"] and not length:
        form.errors["cycle"] = "give the cycle length: 6h, 1d, 2w"
    if not form.errors and budgets:
        if views.jobs.start(comparison(views.context.folder, chosen, budgets, form["cycle"].strip())):
            return RedirectResponse("/lab", 303)
        form.errors["policy"] = "another job is running; wait until it ends"
    return _show(views, request, form, chosen, views.jobs.last(COMPARISON))


def state(views: Views, request: Request) -> Response:
    """Return the progress of the comparison as JSON, for the page's script."""
    del request
    last = views.jobs.last(COMPARISON)
    message = last.message if last else ""
    done, total = progress_in(message)
    return JSONResponse({"state": last.state if last else "none", "told": message, "done": done, "total": total})


def progress_in(message: str) -> tuple[int, int]:
    """Return the done and all replays that a progress message names; all are 0 if it names none.

    >>> progress_in("replaying 3 of 1,200: shock, 35 per cycle"), progress_in("Started ...")
    ((3, 1200), (0, 0))
    """
    found = _OF.search(message)
    return (int(found[1].replace(",", "")), int(found[2].replace(",", ""))) if found else (0, 0)


def _names() -> list[str]:
    return [*sorted(POLICIES), _UPPER_BOUND]


def _budgets(text: str) -> tuple[float, ...]:
    """Parse comma-separated budgets.

    >>> _budgets("0.1, 200")
    (0.1, 200.0)
    """
    try:
        values = tuple(float(part) for part in text.replace(";", ",").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"invalid budgets '{text}'; use numbers separated by commas: 0.1, 200") from None
    if (
        not values
        or len(values) > _MAX_BUDGETS
        or not all(0 < value <= 1e9 and math.isfinite(value) for value in values)
    ):
        raise UsageError(f"use 1 to {_MAX_BUDGETS} numbers greater than 0")
    return tuple(dict.fromkeys(values))


def _show(views: Views, request: Request, form: Form, chosen: Sequence[str], last: Job | None) -> Response:
    rows = list(last.result or ()) if last else []
    job = None
    if last is not None:
        done, total = progress_in(last.message)
        job = {"running": last.state == "running", "message": last.message, "error": last.error, "path": _STATE_PATH}
        job |= {"done": done, "total": total}
    return views.show(
        request,
        "lab.html",
        status=400 if form.errors else 200,
        policies=_names(),
        chosen=chosen,
        form=form.values,
        errors=form.errors,
        job=job,
        rows=rows,
        **_chart(rows),
    )


def _chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    if not rows:
        return {"chart": None, "summary": "", "best": []}
    texts = [f"{row['policy']}, {row['budget']:,} per cycle: {percent(row['recall'])} of all changes" for row in rows]
    kinds = ["new" if row["policy"] == _UPPER_BOUND else "changed" for row in rows]
    bars = [
        (f"{row['policy']}, {row['budget']:,} visits", percent(row["recall"]), kind, row["recall"] or 0.0)
        for row, kind in zip(rows, kinds, strict=True)
    ]
    chart = bar_rows(bars, "Changes found (% of all changes)")
    budgets = dict.fromkeys(row["budget"] for row in rows)
    best = [best_of([row for row in rows if row["budget"] == budget]) for budget in budgets]
    return {"chart": chart, "summary": "; ".join(texts) + ".", "best": [text for text in best if text]}


def best_of(rows: list[dict[str, Any]]) -> str:
    """Return which policy found most with a budget; policies that found equally many are named together.

    >>> row = {"budget": 35, "recall": 0.5, "found": 7}
    >>> best_of([{**row, "policy": "shock"}, {**row, "policy": "random"}, {**row, "policy": "greedy", "found": 6}])
    'With 35 visits per cycle, shock and random tie: 7 changes found, 50\xa0% of all.'
    """
    usable = [row for row in rows if row["policy"] != _UPPER_BOUND]
    if not usable:
        return ""
    most = max(row["found"] for row in usable)
    first = [row for row in usable if row["found"] == most]
    names = " and ".join(filter(None, (", ".join(row["policy"] for row in first[:-1]), first[-1]["policy"])))
    what = f"{names} tie" if len(first) > 1 else f"{names} found most"
    changes = f"{most:,.0f} changes found, {percent(first[0]['recall'])} of all"
    return f"With {count(rows[0]['budget'], 'visit')} per cycle, {what}: {changes}."
