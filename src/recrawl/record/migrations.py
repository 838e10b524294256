"""The store's shape, as named steps in order; each is applied once and noted in the table `migrations`.

A step that has been released is never edited: a new one is appended. A store that names a step we do not know was
made by a newer recrawl and is refused.

A page's id is its number in the book, counted from 0 without gaps. Addresses are found by `key`, 64 bits of a hash,
which makes the index a tenth of the size that one over URLs would have. Links are one packed array a page
(little-endian int32 page numbers), not one row a link.
"""

from __future__ import annotations

import sqlite3

from recrawl.errors import NewerRepository

_FIRST = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE sites (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL UNIQUE,
    robots_status INTEGER NOT NULL DEFAULT -1,
    robots_body BLOB NOT NULL DEFAULT x'',
    robots_at REAL NOT NULL DEFAULT 0,
    robots_held REAL NOT NULL DEFAULT 0,
    sitemap_at REAL NOT NULL DEFAULT 0,
    held_until REAL NOT NULL DEFAULT 0,
    lm_good INTEGER NOT NULL DEFAULT 0,
    lm_bad INTEGER NOT NULL DEFAULT 0,
    etag_good INTEGER NOT NULL DEFAULT 0,
    etag_bad INTEGER NOT NULL DEFAULT 0,
    habits TEXT NOT NULL DEFAULT ''
);

CREATE TABLE pages (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL UNIQUE,
    site INTEGER NOT NULL,
    folder INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    found REAL NOT NULL,
    cycle INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    visits INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    quiet INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    listed INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT -1,
    version_at REAL NOT NULL DEFAULT 0,
    target INTEGER NOT NULL DEFAULT -1,
    last_try REAL,
    last_visit REAL,
    last_change REAL,
    missing_since REAL NOT NULL DEFAULT 0,
    payload BLOB,
    digest BLOB,
    noise BLOB,
    etag TEXT NOT NULL DEFAULT '',
    modified TEXT NOT NULL DEFAULT '',
    url TEXT NOT NULL
);
CREATE INDEX pages_by_site ON pages (site, state);

CREATE TABLE visits (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    cycle INTEGER NOT NULL,
    at REAL NOT NULL,
    outcome INTEGER NOT NULL,
    status INTEGER NOT NULL,
    received INTEGER NOT NULL,
    seconds REAL NOT NULL,
    version INTEGER NOT NULL,
    score REAL,
    why INTEGER,
    failure TEXT,
    detail TEXT
);
CREATE INDEX visits_by_page ON visits (page, id);
CREATE INDEX updates_by_time ON visits (at) WHERE outcome IN (1, 2, 3);

CREATE TABLE versions (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    at REAL NOT NULL,
    changed INTEGER NOT NULL,
    divergence REAL,
    significant INTEGER,
    new_links INTEGER NOT NULL,
    searchable INTEGER NOT NULL,
    size INTEGER NOT NULL,
    warc INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    payload BLOB NOT NULL,
    digest BLOB NOT NULL,
    title TEXT NOT NULL,
    mime TEXT NOT NULL,
    encoding TEXT NOT NULL
);
CREATE INDEX versions_by_page ON versions (page, id);

CREATE TABLE links (page INTEGER PRIMARY KEY, targets BLOB NOT NULL);

CREATE TABLE cycles (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    policy TEXT NOT NULL,
    budget INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    started REAL NOT NULL,
    finished REAL,
    first_visit INTEGER NOT NULL,
    known INTEGER NOT NULL
);

CREATE TABLE reasons (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

CREATE TABLE hints (
    page INTEGER NOT NULL,
    kind TEXT NOT NULL,
    seen REAL NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (page, kind)
) WITHOUT ROWID;

CREATE TABLE warcs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, length INTEGER NOT NULL);
"""

_SUMMARIES = """
CREATE TABLE cycle_summaries (
    cycle INTEGER PRIMARY KEY,
    visits INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    new INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    not_modified INTEGER NOT NULL,
    received INTEGER NOT NULL,
    seconds REAL NOT NULL,
    expected REAL NOT NULL,
    expected_sd REAL NOT NULL,
    failures TEXT NOT NULL,
    pages INTEGER,
    freshness REAL,
    freshness_sd REAL,
    age REAL,
    ages TEXT
);

CREATE TABLE site_cycles (
    site INTEGER NOT NULL,
    cycle INTEGER NOT NULL,
    visits INTEGER NOT NULL,
    updates INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    not_modified INTEGER NOT NULL,
    received INTEGER NOT NULL,
    seconds REAL NOT NULL,
    expected REAL NOT NULL,
    PRIMARY KEY (site, cycle)
) WITHOUT ROWID;
CREATE INDEX site_cycles_by_cycle ON site_cycles (cycle);

