"""Bounded parts of lists: their rows as answers, and the cursor at which the next part begins.

A cursor is a text that only the list itself reads. In Python the same lists are `Rows`, which are not bounded.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

from recrawl.errors import UsageError
from recrawl.parameters import After, ChangeQuery, HitLimit, PageLimit, PageQuery, SearchQuery
from recrawl.record.rows import NO_NUMBER
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.delivery import parked as deliveries
from recrawl.repository.reader import Reader
from recrawl.repository.reports import changes as stream
from recrawl.repository.reports import overview
from recrawl.repository.reports import pages as one_page
from recrawl.repository.reports import sites as reading
from recrawl.repository.results.answers import (
    ChangeAnswer,
    CycleAnswer,
    ListAnswer,
    OutboxAnswer,
    PageAnswer,
    ParkedAnswer,
    SearchAnswer,
    SearchListAnswer,
    SiteSummaryAnswer,
    VersionAnswer,
    VisitAnswer,
    bad_cursor,
    listing,
    number_after,
)
from recrawl.times import moment

_FURTHEST_HIT = 10_000


def sites(repo: Reader, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[SiteSummaryAnswer]:
    """Sites with their totals, by number."""
    found = reading.summaries(repo, number_after(after), limit)
    return listing(SiteSummaryAnswer, found, found[-1]["id"] if len(found) == limit else None)


def pages(
    repo: Reader, *, limit: PageLimit = 50, after: After = "", **only: Unpack[PageQuery]
) -> ListAnswer[PageAnswer]:
    """Pages: those of a site by state, otherwise in order of discovery."""
    number, state = reading.number_named(repo, only.get("site", "")), only.get("state", "")
    if number is None:
        return listing(PageAnswer, *reading.all_pages(repo, number_after(after), state, limit))
    first, _, second = after.partition("_")
    begin = (number_after(first), number_after(second)) if after else (-1, -1)
    found, following = reading.site_pages(repo, number, begin, state, limit)
    return listing(PageAnswer, found, f"{following[0]}_{following[1]}" if following else None)


def changes(
    repo: Reader, *, limit: PageLimit = 50, after: After = "", **only: Unpack[ChangeQuery]
) -> ListAnswer[ChangeAnswer]:
    """New, changed and removed pages, newest first."""
    now, place = repo.now(), stream.ChangeCursor.read(after)
    if place is not None and not math.isfinite(place.at):
        raise bad_cursor(after)
    times = {name: moment(str(only[name]), now) for name in ("since", "until") if only.get(name)}
    conditions: dict[str, Any] = {name: value for name, value in only.items() if value is not None}
    filters = stream.Filters(**conditions | {"site": reading.number_named(repo, only.get("site", ""))} | times)
    found = stream.changes(repo, filters, limit=limit, after=place)
    return listing(ChangeAnswer, found.rows, found.older)


def hits(
    repo: Reader, *, query: str, limit: HitLimit = 10, after: After = "", **only: Unpack[SearchQuery]
) -> SearchListAnswer:
    """The best pages for a query, with snippets."""
    offset = max(0, number_after(after))
    if offset > _FURTHEST_HIT:
        raise UsageError("search results beyond the first 10,000 are not available; narrow the query")
    found = repo.search(query, limit=limit, offset=offset, **only)
    part = listing(SearchAnswer, (hit.as_dict() for hit in found), offset + len(found) if len(found) == limit else None)
    return SearchListAnswer(items=part.items, next=part.next, unanswered=list(found.unanswered))


def cycles(repo: Reader, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[CycleAnswer]:
    """Crawls and cycles with their results, newest first."""
    found = overview.runs(repo, number_after(after, default=2**53), limit)
    return listing(CycleAnswer, found, found[-1]["id"] if len(found) == limit else None)


def outbox(repo: Reader, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[OutboxAnswer]:
    """Updates found by alert rules, newest first."""
    found = Outbox(repo).newest(limit, number_after(after, default=NO_NUMBER))
    return listing(OutboxAnswer, found, found[-1]["id"] if len(found) == limit else None)


def versions(repo: Reader, url: str, limit: int, after: str) -> ListAnswer[VersionAnswer]:
    """Versions of a page, newest first."""
    found = one_page.versions(repo, one_page.find(repo, url)["id"], limit, number_after(after, default=NO_NUMBER))
    return listing(VersionAnswer, found, found[-1].id if len(found) == limit else None)


def visits(repo: Reader, url: str, limit: int, after: str) -> ListAnswer[VisitAnswer]:
    """Visits to a page, newest first."""
    found = one_page.visits(repo, one_page.find(repo, url)["id"], limit, number_after(after, default=NO_NUMBER))
    return listing(VisitAnswer, found, found[-1]["id"] if len(found) == limit else None)


def parked(repo: Reader, *, name: str = "", limit: PageLimit = 50, after: After = "") -> ListAnswer[ParkedAnswer]:
    """Changes that were not delivered, oldest first."""
    found = deliveries.parked(repo, name, limit=limit, after=number_after(after))
    return listing(ParkedAnswer, [row.as_dict() for row in found], found[-1].number if len(found) == limit else None)
