"""The dashboard: pages for people, made on the server, with a little script and none that is needed.

    desk.py       what every page uses
    render.py     templates and the words they know
    charts.py     numbers as places on a canvas
    forms.py      what people wrote, field by field
    overview.py, sites.py, pages.py, streams.py, lab.py,
    values.py, filters.py, alerting.py    the pages

What is shown of the web is text: templates escape everything, nothing stored is ever sent as markup, and the
Content-Security-Policy forbids any script but our own files.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from recrawl.serve.dashboard import alerting, filters, lab, overview, pages, sites, streams, values
from recrawl.serve.dashboard.desk import STATIC, Action, Desk, View, theme

_VIEWS: tuple[tuple[str, View], ...] = (
    ("/", overview.overview),
    ("/sites", sites.sites),
    ("/sites/{site:int}", sites.site),
    ("/pages/{page:int}", pages.page),
    ("/pages/{page:int}/text", pages.text),
    ("/pages/{page:int}/source", pages.source),
    ("/pages/{page:int}/diff", pages.difference),
    ("/pages/{page:int}/outlook", pages.outlook),
    ("/changes", streams.changes),
    ("/changes.atom", streams.feed),
    ("/search", streams.searching),
    ("/why", streams.why),
    ("/lab", lab.lab),
    ("/lab/state", lab.state),
    ("/settings", values.seeds),
    ("/settings/policy", values.policy),
    ("/settings/limits", values.limits),
    ("/settings/noise", filters.noise),
    ("/settings/alerts", alerting.alerts),
    ("/theme", theme),
)
_ACTIONS: tuple[tuple[str, Action], ...] = (
    ("/scheduler", overview.control),
    ("/lab", lab.begin),
    ("/settings", values.follow),
    ("/settings/seeds/remove", values.unfollow),
    ("/settings/policy", values.set_policy),
    ("/settings/limits", values.set_limits),
    ("/settings/noise", filters.add),
    ("/settings/noise/remove", filters.remove),
    ("/settings/alerts", alerting.put),
    ("/settings/alerts/remove", alerting.remove),
)


def routes(desk: Desk) -> list[BaseRoute]:
    """All pages of the dashboard, for one repository."""
    return [
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(path, desk.view(how), methods=["GET"]) for path, how in _VIEWS),
        *(Route(path, desk.action(how), methods=["POST"]) for path, how in _ACTIONS),
    ]
