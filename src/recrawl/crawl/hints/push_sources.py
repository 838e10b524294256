"""How reliable each source of pushes is: the share of its pages that had changed at the following visit.

Trust in a *kind* of hint is learned per site (`learn.hints`); but one sender can spoil it for others, and one that is
nearly always wrong would still get visits from the reserve for pushes. So each source has a score of its own: with less
than a quarter right it loses access to the reserve, and its pages compete like any others. Its pushes still count, and
it regains access when enough of them prove right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recrawl.columns import WEEK
from recrawl.model import Outcome
from recrawl.record.store import Store

_MIN_VISITS = 20.0
"""Visits after which a source is judged."""
_LOSE_BELOW = 0.25
_REGAIN_FROM = 0.4
_MEMORY = 100.0
"""Visits that count; older ones are discounted."""
_MAX_WAIT = WEEK
"""Seconds: a later visit is no evidence about a push, since the page may have changed anyway."""
_MAX_AWAITED = 200_000
"""Pushes that can await a visit at a time."""
_MAX_SOURCES = 1000


def note(store: Store, pushes: Iterable[tuple[int, str, str, float]]) -> None:
    """Store pushes (page, source, kind, time) until the next visit of the page confirms or refutes them."""
    awaited = store.pushes.count_awaited()
    for page, source, kind, at in pushes:
        store.pushes.count_claim(source, kind, at)
        if awaited < _MAX_AWAITED:  # of several pushes before a visit the first counts
            awaited += store.pushes.await_visit(page, source, at)
    store.pushes.keep_sources(_MAX_SOURCES)


def judge_sources(store: Store, now: float) -> list[str]:
    """Judge the sources by the visits that followed; returns messages about sources that gained or lost trust."""
    counts: dict[str, list[int]] = {}
    judged = [row for row in store.pushes.awaited(_MAX_WAIT) if row[2] is not None]
    for _, source, outcome in judged:
        counts.setdefault(source, [0, 0])[outcome == Outcome.UNCHANGED] += 1
    store.pushes.remove_awaited(row[:2] for row in judged)
    store.pushes.remove_awaited_before(now - _MAX_WAIT)
    changes = [_update_score(store, source, right, wrong) for source, (right, wrong) in counts.items()]
    return [text for text in changes if text]


def pushers(store: Store) -> list[dict[str, Any]]:
    """All sources with their precision; untrusted ones first."""
    return [
        {
            **row,
            "trusted": bool(row["trusted"]),
            "precision": round(row["right"] / (row["right"] + row["wrong"]), 4)
            if row["right"] + row["wrong"]
            else None,
        }
        for row in store.pushes.sources()
    ]


def troubles(store: Store) -> list[str]:
    """Messages about untrusted sources."""
    return [
        f"{row['source']}: {row['precision'] or 0:.0%} of the pushed pages had changed; its pushes are not preferred "
        "any more."
        for row in pushers(store)
        if not row["trusted"]
    ]


def _update_score(store: Store, source: str, more_right: int, more_wrong: int) -> str:
    """Update the score of a source; returns a message if it gained or lost trust."""
    score = store.pushes.score(source)
    if score is None:
        return ""
    right, wrong, trusted = score[0] + more_right, score[1] + more_wrong, score[2]
    faded = min(1.0, _MEMORY / (right + wrong))
    right, wrong = right * faded, wrong * faded
    share = right / (right + wrong)
    after = share >= _REGAIN_FROM if not trusted else right + wrong < _MIN_VISITS or share >= _LOSE_BELOW
    store.pushes.set_score(source, right, wrong, trusted=after)
    if after == trusted:
        return ""
    return (
        f"pushes of {source}: {share:.0%} were right; they are {'preferred again' if after else 'no longer preferred'}"
    )
