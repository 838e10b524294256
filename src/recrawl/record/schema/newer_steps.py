"""The SQL of the steps from `0013-marks` on. A released step is never edited."""

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
