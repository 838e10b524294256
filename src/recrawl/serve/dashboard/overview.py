"""The start page: what changed since the last visit, what needs attention, then freshness, results and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import UsageError
from recrawl.repository.reports import overview as reading
from recrawl.repository.reports.activity import latest_visits
from recrawl.repository.reports.changes import Filters, changes
from recrawl.repository.reports.overview import CycleFigures, Overview
from recrawl.repository.reports.seeds import seed_states
from recrawl.repository.reports.sites import busiest
from recrawl.repository.reports.usage import full_disk
from recrawl.repository.results.words import count, held_text
from recrawl.repository.running import Running
from recrawl.repository.status import held_in_last_cycle
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.charts import time_range
from recrawl.serve.dashboard.running import shown_run
from recrawl.serve.dashboard.start import needing, shown_start
from recrawl.serve.dashboard.views import SEEN, Views
from recrawl.serve.scheduler import SchedulerStatus
from recrawl.times import span

_CYCLES = 5000
"""Cycles read for the charts."""
_COLUMNS = 90
"""Columns of a chart; more cycles are added up."""
_SITES = 8
_LATEST = 8
_MOST_NEWS = 200
"""Changes counted since the last visit to this page."""
_VISITS = 12
_AWAY = 1800.0
"""Seconds without a look at this page after which a new visit begins."""
_LOOK = 60.0
"""Seconds after which an open page is noted again."""
_KEEP = 400 * 86_400
_MOST_SEEDS = 500
"""Seeds whose state is read for this page."""

Values = dict[str, Any]
"""Variables for a template."""


def overview(views: Views, request: Request) -> Response:
    """Show the start page; it reads summary tables only, so its cost does not depend on the number of pages."""
    now, values = views.now(), views.settings()
    shown = time_range(request, now)
    with views.reading() as repository:
        problems = [*reading.problems(repository), *full_disk(repository)]
        if not (values.seeds or problems or reading.has_pages(repository) or views.running()):
            return views.show(request, "start.html", **shown_start(values))
        states = seed_states(repository, values.seeds[:_MOST_SEEDS])
        since, last_look = _last_visit(request, now)
        news = changes(repository, Filters(since=since), limit=_MOST_NEWS).rows if since is not None else []
        whole, has_pages = reading.overview(repository), reading.has_pages(repository)
        whole = whole if whole is not None and whole.stored else None  # figures of no page say nothing
        last = reading.cycles(repository, 1)
        cycles = reading.cycles(repository, _CYCLES, since=shown.since, until=shown.until, most=_COLUMNS)
        sites = busiest(repository, _SITES)
        held = [held_text(**row) for row in held_in_last_cycle(repository)]
        latest = changes(repository, Filters(), limit=_LATEST).rows
        missing = reading.missing_pages(repository)
        visits = latest_visits(repository, _VISITS)
    status, run = views.context.scheduler.status(), views.running()
    response = views.show(
        request,
        "overview.html",
        now=_now(whole, last) if whole is not None else None,
        has_pages=has_pages,
        panel=shown_run(run, now),
        lead=_lead(whole, status, run, now),
        shown=shown,
        fresh=charts.freshness(cycles),
        found=charts.updates(cycles),
        spent=charts.visits(cycles),
        ages=charts.ages(whole.ages if whole else []),
        sites=sites,
        held=held,
        visits=visits,
        events="/api/v1/events",
        problems=problems,
        needing=needing(states),
        waiting=[state.url for state in states if state.state == "waiting"],
        missing=missing,
        since=since,
        news=len(news),
        more_news=len(news) == _MOST_NEWS,
        latest=news[:_LATEST] if news else latest,
        paused=status.paused,
        controls=_controls(status, run),
    )
    if now - last_look > _LOOK:
        begins = f"{since or 0:.0f}" if now - last_look < _AWAY else f"{last_look:.0f}"
        response.set_cookie(SEEN, f"{begins}-{now:.0f}", max_age=_KEEP, samesite="lax", httponly=True)
    return response


def _last_visit(request: Request, now: float) -> tuple[float | None, float]:
    """When the visit before this one ended, None if there was none; and when this page was open last."""
    before, _, last = request.cookies.get(SEEN, "").partition("-")
    if not (before.isdigit() and last.isdigit() and len(before + last) < 30) or float(last) > now:
        return None, 0.0
    if now - float(last) >= _AWAY:
        return float(last), float(last)
    return float(before) or None, float(last)


def control(views: Views, request: Request, given: FormData) -> Response:
    """Pause or resume the scheduler, or start a cycle."""
    del request
    scheduler = views.context.scheduler
    match given.get("do"):
        case "pause":
            scheduler.pause()
        case "resume":
            scheduler.resume()
        case "run":
            scheduler.run_now()
        case _:
            raise UsageError(f"unknown action '{given.get('do')}'; use pause, resume or run")
    return RedirectResponse("/", 303)


def _now(whole: Overview, cycles: Sequence[CycleFigures]) -> Values:
    last = cycles[-1] if cycles else None
    answered = last.visits - last.failed if last else 0
    return {
        "fresh": whole.fresh,
        "low": whole.low,
        "high": whole.high,
        "pages": whole.pages,
        "stored": whole.stored,
        "sites": whole.sites,
        "found": last.found if last else 0,
        "visits": last.visits if last else 0,
        "expected": round(last.expected) if last else None,
        "age": whole.age,
        "received": last.received if last else 0,
        "unmodified": last.unmodified / answered if last and answered else None,
    }


def _lead(whole: Overview | None, status: SchedulerStatus, run: Running | None, now: float) -> str:
    if whole is None:
        return _state(status, run, now) or "No pages yet."
    return f"{count(whole.pages, 'page')} on {count(whole.sites, 'site')}. {_state(status, run, now)}"


def _state(status: SchedulerStatus, run: Running | None, now: float) -> str:
    """Describe the state of the scheduler."""
    if status.running or run is not None:
        return f"A {run.kind if run else 'cycle'} is running."
    if status.error:
        return f"The last cycle failed: {status.error}."
    if not status.enabled:
        return "Scheduled cycles are disabled."
    if status.paused:
        return "The scheduler is paused."
    return "" if status.cycle_due is None else f"The next cycle starts in {span(max(0.0, status.cycle_due - now))}."


def _controls(status: SchedulerStatus, run: Running | None) -> list[tuple[str, str]]:
    """Return the scheduler actions available now: (action, label)."""
    found = [] if status.running or run is not None else [("run", "Run a cycle now")]
    if status.enabled or status.running:
        found.append(("resume", "Resume") if status.paused else ("pause", "Pause"))
    return found
