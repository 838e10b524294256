"""The dashboard: pages for people, made on the server, with a little script and none that is needed.

    desk.py       what every page uses
    render.py     templates and the words they know
    charts.py     numbers as places on a canvas
    forms.py      what people wrote, field by field
    pages.py, streams.py    the pages

What is shown of the web is text: templates escape everything, nothing stored is ever sent as markup, and the
Content-Security-Policy forbids any script but our own files.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from recrawl.serve.context import Context
from recrawl.serve.dashboard import pages, streams
from recrawl.serve.dashboard.desk import STATIC, Action, Desk, View, theme

_VIEWS: tuple[tuple[str, View], ...] = (
    ("/pages/{page:int}", pages.page),
    ("/pages/{page:int}/text", pages.text),
    ("/pages/{page:int}/source", pages.source),
    ("/pages/{page:int}/diff", pages.difference),
    ("/pages/{page:int}/outlook", pages.outlook),
    ("/changes", streams.changes),
    ("/search", streams.searching),
    ("/why", streams.why),
    ("/theme", theme),
)
_ACTIONS: tuple[tuple[str, Action], ...] = ()


def routes(context: Context) -> list[BaseRoute]:
    """All pages of the dashboard, for one repository."""
    desk = Desk(context)
    return [
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(path, desk.view(how), methods=["GET"]) for path, how in _VIEWS),
        *(Route(path, desk.action(how), methods=["POST"]) for path, how in _ACTIONS),
    ]
