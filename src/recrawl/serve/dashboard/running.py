"""What runs now: the panel of the start page and the mark in the menu, which the page's script fetches again."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recrawl.repository.running import Running
from recrawl.serve.dashboard.views import Views

_OUTCOMES = ("changed", "new", "gone", "unchanged", "missing", "skipped", "failed")


def running(views: Views, request: Request) -> Response:
    """Return the panel, or with `brief` the mark of the menu; empty if nothing runs."""
    brief = bool(request.query_params.get("brief"))
    return HTMLResponse(views.text("running.html", run=shown_run(views.running(), views.now()), brief=brief))


def shown_run(run: Running | None, now: float) -> dict[str, Any] | None:
    """Return what the template shows of a run."""
    if run is None:
        return None
    outcomes = [(name, run.outcomes.get(name, 0)) for name in _OUTCOMES if run.outcomes.get(name)]
    own = {"elapsed": max(0.0, now - run.began), "visits": run.visits, "outcomes": outcomes}
    return {**run.as_dict(), **own}
