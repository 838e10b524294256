"""Runs of a cluster: a crawl, a cycle or a recheck that all shards make, and how far each of them is.

A run is requested by a row. The coordinator starts and finishes it, the worker of each shard reports its state:

    ready      the shard has counted its pages and waits for the start
    running    it visits pages
    idle       nothing is left to visit; links may come from other shards while those crawl
    done       its part is recorded
    failed     its part cannot go on: `problem` says why
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from recrawl.record.store.postgres.cluster.channels import channels
from recrawl.record.store.postgres.connection import PostgresConnection

READY, RUNNING, IDLE, DONE, FAILED = "ready", "running", "idle", "done", "failed"
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_COLUMNS = "id, kind, policy, budget, seed, settings, options, requested, started, finished, stop, visits, ending"


class RunRow(NamedTuple):
    """A crawl, cycle or recheck of all shards."""

    id: int
    kind: str
    """crawl, cycle or recheck."""
    policy: str
    budget: float
    """As given: under 1 a share of the pages."""
    seed: int
    settings: str
    """The text of recrawl.toml."""
    options: str
    """What overrides the settings, as JSON."""
    requested: float
    started: float | None
    finished: float | None
    stop: bool
    """Whether it shall end; the next one resumes what is left of it."""
    visits: int | None
    """The budget as a number of visits, once it has started."""
    ending: bool
    """Whether no shard of a crawl has anything left to visit: each does what comes last, and is done."""


class ShardRun(NamedTuple):
    """A shard's part of a run."""

    shard: int
    state: str
    pages: int
    """Pages that could be visited when it began."""
    tally: dict[str, Any]
    """Counts so far."""
    seen: float
    problem: str
    age: float
    """Seconds since `seen`, by the clock of the database."""


class RunTable:
    """The tables `runs` and `run_shards`."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._wake_shards, self._wake_coordinator = (f"NOTIFY {channel}" for channel in channels(db.target.schema))

    def request(
        self, kind: str, *, policy: str, budget: float, seed: int, settings: str, options: Mapping[str, Any]
    ) -> int:
        """Ask for a run; returns its number."""
        found = self._db.run(
            f"""INSERT INTO runs (kind, policy, budget, seed, settings, options, requested)
            VALUES (%s, %s, %s, %s, %s, %s, {_NOW}) RETURNING id""",
            (kind, policy, budget, seed, settings, json.dumps(options)),
        ).fetchone()
        self._db.run(self._wake_coordinator)
        return int(found[0])

    def get(self, run: int) -> RunRow:
        """A run by its number."""
        return RunRow(*self._db.run(f"SELECT {_COLUMNS} FROM runs WHERE id = %s", (run,)).fetchone())

    def current(self) -> RunRow | None:
        """The oldest run that is not finished: runs go one after the other."""
        sql = f"SELECT {_COLUMNS} FROM runs WHERE finished IS NULL ORDER BY id LIMIT 1"
        found = self._db.run(sql).fetchone()
        return None if found is None else RunRow(*found)

    def newest(self, limit: int = 20) -> list[RunRow]:
        """The newest runs, newest first."""
        return [RunRow(*row) for row in self._db.run(f"SELECT {_COLUMNS} FROM runs ORDER BY id DESC LIMIT {limit:d}")]

    def age(self, run: int) -> float:
        """Seconds since a run was requested."""
        return float(self._db.run(f"SELECT {_NOW} - requested FROM runs WHERE id = %s", (run,)).fetchone()[0])

    def resume(self, run: int) -> None:
        """Let a run that was stopped go on."""
        self._db.run("UPDATE runs SET stop = false, finished = NULL WHERE id = %s", (run,))
        self._db.run(f"UPDATE run_shards SET state = '{READY}' WHERE run = %s AND state = '{IDLE}'", (run,))

    def abandon(self, run: int) -> None:
        """Do not let a run that was stopped go on: shards give up their part when they begin the next one."""
        self._db.run("UPDATE runs SET stop = false WHERE id = %s AND finished IS NOT NULL", (run,))

    def start(self, run: int, visits: int) -> None:
        """Let the shards begin, with a budget of so many visits."""
        self._db.run(
            f"UPDATE runs SET started = coalesce(started, {_NOW}), visits = %s WHERE id = %s AND started IS NULL",
            (visits, run),
        )
        self._db.run(self._wake_shards)

    def ask_to_stop(self, run: int) -> None:
        """Let a run end early."""
        self._db.run("UPDATE runs SET stop = true WHERE id = %s", (run,))

    def end_crawl(self, run: int) -> None:
        """Let the shards of a crawl end: none has anything left to visit."""
        self._db.run("UPDATE runs SET ending = true WHERE id = %s", (run,))
        self._db.run(self._wake_shards)

    def finish(self, run: int) -> None:
        """A run has ended."""
        self._db.run(f"UPDATE runs SET finished = {_NOW} WHERE id = %s AND finished IS NULL", (run,))

    def report(self, run: int, shard: int, state: str, tally: Mapping[str, Any] | None = None) -> None:
        """How far a shard is; the counts stay if none are given."""
        self._db.run(
            f"""INSERT INTO run_shards AS s (run, shard, state, pages, tally, seen) VALUES (%s, %s, %s, 0, %s, {_NOW})
            ON CONFLICT (run, shard) DO UPDATE SET state = excluded.state, seen = excluded.seen, problem = '',
                tally = CASE excluded.tally WHEN '{{}}' THEN s.tally ELSE excluded.tally END""",
            (run, shard, state, json.dumps(tally or {})),
        )
        if state != RUNNING:  # nobody waits for that
            self._db.run(self._wake_coordinator)

    def join(self, run: int, shard: int, pages: int) -> None:
        """A shard is ready, with so many pages that could be visited; one that is resumed keeps its number."""
        self._db.run(
            f"""INSERT INTO run_shards (run, shard, state, pages, tally, seen) VALUES (%s, %s, '{READY}', %s, '{{}}',
            {_NOW}) ON CONFLICT (run, shard) DO UPDATE SET seen = excluded.seen""",
            (run, shard, pages),
        )
        self._db.run(self._wake_coordinator)

    def fail(self, run: int, shard: int, problem: str) -> None:
        """A shard cannot go on."""
        self.report(run, shard, FAILED)
        self._db.run("UPDATE run_shards SET problem = %s WHERE run = %s AND shard = %s", (problem, run, shard))

    def shards(self, run: int) -> dict[int, ShardRun]:
        """The parts of a run, by shard."""
        sql = f"""SELECT shard, state, pages, tally, seen, problem, {_NOW} - seen FROM run_shards WHERE run = %s
            ORDER BY shard"""
        rows = self._db.run(sql, (run,)).fetchall()
        return {row[0]: ShardRun(row[0], row[1], row[2], json.loads(row[3]), *row[4:]) for row in rows}

    def quiet(self, run: int, shards: int) -> bool:
        """Whether every shard has done its part and no link waits for any: one look at both."""
        found = self._db.run(
            f"""SELECT (SELECT count(*) FROM run_shards WHERE run = %s AND state IN ('{IDLE}', '{DONE}', '{FAILED}')),
            (SELECT count(*) FROM outbox_links o LEFT JOIN run_shards s ON s.run = %s AND s.shard = o.shard
                WHERE coalesce(s.state, '') != '{FAILED}')""",
            (run, run),
        ).fetchone()
        return bool(found[0] == shards and not found[1])