CREATE TABLE site_summaries (
    site INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    pages INTEGER NOT NULL,
    found INTEGER NOT NULL,
    live INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    moved INTEGER NOT NULL,
    barred INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    visits INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    failing INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    last_visit REAL,
    last_change REAL,
    rate REAL NOT NULL,
    freshness REAL,
    freshness_sd REAL,
    age REAL
);
"""

_HINTS = """
ALTER TABLE hints ADD COLUMN signals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE visits ADD COLUMN hints INTEGER NOT NULL DEFAULT 0;

CREATE TABLE sources (
    site INTEGER NOT NULL,
    kind TEXT NOT NULL,
    seen REAL NOT NULL,
    signals INTEGER NOT NULL,
    ignored INTEGER NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (site, kind)
) WITHOUT ROWID;

CREATE TABLE feeds (
    site INTEGER NOT NULL,
    url TEXT NOT NULL,
    seen REAL NOT NULL,
    etag TEXT NOT NULL,
    modified TEXT NOT NULL,
    PRIMARY KEY (site, url)
) WITHOUT ROWID;

CREATE TABLE pushes (
    key INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (key, kind)
) WITHOUT ROWID;

CREATE TABLE pushers (
    source TEXT PRIMARY KEY,
    hour INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    refused INTEGER NOT NULL
) WITHOUT ROWID;
"""

_ALERTS = """
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    alert TEXT NOT NULL,
    page INTEGER NOT NULL,
    state INTEGER NOT NULL,
    remaining INTEGER NOT NULL DEFAULT 0,
    before BLOB,
    due REAL NOT NULL,
    created REAL NOT NULL,
    sent REAL,
    tries INTEGER NOT NULL DEFAULT 0,
    parcel TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);
CREATE INDEX outbox_by_state ON outbox (state, due);

CREATE TABLE subscriptions (
    name TEXT PRIMARY KEY,
    topic TEXT NOT NULL UNIQUE,
    hub TEXT NOT NULL,
    secret TEXT NOT NULL,
    state TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;
"""

_LIMITS = "ALTER TABLE cycles ADD COLUMN limits TEXT"

_PUSHED = """
ALTER TABLE subscriptions ADD COLUMN callback TEXT NOT NULL DEFAULT '';
ALTER TABLE subscriptions ADD COLUMN due REAL NOT NULL DEFAULT 0;
ALTER TABLE subscriptions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE subscriptions ADD COLUMN error TEXT NOT NULL DEFAULT '';

CREATE TABLE proofs (
    host TEXT NOT NULL,
    key TEXT NOT NULL,
    location TEXT NOT NULL,
    at REAL NOT NULL,
    good INTEGER NOT NULL,
    again REAL NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (host, key, location)
) WITHOUT ROWID;

ALTER TABLE pushes RENAME TO pushes_before;
CREATE TABLE pushes (
    key INTEGER NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    at REAL NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (key, kind, source)
) WITHOUT ROWID;
INSERT INTO pushes SELECT key, kind, '', at, url FROM pushes_before;
DROP TABLE pushes_before;

CREATE TABLE pushed (
    page INTEGER NOT NULL,
    source TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (page, source)
) WITHOUT ROWID;

CREATE TABLE push_sources (
    source TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    heard INTEGER NOT NULL,
    right REAL NOT NULL,
    wrong REAL NOT NULL,
    last REAL NOT NULL,
    trusted INTEGER NOT NULL
) WITHOUT ROWID;
"""

STEPS: tuple[tuple[str, str], ...] = (
    ("0001-first", _FIRST),
    ("0002-summaries", _SUMMARIES),
    ("0003-hints", _HINTS),
    ("0004-alerts", _ALERTS),
    ("0005-limits", _LIMITS),
    ("0006-pushed", _PUSHED),
)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the store to the newest shape; each step is applied whole or not at all."""
    db.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID")
    done = check(db)
    for name, script in STEPS:
        if name not in done:
            note = f"INSERT INTO migrations VALUES ('{name}')"  # noqa: S608
            db.executescript(f"BEGIN IMMEDIATE; {script}; {note}; COMMIT;")


def check(db: sqlite3.Connection) -> set[str]:
    """The steps that were applied; raises when some are not ours."""
    done = {row[0] for row in db.execute("SELECT name FROM migrations")}
    unknown = sorted(done - {name for name, _ in STEPS})
    if unknown:
        raise NewerRepository(
            f"this repository was made by a newer recrawl (it has '{unknown[-1]}'): "
            "install that version or a later one to use it"
        )
    return done
