"""What happens now: the newest visits and cycles, for whoever follows a repository while others work on it."""

from __future__ import annotations

from typing import Any

from recrawl.model import NOT_FAILED, SKIPPED
from recrawl.repository.reader import Reader


def newest_visit(repo: Reader) -> int:
    """Return the number of the newest visit; -1 if there is none."""
    return repo.storage.store.next_id("visits") - 1


def visits_after(repo: Reader, visit: int, limit: int) -> list[dict[str, Any]]:
    """Return the visits with higher numbers, oldest first; `result` tells missing and skipped from failed ones."""
    rows = repo.storage.store.reports.visits_after(visit, limit)
    return [{**row, "result": _result(row["outcome"], row["failure"])} for row in rows]


def _result(outcome: str, failure: str | None) -> str:
    if failure in SKIPPED:
        return "skipped"
    return "missing" if failure in NOT_FAILED else outcome


def latest_visits(repo: Reader, limit: int) -> list[dict[str, Any]]:
    """Return the newest visits, newest first."""
    return visits_after(repo, repo.storage.store.visits.before(newest_visit(repo), limit), limit)[::-1]


def cycle_counts(repo: Reader, limit: int) -> list[dict[str, Any]]:
    """Return the newest crawls and cycles with counts of their outcomes, newest first."""
    return repo.storage.store.reports.cycles(limit)


def newest_cycles(repo: Reader, limit: int) -> list[dict[str, Any]]:
    """Return the newest crawls and cycles, newest first; `finished` is None for one under way."""
    return [row._asdict() for row in repo.storage.store.cycles.newest(limit=limit)]
