"""How reliable each source of pushes is: the share of its pages that had changed at the following visit.

Trust in a *kind* of hint is learned per site (`learn.hints`); but one sender can spoil it for others, and one that is
nearly always wrong would still get visits from the reserve for pushes. So each source has a score of its own: with less
than a quarter right it loses access to the reserve, and its pages compete like any others. Its pushes still count, and
it regains access when enough of them prove right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recrawl.model import Outcome
from recrawl.record.store import Store

_ENOUGH = 20.0
"""Visits after which a source is judged."""
_LOST = 0.25
_REGAINED = 0.4
_REMEMBERED = 100.0
"""Visits that count: what was long ago fades as more come."""
_SOON = 7 * 86400.0
"""A visit later than this says nothing about a push: by then a page may have changed anyway."""
_MOST = 200_000
"""Pushes that may wait for their visit."""
_MOST_SOURCES = 1000


def note(store: Store, said: Iterable[tuple[int, str, str, float]]) -> None:
    """Keep who said of a page that it has changed (page, source, kind, when), until a visit tells."""
    waiting = store.pushes.count_awaited()
    for page, source, kind, at in said:
        store.pushes.count_claim(source, kind, at)
        if waiting < _MOST:  # of several pushes before a visit the first counts
            waiting += store.pushes.await_visit(page, source, at)
    store.pushes.keep_sources(_MOST_SOURCES)


def settle(store: Store, now: float) -> list[str]:
    """Judge the sources by the visits that followed; what people should hear of."""
    counts: dict[str, list[int]] = {}
    judged = [row for row in store.pushes.awaited(_SOON) if row[2] is not None]
    for _, source, outcome in judged:
        counts.setdefault(source, [0, 0])[outcome == Outcome.UNCHANGED] += 1
    store.pushes.remove_awaited(row[:2] for row in judged)
    store.pushes.remove_awaited_before(now - _SOON)
    told = [_weigh(store, source, right, wrong) for source, (right, wrong) in counts.items()]
    return [text for text in told if text]


def pushers(store: Store) -> list[dict[str, Any]]:
    """All sources with how they proved; doubted ones first."""
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
    """Which sources are doubted, in sentences for people."""
    return [
        f"Of the pages that {row['source']} said had changed, {row['precision'] or 0:.0%} had: its pushes are not "
        "preferred any more."
        for row in pushers(store)
        if not row["trusted"]
    ]


def _weigh(store: Store, source: str, more_right: int, more_wrong: int) -> str:
    """Add to what is known of a source; what to tell when it has gained or lost."""
    score = store.pushes.score(source)
    if score is None:
        return ""
    right, wrong, trusted = score[0] + more_right, score[1] + more_wrong, score[2]
    faded = min(1.0, _REMEMBERED / (right + wrong))
    right, wrong = right * faded, wrong * faded
    share = right / (right + wrong)
    after = share >= _REGAINED if not trusted else right + wrong < _ENOUGH or share >= _LOST
    store.pushes.set_score(source, right, wrong, trusted=after)
    if after == trusted:
        return ""
    return f"pushes of {source}: {share:.0%} were right, so they are {'' if after else 'no longer '}preferred"
