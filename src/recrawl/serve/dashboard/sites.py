"""Sites: all of them in a table, and one with its directories, rhythm and shocks and how it wants to be treated."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.crawl.hints.push_sources import pushers
from recrawl.crawl.reports.hint_trust import trust
from recrawl.errors import NotKnown, UsageError
from recrawl.fetch.robots import Robots
from recrawl.record.rows import SiteRow
from recrawl.record.storage import Storage
from recrawl.repository.anchors import surveyed
from recrawl.repository.opening import options_of
from recrawl.repository.times import span, stamp
from recrawl.repository.words import count
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.render import percent
from recrawl.serve.dashboard.views import Views
from recrawl.serve.queries import directory_tree, heat_map
from recrawl.serve.queries import sites as reading
from recrawl.serve.queries.pages import LARGEST
from recrawl.serve.queries.shocks import memory_of, shocks
from recrawl.settings import Settings

_AT_ONCE = 200
_SURVEYED = 50_000
"""Pages in all up to which a site's anchor is looked for while somebody waits."""
_EVERY = 6 * 3600.0
_DEEPEST = 8
_LABEL = 34
_HEADS = (
    ("origin", "Site", False),
    ("pages", "Pages", True),
    ("rate", "A page changes", True),
    ("fresh", "Fresh", True),
    ("share", "Budget share", True),
    ("trust", "Hint trust", True),
    ("last_visit", "Last visit", False),
    ("health", "Health", False),
)

Told = dict[str, Any]
KIND_NAMES = {
    "lastmod": "sitemap dates",
    "changefreq": "changefreq",
    "feed": "feeds",
    "updates": "the updates tag",
    "indexnow": "IndexNow",
    "websub": "WebSub",
}
"""Kinds of hints, for people."""


def sites(views: Views, request: Request) -> Response:
    """All sites, sorted by a column."""
    wanted = request.query_params.get("sort", "origin")
    sort, down = wanted.lstrip("-"), wanted.startswith("-")
    if sort not in {name for name, _, _ in _HEADS}:
        sort, down = "origin", False
    with views.reading() as repository:
        rows = reading.sites(repository.store.db, views.now())
        believed = trust(repository)
        senders = pushers(repository.store.db)
    for row in rows:
        row["hints"] = [_short(hint) for hint in believed.get(row["origin"], ()) if hint["precision"] is not None]
    rows.sort(key=lambda row: _order(row, sort), reverse=down)
    everything = bool(request.query_params.get("all"))
    shown = rows if everything else rows[:_AT_ONCE]
    return views.show(
        request,
        "sites.html",
        sites=shown,
        total=len(rows),
        more=len(shown) < len(rows),
        heads=_HEADS,
        sort=sort,
        down=down,
        senders=senders,
    )


def site(views: Views, request: Request) -> Response:
    """One site."""
    now, number = views.now(), min(request.path_params["site"], LARGEST)
    values = views.settings()
    with views.reading() as repository:
        db = repository.store.db
        row = next((row for row in reading.sites(db, now, only=number)), None)
        if row is None:
            raise NotKnown("there is no such site here")
        pages = directory_tree.pages_of(db, number)
        tree = directory_tree.tree(pages, row["origin"])
        heat = _heat(heat_map.heat_map(db, pages), row["origin"])
        depth = _depth(repository, values, row["origin"], now)
        stored = reading.stored(db, number)
        hints = trust(repository).get(row["origin"], [])
    memory = memory_of(views.context.folder)
    return views.show(
        request,
        "site.html",
        site=row,
        tree=tree,
        tree_part=len(pages) == directory_tree.MOST_PAGES,
        heat=heat,
        depth=depth,
        shocks=shocks(memory, number) if memory else [],
        no_shocks=(
            "None so far." if memory else "The policy shock keeps track of them; it has not been used here yet."
        ),
        facts=[*_facts(stored, values, now), *(_hint(row, now) for row in hints)],
        robots=stored.robots_body[:20_000].decode("utf-8", "replace") if stored.robots_status == 200 else "",
    )


def _order(row: Told, sort: str) -> tuple[bool, Any]:
    value = row["health"][1] if sort == "health" else row[sort]
    return (value is not None, value if value is not None else 0)


def _heat(found: heat_map.HeatMap, origin: str) -> Told:
    if not found.rows:
        return {"chart": None}
    rows = []
    for row in found.rows:
        label = row.url.removeprefix(origin) or "/"
        label = label if len(label) <= _LABEL else f"…{label[1 - _LABEL :]}"
        cells = [
            (_cell(visits, updates), f"{stamp(begin)[:16]}: {count(visits, 'visit')}, {count(updates, 'change')}")
            for visits, updates, begin in zip(row.visits, row.updates, found.edges, strict=False)
        ]
        rows.append((label, f"/pages/{row.page}", cells))
    chart = charts.heat(rows, [stamp(found.edges[0])[:10], stamp(found.edges[-1])[:10]])
    total = sum(sum(row.updates) for row in found.rows)
    said = f"{count(total, 'change')} of the {count(len(found.rows), 'page')} that changed most."
    table = [(row.url.removeprefix(origin) or "/", sum(row.visits), sum(row.updates)) for row in found.rows]
    return {"chart": chart, "said": said, "rows": table}


