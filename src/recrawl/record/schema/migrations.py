"""The schema as named steps in order; each is applied once and recorded in the table `migrations`.

A released step is never edited: changes are new steps. One with an unknown step comes from a newer recrawl: refused.

A page's id is its number in the book, counted from 0 without gaps. URLs are looked up by `key`, a 64-bit hash, which
makes the index a tenth of the size of one over URLs. Links are one packed array per page (little-endian int32 page
numbers), not one row per link.
"""

from __future__ import annotations

import sqlite3

from recrawl.errors import NewerRepository

# --------------------------------------------------------------------------------------------------------------------
# The SQL of the first migration step. A released step is never edited (see `migrations`).


FIRST = """
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


# --------------------------------------------------------------------------------------------------------------------
# The SQL of the steps from `0013-marks` on. A released step is never edited.


MARKS = """
CREATE TABLE requests (page INTEGER PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE tags (name TEXT NOT NULL, site INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (name, site, page))
    WITHOUT ROWID;
CREATE TABLE change_marks (visit INTEGER PRIMARY KEY, read INTEGER NOT NULL);
CREATE TABLE saved_filters (name TEXT PRIMARY KEY, query TEXT NOT NULL) WITHOUT ROWID;
INSERT OR REPLACE INTO meta (name, value) SELECT 'changes:read', ifnull(max(id), -1) FROM visits;
"""
"""`0013-marks`: requests, tags, read marks, saved filters."""

SCREENSHOTS = """
CREATE TABLE screenshots (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    record INTEGER NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    size INTEGER NOT NULL,
    warc INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    payload BLOB NOT NULL
);
CREATE INDEX screenshots_by_page ON screenshots (page, id);
CREATE INDEX screenshots_by_payload ON screenshots (payload);
ALTER TABLE versions ADD COLUMN rendered INTEGER NOT NULL DEFAULT 0;
"""
"""`0014-screenshots`: screenshots, rendered versions."""

FIELDS = """
ALTER TABLE versions ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN image TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN published REAL;
ALTER TABLE versions ADD COLUMN updated REAL;
"""
"""`0015-fields`: what pages state about themselves."""

COPIES = """
ALTER TABLE pages ADD COLUMN sketch BLOB;
ALTER TABLE pages ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN same_as INTEGER;
CREATE INDEX pages_by_representative ON pages (same_as) WHERE same_as IS NOT NULL;
ALTER TABLE visits ADD COLUMN copy INTEGER NOT NULL DEFAULT 0;
"""
"""`0018-copies`: which pages are copies of others, and which visits are told of another page."""


# --------------------------------------------------------------------------------------------------------------------


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

_CONTENT = """
ALTER TABLE versions ADD COLUMN content INTEGER;
ALTER TABLE versions ADD COLUMN content_share REAL;
ALTER TABLE versions ADD COLUMN significance REAL;
ALTER TABLE pages ADD COLUMN counters BLOB;
CREATE TABLE frames (site INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""

_REQUISITES = """
CREATE TABLE requisites (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    style INTEGER NOT NULL,
    level INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    checked REAL,
    failures INTEGER NOT NULL,
    failure TEXT,
    version INTEGER NOT NULL,
    target INTEGER NOT NULL,
    etag TEXT NOT NULL,
    modified TEXT NOT NULL,
    url TEXT NOT NULL
);
CREATE UNIQUE INDEX requisites_by_key ON requisites (key);
CREATE INDEX requisites_waiting ON requisites (style, id) WHERE checked IS NULL;

CREATE TABLE requisite_versions (
    id INTEGER PRIMARY KEY,
    requisite INTEGER NOT NULL,
    at REAL NOT NULL,
    record INTEGER NOT NULL,
    size INTEGER NOT NULL,
    warc INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    payload BLOB NOT NULL,
    mime TEXT NOT NULL,
    styles TEXT NOT NULL,
    files TEXT NOT NULL
);
CREATE INDEX requisite_versions_by_requisite ON requisite_versions (requisite, at);
CREATE INDEX requisite_versions_by_payload ON requisite_versions (payload);

CREATE TABLE page_requisites (page INTEGER PRIMARY KEY, level INTEGER NOT NULL, requisites BLOB NOT NULL);

CREATE TABLE requisite_hosts (
    origin TEXT PRIMARY KEY,
    robots_status INTEGER NOT NULL,
    robots_body BLOB NOT NULL,
    robots_at REAL NOT NULL,
    robots_held REAL NOT NULL,
    held_until REAL NOT NULL
) WITHOUT ROWID;
"""

_SKIPPED = """
ALTER TABLE cycle_summaries ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cycle_summaries ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;
UPDATE cycle_summaries SET
    skipped = (SELECT ifnull(sum(value), 0) FROM json_each(ifnull(failures, '{}'))
               WHERE key IN ('content-type', 'robots-disallowed', 'site-limit', 'moved', 'redirect-away')),
    missing = (SELECT ifnull(sum(value), 0) FROM json_each(ifnull(failures, '{}')) WHERE key = 'not-found');
UPDATE cycle_summaries SET failed = failed - skipped - missing;
"""

STEPS: tuple[tuple[str, str], ...] = (
    ("0001-first", FIRST),
    ("0002-summaries", _SUMMARIES),
    ("0003-hints", _HINTS),
    ("0004-alerts", _ALERTS),
    ("0005-limits", "ALTER TABLE cycles ADD COLUMN limits TEXT"),
    ("0006-pushed", _PUSHED),
    ("0007-content", _CONTENT),
    ("0008-redirects", "ALTER TABLE pages ADD COLUMN archived_url TEXT NOT NULL DEFAULT ''"),
    ("0009-frame-only", "ALTER TABLE cycle_summaries ADD COLUMN frame_only INTEGER NOT NULL DEFAULT 0"),
    ("0010-requisites", _REQUISITES),
    ("0011-skipped", _SKIPPED),
    ("0012-prior", "ALTER TABLE pages ADD COLUMN prior REAL"),
    ("0013-marks", MARKS),
    ("0014-screenshots", SCREENSHOTS),
    ("0015-fields", FIELDS),
    ("0016-stored", "ALTER TABLE warcs ADD COLUMN stored INTEGER NOT NULL DEFAULT 0"),
    ("0017-deliveries", "CREATE INDEX outbox_by_receiver ON outbox (alert, state, page, id)"),
    ("0018-copies", COPIES),
    ("0019-sketches", "UPDATE pages SET sketch = NULL"),  # made of other runs: they are made anew
)

NEWER = "this repository was made by a newer recrawl (it has '{step}'): install that version or a later one to use it"
"""What to say about an unknown step."""


def migrate(db: sqlite3.Connection) -> None:
    """Apply the missing steps, each in one transaction."""
    db.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) WITHOUT ROWID")
    done = check(db)
    for name, script in STEPS:
        if name not in done:
            note = f"INSERT INTO migrations VALUES ('{name}')"  # noqa: S608
            db.executescript(f"BEGIN IMMEDIATE; {script}; {note}; COMMIT;")


def check(db: sqlite3.Connection) -> set[str]:
    """The applied steps; raises `NewerRepository` if one is unknown."""
    done = {row[0] for row in db.execute("SELECT name FROM migrations")}
    unknown = sorted(done - {name for name, _ in STEPS})
    if unknown:
        raise NewerRepository(NEWER.format(step=unknown[-1]))
    return done
