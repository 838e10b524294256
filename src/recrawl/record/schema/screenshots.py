"""The SQL of the step `0014-screenshots`: screenshots, rendered versions. A released step is never edited."""

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