def _cell(visits: int, updates: int) -> str:
    if not visits:
        return ""
    return "h0" if not updates else f"h{min(5, 2 + updates)}"


def _depth(repository: Storage, values: Settings, origin: str, now: float) -> Told:
    """How change falls off with the number of links from the anchor."""
    nothing: Told = {"chart": None, "anchor": None}
    if repository.store.next_id("pages") > _SURVEYED:
        return {**nothing, "text": f"This repository is large: ask with 'recrawl anchor {origin}'."}
    try:
        told = surveyed(repository, values, now, _EVERY, 0.0, origin)[0]
    except UsageError as error:
        return {**nothing, "text": f"Not known: {error}."}
    rows = [row for row in told["depths"] if row["depth"] is not None and row["depth"] <= _DEEPEST]
    seen = [row for row in rows if row["visits"]]
    anchor = reading.page_number(repository.store.db, told["anchor"]["url"])
    if not seen:
        return {
            **nothing,
            "text": "No page was visited twice yet. The anchor:",
            "anchor": anchor,
            "url": told["anchor"]["url"],
        }
    texts = [f"{row['depth']} links away: {percent(row['changed'])} of {count(row['visits'], 'visit')}" for row in seen]
    columns = [[("changed", row["changed"] or 0.0)] for row in seen]
    chart = charts.bars(columns, texts=texts, ticks=[str(row["depth"]) for row in seen], percent=True, labels=True)
    return {
        "chart": chart,
        "said": f"{texts[0]}; {texts[-1]}.",
        "rows": [(row["depth"], f"{row['pages']:,}", percent(row["changed"])) for row in rows],
        "text": "Share of visits that found a change, by the number of links from the anchor:",
        "anchor": anchor,
        "url": told["anchor"]["url"],
    }


def _facts(stored: SiteRow, values: Settings, now: float) -> list[tuple[str, str]]:
    """What the site asks for, and how it is treated."""
    options = options_of(values)
    own = options.sites.get(stored.origin)
    delay = options.delay if own is None or own.delay is None else own.delay
    facts = []
    if stored.robots_status < 0:
        facts.append(("robots.txt", "not asked yet"))
    else:
        robots = Robots.from_answer(
            stored.robots_status,
            stored.robots_body,
            stored.robots_at,
            agent=options.agent,
            max_age=options.robots_age,
            failure=stored.robots_status == 0,
            held_since=stored.robots_held,
        )
        answer = "no answer" if stored.robots_status == 0 else f"HTTP {stored.robots_status}"
        facts.append(("robots.txt", f"{answer}, read {span(max(0.0, now - stored.robots_at))} ago"))
        if robots.hold_off:
            facts.append(("Held off", f"since {stamp(robots.held_since)}: it could not say what is allowed"))
        delay = max(delay, min(robots.delay, options.max_delay))
        facts.append(("Crawl-delay", span(robots.delay) if robots.delay else "none asked for"))
        facts.append(("Sitemaps", str(len(robots.sitemaps)) if robots.sitemaps else "none named"))
    read = f"{stamp(stored.sitemap_at)}" if stored.sitemap_at else "never"
    facts.append(("Sitemap read", read))
    facts.append(("Pause between requests", f"{delay:g} s, {options.per_server} at a time"))
    if stored.held_until > now:
        facts.append(("Asked us to wait", f"until {stamp(stored.held_until)}"))
    facts.append(("Last-Modified", _trust(stored.lm_good, stored.lm_bad)))
    facts.append(("ETag", _trust(stored.etag_good, stored.etag_bad)))
    return facts


def _trust(good: int, bad: int) -> str:
    if not good + bad:
        return "not tried yet"
    return f"right {good:,} times, wrong {bad:,} times"


def _hint(row: Told, now: float) -> tuple[str, str]:
    """What a source of hints has said, and what visits made of it."""
    said = [count(row["signals"], "signal")]
    if row["read"]:
        said.append(f"last read {span(max(0.0, now - row['read']))} ago")
    if row["ignored"]:
        said.append(f"{row['ignored']:,} ignored")
    learned = "; not tried yet"
    if row["precision"] is not None:
        learned = f"; {percent(row['precision'])} of them right, {percent(row['recall'])} of all changes told"
    problem = f"; {row['problem']}" if row["problem"] else ""
    return f"Hints by {KIND_NAMES.get(row['kind'], row['kind'])}", f"{', '.join(said)}{learned}{problem}"


def _short(hint: Told) -> str:
    """
    >>> _short({"kind": "lastmod", "precision": 0.5, "recall": 1.0})
    'sitemap dates 50\\xa0% right, 100\\xa0% told'
    """
    name = KIND_NAMES.get(hint["kind"], hint["kind"])
    return f"{name} {percent(hint['precision'])} right, {percent(hint['recall'])} told"
