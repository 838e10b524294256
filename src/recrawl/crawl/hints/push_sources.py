"""How far each source of pushes is believed: how often a page that it named was changed at the visit that followed.

Trust in a *kind* of hint is learned for each site (`learn.hints`); but one sender can spoil it for others, and one that
is nearly always wrong would still get its pages the visits that are kept for pushes. So each source is judged by
itself: one of which less than a quarter was right loses that privilege, and its pages are ordinary ones. It is listened
to all the same, and gets it back when more of what it says proves right.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from recrawl.model import Outcome
from recrawl.record.questions import ask

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


def note(db: sqlite3.Connection, said: Iterable[tuple[int, str, str, float]]) -> None:
    """Keep who said of a page that it has changed (page, source, kind, when), until a visit tells."""
    (waiting,) = db.execute("SELECT count(*) FROM pushed").fetchone()
    for page, source, kind, at in said:
        db.execute(
            """INSERT INTO push_sources (source, kind, heard, right, wrong, last, trusted) VALUES (?, ?, 1, 0, 0, ?, 1)
               ON CONFLICT (source) DO UPDATE SET heard = heard + 1, last = max(last, excluded.last)""",
            (source, kind, at),
        )
        if waiting < _MOST:  # of several pushes before a visit the first counts
            made = db.execute("INSERT OR IGNORE INTO pushed (page, source, at) VALUES (?, ?, ?)", (page, source, at))
            waiting += made.rowcount
    db.execute(
        """DELETE FROM push_sources WHERE source NOT IN
           (SELECT source FROM push_sources ORDER BY trusted, last DESC LIMIT ?)""",
        (_MOST_SOURCES,),
    )


def settle(db: sqlite3.Connection, now: float) -> list[str]:
    """Judge the sources by the visits that followed; what people should hear of."""
    rows = db.execute(
        """SELECT q.page, q.source, (SELECT v.outcome FROM visits v WHERE v.page = q.page AND v.at >= q.at
                AND v.at <= q.at + ? AND v.outcome != ? ORDER BY v.id LIMIT 1) FROM pushed q""",
        (_SOON, int(Outcome.FAILED)),
    ).fetchall()
    counts: dict[str, list[int]] = {}
    judged = [(page, source, outcome) for page, source, outcome in rows if outcome is not None]
    for _, source, outcome in judged:
        counts.setdefault(source, [0, 0])[outcome == Outcome.UNCHANGED] += 1
    db.executemany("DELETE FROM pushed WHERE page = ? AND source = ?", (row[:2] for row in judged))
    db.execute("DELETE FROM pushed WHERE at < ?", (now - _SOON,))
    told = [_weigh(db, source, right, wrong) for source, (right, wrong) in counts.items()]
    return [text for text in told if text]


def doubted(db: sqlite3.Connection) -> set[str]:
    """The sources whose pages are ordinary ones."""
    return {row[0] for row in db.execute("SELECT source FROM push_sources WHERE trusted = 0")}


def pushers(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """All sources with how they proved; doubted ones first."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'push_sources'").fetchone():
        return []  # a repository that no command of this version has written to
    rows = ask(db, "SELECT * FROM push_sources ORDER BY trusted, source")
    return [
        {
            **row,
            "trusted": bool(row["trusted"]),
            "precision": round(row["right"] / (row["right"] + row["wrong"]), 4)
            if row["right"] + row["wrong"]
            else None,
        }
        for row in rows
    ]


def troubles(db: sqlite3.Connection) -> list[str]:
    """Which sources are doubted, in sentences for people."""
    return [
        f"Of the pages that {row['source']} said had changed, {row['precision'] or 0:.0%} had: its pushes are not "
        "preferred any more."
        for row in pushers(db)
        if not row["trusted"]
    ]


def _weigh(db: sqlite3.Connection, source: str, more_right: int, more_wrong: int) -> str:
    """Add to what is known of a source; what to tell when it has gained or lost."""
    row = db.execute("SELECT right, wrong, trusted FROM push_sources WHERE source = ?", (source,)).fetchone()
    if row is None:
        return ""
    right, wrong, trusted = row[0] + more_right, row[1] + more_wrong, bool(row[2])
    faded = min(1.0, _REMEMBERED / (right + wrong))
    right, wrong = right * faded, wrong * faded
    share = right / (right + wrong)
    after = share >= _REGAINED if not trusted else right + wrong < _ENOUGH or share >= _LOST
    db.execute(
        "UPDATE push_sources SET right = ?, wrong = ?, trusted = ? WHERE source = ?", (right, wrong, int(after), source)
    )
    if after == trusted:
        return ""
    return f"pushes of {source}: {share:.0%} were right, so they are {'' if after else 'no longer '}preferred"
