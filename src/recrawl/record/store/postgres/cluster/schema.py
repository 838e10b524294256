"""The tables of a cluster, created and changed by named steps like those of a repository."""

from __future__ import annotations

from recrawl.record.store.postgres.schema import LEASES, Steps

_TABLES = f"""{LEASES};
CREATE TABLE facts (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
);
CREATE TABLE nodes (
    name TEXT PRIMARY KEY, host TEXT NOT NULL, started DOUBLE PRECISION NOT NULL, seen DOUBLE PRECISION NOT NULL,
    draining BOOLEAN NOT NULL DEFAULT false
);
CREATE TABLE workers (
    name TEXT PRIMARY KEY, node TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
    started DOUBLE PRECISION NOT NULL, seen DOUBLE PRECISION NOT NULL, draining BOOLEAN NOT NULL DEFAULT false
);
CREATE TABLE placements (
    shard BIGINT PRIMARY KEY, node TEXT NOT NULL
);
CREATE TABLE runs (
    id BIGINT GENERATED ALWAYS AS IDENTITY (MINVALUE 0) PRIMARY KEY, kind TEXT NOT NULL, policy TEXT NOT NULL,
    budget DOUBLE PRECISION NOT NULL, seed BIGINT NOT NULL, settings TEXT NOT NULL, options TEXT NOT NULL,
    requested DOUBLE PRECISION NOT NULL, started DOUBLE PRECISION, finished DOUBLE PRECISION,
    stop BOOLEAN NOT NULL DEFAULT false, visits BIGINT
);
CREATE INDEX runs_open ON runs (id) WHERE finished IS NULL;
CREATE TABLE run_shards (
    run BIGINT NOT NULL, shard BIGINT NOT NULL, state TEXT NOT NULL, pages BIGINT NOT NULL, tally TEXT NOT NULL,
    seen DOUBLE PRECISION NOT NULL, problem TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, shard)
);
CREATE TABLE rounds (
    run BIGINT NOT NULL, round BIGINT NOT NULL, stage TEXT NOT NULL, visits BIGINT NOT NULL, rest BIGINT NOT NULL,
    returned BIGINT NOT NULL, totals BYTEA NOT NULL, present BIGINT[] NOT NULL, settled BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (run, round)
);
CREATE TABLE offers (
    run BIGINT NOT NULL, round BIGINT NOT NULL, shard BIGINT NOT NULL, totals BYTEA NOT NULL, returned BIGINT NOT NULL,
    offer BYTEA, PRIMARY KEY (run, round, shard)
);
CREATE TABLE cuts (
    run BIGINT NOT NULL, round BIGINT NOT NULL, shard BIGINT NOT NULL, threshold BIGINT NOT NULL, quota BIGINT NOT NULL,
    PRIMARY KEY (run, round, shard)
);
CREATE TABLE outbox_links (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard BIGINT NOT NULL, key BIGINT NOT NULL, url TEXT NOT NULL,
    depth BIGINT NOT NULL, alias TEXT NOT NULL, UNIQUE (shard, key)
);
""".replace(" TEXT", ' TEXT COLLATE "C"')

_REQUISITES = """CREATE TABLE outbox_requisites (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard BIGINT NOT NULL, key BIGINT NOT NULL, url TEXT NOT NULL,
    style BIGINT NOT NULL, level BIGINT NOT NULL, depth BIGINT NOT NULL, UNIQUE (shard, key)
)""".replace(" TEXT", ' TEXT COLLATE "C"')

CLUSTER_STEPS: Steps = (
    ("cluster-0001", _TABLES),
    ("cluster-0002", "ALTER TABLE runs ADD COLUMN ending BOOLEAN NOT NULL DEFAULT false"),
    ("cluster-0003", _REQUISITES),
)
