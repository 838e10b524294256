"""New visits matched against the alert rules: what matches goes into the outbox."""

from __future__ import annotations

from typing import Any

from recrawl import plugins
from recrawl.errors import RecrawlError
from recrawl.model import Outcome, State
from recrawl.repository.alerts.outbox import Outbox, VisitMatches
from recrawl.repository.alerts.rules import AlertQuote, Update, applies, counts_for, matching_quote, payload
from recrawl.repository.delivery.engine import described
from recrawl.repository.reader import Reader
from recrawl.repository.reports.marks import tags_of
from recrawl.settings import Alert

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_BATCH = 1000


def skip_old_visits(repo: Reader) -> None:
    """Match only visits from now on, unless visits were matched before."""
    Outbox(repo).matched_up_to(repo.storage.store.next_id("visits") - 1)


def match_from_now(repo: Reader) -> None:
    """Match only visits from now on: there was no rule before."""
    Outbox(repo).skip_to(repo.storage.store.next_id("visits") - 1)


def match_visits(repo: Reader, rules: tuple[Alert, ...], now: float) -> tuple[list[dict[str, Any]], bool]:
    """Match a batch of visits; return the updates that were added to the outbox, and whether there may be more."""
    repo.refresh()
    outbox = Outbox(repo)
    rows = repo.storage.store.visits.after(outbox.matched_up_to(-1), _BATCH)
    if not rows:
        return [], False
    visits = [_matches(repo, row, rules) for row in rows if row["outcome"] != Outcome.FAILED and not row["copy"]]
    added = outbox.put(visits, rows[-1]["id"], now)
    return [body for visit in visits for _, _, body in visit.found] if added else [], len(rows) == _BATCH


def _matches(repo: Reader, row: dict[str, Any], rules: tuple[Alert, ...]) -> VisitMatches:
    outcome = _OUTCOMES[row["outcome"]]
    if outcome == "unchanged":  # a new version may still count for a rule with a level of its own
        rules = tuple(rule for rule in rules if rule.change)
    if not rules:
        return VisitMatches(row["page"], None, [])
    if outcome == "gone" and repo.storage.store.pages.get(row["page"]).state.state == State.DROPPED:
        return VisitMatches(row["page"], None, [])  # the user who removes a page need not be told
    update = update_of(repo, row, outcome, tags=any(rule.tag for rule in rules))
    if outcome == "unchanged" and update.version is None:
        return VisitMatches(row["page"], None, [])
    digest = update.version.digest if update.version is not None else None
    applying = [rule for rule in rules if applies(rule, update)]
    try:
        quotes = {rule: matching_quote(rule, update, repo) for rule in applying if counts_for(rule, update, repo)}
    except (*plugins.ERRORS, MemoryError, RecrawlError) as error:  # of one page: the others are matched
        found = [(rule, update, payload(rule, update, AlertQuote())) for rule in applying]
        return VisitMatches(row["page"], digest, found, f"cannot be matched: {described(error)}")
    found = [(rule, update, payload(rule, update, quote)) for rule, quote in quotes.items() if quote is not None]
    return VisitMatches(row["page"], digest, found)


def update_of(repo: Reader, row: dict[str, Any], outcome: str, *, tags: bool = True) -> Update:
    """The update that a visit found, with the tags of its page if they are asked for."""
    versions = repo.storage.store.versions
    version = versions.get(row["version"]) if outcome != "gone" and row["version"] >= 0 else None
    if outcome == "unchanged" and version is not None and version.at != row["at"]:
        version = None  # an earlier visit made it
    changed = version is not None and outcome in ("changed", "unchanged")
    return Update(
        visit=row["id"],
        page=row["page"],
        url=row["url"],
        at=row["at"],
        outcome=outcome,
        title=version.title if version else "",
        divergence=version.divergence if version else None,
        significant=bool(version and version.significant),
        significance=version.significance if version else None,
        version=version,
        before=versions.before(row["page"], version.id) if version and changed else None,
        tags=_tags(repo, row["page"]) if tags else frozenset(),
    )


def _tags(repo: Reader, page: int) -> frozenset[str]:
    """The tags of a page and of its site."""
    site = repo.storage.store.pages.get(page).site
    return frozenset(name for name, _ in tags_of(repo, site, page))
