"""The list of sites, and one site: heat map, directories, shocks, robots.txt and rate limits."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.columns import HOUR
from recrawl.errors import NotKnown, UsageError
from recrawl.repository.push import sources
from recrawl.repository.reports import sites as reading
from recrawl.repository.reports.pages import MAX_ID
from recrawl.repository.reports.shocks import memory_of, shocks
from recrawl.repository.repository import Repository
from recrawl.repository.results.words import count
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.charts import heat, time_range
from recrawl.serve.dashboard.marks import notice, shown_marks
from recrawl.serve.dashboard.render import percent
from recrawl.serve.dashboard.views import Views
from recrawl.times import span, stamp

_SHOWN = 200
_MAX_ANCHOR_PAGES = 50_000
"""Pages of the repository above which the anchor is not computed during a request."""
_ANCHOR_PERIOD = 6 * HOUR
_MAX_DEPTH = 8
_MAX_LABEL = 42
_HEADS = (
    ("origin", "Site", False),
    ("pages", "Pages", True),
    ("missing", "Missing", True),
    ("rate", "Change rate", True),
    ("fresh", "Fresh at last cycle", True),
    ("share", "Budget share", True),
    ("trust", "Right hints", True),
    ("last_visit", "Last visit", False),
    ("health", "Health", False),
)

Values = dict[str, Any]
"""Variables for a template."""
KIND_NAMES = {
    "lastmod": "sitemap dates",
    "changefreq": "changefreq",
    "feed": "feeds",
    "updates": "updates tag",
    "indexnow": "IndexNow",
    "websub": "WebSub",
}
"""Display names of the kinds of hints."""


def sites(views: Views, request: Request) -> Response:
    """Show all sites, sorted by a column."""
    order = request.query_params.get("sort", "origin")
    sort, down = order.lstrip("-"), order.startswith("-")
    if sort not in {name for name, _, _ in _HEADS}:
        sort, down = "origin", False
    with views.reading() as repository:
        rows, hints, push_sources = reading.sites(repository), reading.hints(repository), sources(repository)
    for row in rows:
        row["hints"] = [_short(hint) for hint in hints.get(row["origin"], ()) if hint["precision"] is not None]
    rows.sort(key=lambda row: _sort_key(row, sort), reverse=down)
    shown = rows if request.query_params.get("all") else rows[:_SHOWN]
    return views.show(
        request,
        "sites.html",
        sites=shown,
        total=len(rows),
        more=len(shown) < len(rows),
        heads=_HEADS,
        sort=sort,
        down=down,
        push_sources=push_sources,
    )


def site(views: Views, request: Request) -> Response:
    """Show one site."""
    now, number = views.now(), min(request.path_params["site"], MAX_ID)
    shown = time_range(request, now)
    with views.reading() as repository:
        row = next((row for row in reading.sites(repository, only=number)), None)
        if row is None:
            raise NotKnown(f"there is no site {number}")
        pages = reading.page_counts(repository, number, reading.MAX_PAGES)
        tree = reading.tree(pages, row["origin"])
        heat_chart = _heat(reading.heat_map(repository, pages, shown.since, shown.until), row["origin"])
        depth = _depth(repository, row["origin"])
        rules = reading.rules(repository, number)
        hints = reading.hints(repository).get(row["origin"], [])
        memory = memory_of(repository)
    return views.show(
        request,
        "site.html",
        site=row,
        marks=shown_marks(views, row["origin"], number, None),
        notice=notice(request),
        shown=shown,
        tree=tree,
        tree_part=len(pages) == reading.MAX_PAGES,
        heat=heat_chart,
        depth=depth,
        shocks=shocks(memory, number) if memory else [],
        no_shocks=("None yet." if memory else "They are recorded by the policy shock, which has not been used yet."),
        facts=[*_facts(rules, now), *(_hint(row, now) for row in hints)],
        robots=rules.robots,
    )


def _sort_key(row: Values, sort: str) -> tuple[bool, Any]:
    value = row["health"][1] if sort == "health" else row[sort]
    return (value is not None, value if value is not None else 0)


def _heat(found: reading.HeatMap, origin: str) -> Values:
    if not found.rows:
        return {"chart": None}
    rows = []
    for row in found.rows:
        label = row.url.removeprefix(origin) or "/"
        label = label if len(label) <= _MAX_LABEL else f"…{label[1 - _MAX_LABEL :]}"
        cells = [
            (_cell(visits, updates), f"{stamp(begin)[:16]}: {count(visits, 'visit')}, {count(updates, 'change')}")
            for visits, updates, begin in zip(row.visits, row.updates, found.edges, strict=False)
        ]
        rows.append((label, f"/pages/{row.page}", cells))
    chart = heat(rows, found.edges)
    total = sum(sum(row.updates) for row in found.rows)
    summary = f"{count(total, 'change')} of the {count(len(found.rows), 'page')} that changed most."
    table = [(row.url.removeprefix(origin) or "/", sum(row.visits), sum(row.updates)) for row in found.rows]
    return {"chart": chart, "summary": summary, "rows": table}


def _cell(visits: int, updates: int) -> str:
    if not visits:
        return ""
    return "h0" if not updates else f"h{min(5, 2 + updates)}"


def _depth(repository: Repository, origin: str) -> Values:
    """Return the chart of change by link distance from the anchor."""
    no_chart: Values = {"chart": None, "anchor": None}
    if repository.page_count > _MAX_ANCHOR_PAGES:
        return {**no_chart, "text": f"Not computed for a large repository: use 'recrawl anchor {origin}'."}
    try:
        survey = repository.anchors(origin, every=_ANCHOR_PERIOD)[0].as_dict()
    except UsageError as error:
        return {**no_chart, "text": f"Not known: {error}."}
    rows = [row for row in survey["depths"] if row["depth"] is not None and row["depth"] <= _MAX_DEPTH]
    visited = [row for row in rows if row["visits"]]
    url = survey["anchor"]["url"]
    anchor = reading.page_number(repository, url)
    if not visited:
        return {**no_chart, "text": "No page has been visited twice yet. Anchor:", "anchor": anchor, "url": url}
    texts = [
        f"{count(row['depth'], 'link')}: {percent(row['changed'])} of {count(row['visits'], 'visit')}"
        for row in visited
    ]
    columns = [[("changed", row["changed"] or 0.0)] for row in visited]
    axes = charts.Axes("Links from the anchor", "Visits that found a change (%)")
    chart = charts.bars(columns, texts=texts, labels=[str(row["depth"]) for row in visited], axes=axes, percent=True)
    return {
        "chart": chart,
        "summary": f"{texts[0]}; {texts[-1]}.",
        "rows": [(row["depth"], f"{row['pages']:,}", percent(row["changed"])) for row in rows],
        "text": "Share of visits that found a change, by link distance from the anchor:",
        "anchor": anchor,
        "url": url,
    }


def _facts(rules: reading.SitePoliteness, now: float) -> list[tuple[str, str]]:
    """Return the site's robots.txt rules, rate limits and validator precision."""
    facts = []
    if rules.robots_status < 0:
        facts.append(("robots.txt", "not fetched yet"))
    else:
        answer = "no response" if rules.robots_status == 0 else f"HTTP {rules.robots_status}"
        facts.append(("robots.txt", f"{answer}, fetched {span(max(0.0, now - rules.robots_at))} ago"))
        if rules.held_since is not None:
            facts.append(("On hold", f"since {stamp(rules.held_since)}: robots.txt is unavailable"))
        facts.append(("Crawl-delay", span(rules.crawl_delay) if rules.crawl_delay else "none"))
        facts.append(("Sitemaps in robots.txt", str(rules.sitemaps) if rules.sitemaps else "none"))
    facts.append(("Sitemap read", stamp(rules.sitemap_at) if rules.sitemap_at else "never"))
    facts.append(("Delay between requests", f"{rules.delay:g} s, {rules.per_server} in parallel"))
    if rules.held_until > now:
        facts.append(("Back-off", f"until {stamp(rules.held_until)}, requested by the server"))
    facts.append(("Last-Modified", _trust(*rules.last_modified)))
    facts.append(("ETag", _trust(*rules.etag)))
    return facts


