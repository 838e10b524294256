"""The dashboard: pages for people, made on the server, with a little script and none that is needed.

    views.py       what every page uses
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

from recrawl.serve.dashboard import alerts, filters, lab, lists, overview, pages, settings, sites
from recrawl.serve.dashboard.views import STATIC, Action, View, Views, theme

_VIEWS: tuple[tuple[str, View], ...] = (
    ("/", overview.overview),
    ("/sites", sites.sites),
    ("/sites/{site:int}", sites.site),
    ("/pages/{page:int}", pages.page),
    ("/pages/{page:int}/text", pages.text),
    ("/pages/{page:int}/source", pages.source),
    ("/pages/{page:int}/diff", pages.difference),
    ("/pages/{page:int}/outlook", pages.outlook),
    ("/changes", lists.changes),
    ("/changes.atom", lists.feed),
    ("/search", lists.search_page),
    ("/why", lists.why),
    ("/lab", lab.lab),
    ("/lab/state", lab.state),
    ("/settings", settings.seeds),
    ("/settings/policy", settings.policy),
    ("/settings/limits", settings.limits),
    ("/settings/noise", filters.noise),
    ("/settings/alerts", alerts.alerts),
    ("/theme", theme),
)
_ACTIONS: tuple[tuple[str, Action], ...] = (
    ("/scheduler", overview.control),
    ("/lab", lab.begin),
    ("/settings", settings.follow),
    ("/settings/seeds/remove", settings.unfollow),
    ("/settings/policy", settings.set_policy),
    ("/settings/limits", settings.set_limits),
    ("/settings/noise", filters.add),
    ("/settings/noise/remove", filters.remove),
    ("/settings/alerts", alerts.put),
    ("/settings/alerts/remove", alerts.remove),
)


def routes(views: Views) -> list[BaseRoute]:
    """All pages of the dashboard, for one repository."""
    return [
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(path, views.view(how), methods=["GET"]) for path, how in _VIEWS),
        *(Route(path, views.action(how), methods=["POST"]) for path, how in _ACTIONS),
    ]
