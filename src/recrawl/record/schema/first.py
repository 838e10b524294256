"""The SQL of the first migration step. A released step is never edited (see `migrations`)."""

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