def _trust(good: int, bad: int) -> str:
    if not good + bad:
        return "no visits yet"
    return f"correct {good:,} times, wrong {bad:,} times"


def _hint(row: Values, now: float) -> tuple[str, str]:
    """Return the label and a summary of a source of hints."""
    parts = [count(row["signals"], "signal")]
    if row["read"]:
        parts.append(f"last read {span(max(0.0, now - row['read']))} ago")
    if row["ignored"]:
        parts.append(f"{row['ignored']:,} ignored")
    learned = "; precision not known yet"
    if row["precision"] is not None:
        learned = f"; precision {percent(row['precision'])}, recall {percent(row['recall'])}"
    problem = f"; {row['problem']}" if row["problem"] else ""
    return f"Hints: {KIND_NAMES.get(row['kind'], row['kind'])}", f"{', '.join(parts)}{learned}{problem}"


def _short(hint: Values) -> str:
    """Return precision and recall of a source of hints.

    >>> _short({"kind": "lastmod", "precision": 0.5, "recall": 1.0})
    'sitemap dates: precision 50\\xa0%, recall 100\\xa0%'
    """
    name = KIND_NAMES.get(hint["kind"], hint["kind"])
    return f"{name}: precision {percent(hint['precision'])}, recall {percent(hint['recall'])}"


def usage(views: Views, request: Request) -> Response:
    """Show what takes space on the disk."""
    with views.reading() as repository:
        used = repository.usage()
    return views.show(request, "usage.html", used=used, shown=_SHOWN)
