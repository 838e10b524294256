"""The dashboard: HTML pages rendered on the server; they work without JavaScript.

    views.py        what every page uses: repository, settings, templates, endpoints
    render.py       the Jinja environment and its filters
    page_cache.py   rendered pages, reused for up to a second
    charts.py       geometry of charts for the SVG templates
    forms.py        form fields and their errors
    start.py        the first question: which site or page to keep
    overview.py     the start page
    sites.py        the list of sites, and one site
    pages.py        one page: versions, text, source, screenshots, difference, outlook
    running.py      what runs now
    marks.py        recheck now, tags, intervals, read marks, saved filters
    lists.py        changes, pages, search
    lab.py          policy comparison
    cluster.py      machines, workers and shards of a cluster
    settings/       the pages of the settings, one module each
    api_docs.py     documentation of the HTTP API

Stored content is shown as text only: templates escape everything, no stored markup is sent, and the
Content-Security-Policy allows no script except the dashboard's own files. Pages as they looked are in frames without
any permission, which show /replay/ (see `serve.replay`).
"""

from __future__ import annotations

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from recrawl.serve.dashboard import api_docs, cluster, lab, lists, marks, overview, pages, running, sites, start
from recrawl.serve.dashboard.settings import alerts, deliveries, filters, policy, seeds, topics
from recrawl.serve.dashboard.views import STATIC, Action, View, Views, theme


class _IdConvertor(IntegerConvertor):
    """Ids in paths; Python converts no number of thousands of digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", _IdConvertor())
_VIEWS: tuple[tuple[str, View], ...] = (
    ("/", overview.overview),
    ("/running", running.running),
    ("/sites", sites.sites),
    ("/sites/{site:id}", sites.site),
    ("/usage", sites.usage),
    ("/pages/{page:id}", pages.page),
    ("/pages/{page:id}/look", pages.look),
    ("/pages/{page:id}/read", pages.read),
    ("/pages/{page:id}/text", pages.text),
    ("/pages/{page:id}/source", pages.source),
    ("/pages/{page:id}/diff", pages.difference),
    ("/pages/{page:id}/outlook", pages.outlook),
    ("/changes", lists.changes),
    ("/changes.atom", lists.feed),
    ("/search", lists.search_page),
    ("/why", lists.why),
    ("/start", start.start_page),
    ("/pages", lists.pages),
    ("/alerts", alerts.alerts),
    ("/lab", lab.lab),
    ("/lab/state", lab.state),
    ("/cluster", cluster.cluster),
    ("/settings", seeds.seeds),
    ("/settings/policy", policy.policy),
    ("/settings/noise", filters.noise),
    ("/settings/alerts", alerts.moved),
    ("/settings/deliveries", deliveries.deliveries),
    ("/settings/{topic}", topics.topic),
    ("/api/docs", api_docs.api_docs),
    ("/theme", theme),
)
_ACTIONS: tuple[tuple[str, Action], ...] = (
    ("/scheduler", overview.control),
    ("/start", start.start),
    ("/lab", lab.start),
    ("/cluster", cluster.change),
    ("/recheck", marks.recheck),
    ("/tags", marks.tag),
    ("/interval", marks.interval),
    ("/changes/read", marks.mark_read),
    ("/changes/filters", marks.save_filter),
    ("/settings", seeds.save_seed),
    ("/settings/seeds/remove", seeds.remove_seed),
    ("/settings/policy", policy.set_policy),
    ("/settings/noise", filters.add),
    ("/settings/noise/remove", filters.remove),
    ("/alerts", alerts.put),
    ("/alerts/remove", alerts.remove),
    ("/alerts/test", alerts.test),
    ("/settings/deliveries", deliveries.settle),
    ("/settings/{topic}", topics.set_topic),
)


def routes(views: Views) -> list[BaseRoute]:
    """Return the routes of the dashboard for one repository."""
    return [
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(path, views.view(how), methods=["GET"]) for path, how in _VIEWS),
        *(Route(path, views.action(how), methods=["POST"]) for path, how in _ACTIONS),
    ]
