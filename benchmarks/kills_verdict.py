"""What must not be after a kill: see `benchmarks.kills`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.model import State
from recrawl.record import storage
from recrawl.repository.repository import Repository
from recrawl.settings import write_value

if TYPE_CHECKING:
    from benchmarks.kills_commands import Command

_GONE = int(State.GONE)
_AWAY = (int(State.MISSING), _GONE)
KINDS = ("check", "lost", "doubled", "wrong")


def ask(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "recrawl.db")) as db:
        return db.execute(sql).fetchall()


def pages_of(folder: Path) -> dict[str, tuple[int, str]]:
    """State and digest of every page, by URL. Missing and gone are one: more visits make one of the other."""
    rows = ask(folder, "SELECT url, state, ifnull(hex(payload), '') FROM pages")
    return {url: (_GONE, "") if state in _AWAY else (state, payload) for url, state, payload in rows}


def recorded(folder: Path) -> set[tuple[Any, ...]]:
    """What must never be lost: versions with their places, and visits."""
    versions = ask(folder, "SELECT 'version', id, page, at, warc, start, length, hex(payload) FROM versions")
    return {*versions, *ask(folder, "SELECT 'visit', id, page, at, outcome, status, version, 0 FROM visits")}


def doubled(folder: Path) -> list[str]:
    """Pages visited twice in one crawl or cycle, and versions that are there twice in a row."""
    twice = ask(
        folder,
        """SELECT p.url, 'visited twice in cycle ' || v.cycle FROM visits v JOIN pages p ON p.id = v.page
           JOIN cycles c ON c.id = v.cycle WHERE c.kind != 'import' GROUP BY v.cycle, v.page HAVING count(*) > 1
           UNION ALL
           SELECT p.url, 'has a version twice' FROM versions a JOIN pages p ON p.id = a.page JOIN versions b
             ON b.id = (SELECT min(id) FROM versions WHERE page = a.page AND id > a.id)
           WHERE a.payload = b.payload AND NOT EXISTS (SELECT 1 FROM visits WHERE page = a.page AND outcome = 3)""",
    )
    return [f"{url} {what}" for url, what in twice]


def differences(plan: Command, folder: Path, trial: Path) -> list[str]:
    """How the repository differs from the undisturbed one.

    A page whose reader was killed waits for its next visit, and with it the pages that it alone links.
    """
    now = pages_of(folder)
    waiting = {url for (url,) in ask(folder, "SELECT url FROM pages WHERE failures > 0")}
    found = [
        f"{url} is {now.get(url)} instead of {plan.end.get(url)}"
        for url in sorted(plan.end.keys() | now.keys())
        if url not in waiting and now.get(url) != plan.end.get(url) and not (waiting and url not in now)
    ]
    exported = trial / "all.parquet"
    if plan.export and (not exported.exists() or exported.read_bytes() != plan.export):
        found.append("the exported file differs")
    return found


def verdict(plan: Command, folder: Path, trial: Path, before: set[tuple[Any, ...]]) -> dict[str, list[str]]:
    """Everything that is wrong, by kind: first as the kill has left it, then after running the command again."""
    wrong: dict[str, list[str]] = {name: [] for name in ("check", "lost", "doubled", "wrong")}
    if "Traceback" in (trial / "output.txt").read_text(errors="replace"):
        wrong["wrong"].append("a traceback: " + (trial / "output.txt").read_text(errors="replace"))
    for step in ("killed", "finished"):
        write_value(folder / storage.SETTINGS, "readers", 1)  # one reader to start is enough to finish
        with Repository(folder) as repo:
            if step == "finished":
                plan.finish(repo, trial)
            wrong["check"] += [f"{step}: {problem.what}" for problem in repo.check(wait=True).problems]
        lost = before - recorded(folder)
        wrong["lost"] += [f"{step}: {row}" for row in sorted(lost, key=str)[:5]]
        wrong["doubled"] += [f"{step}: {line}" for line in doubled(folder)]
    wrong["wrong"] += differences(plan, folder, trial)
    return wrong
