"""The SQL of the step `0013-marks`: requests, tags, read marks, saved filters. A released step is never edited."""

MARKS = """
CREATE TABLE requests (page INTEGER PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE tags (name TEXT NOT NULL, site INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (name, site, page))
    WITHOUT ROWID;
CREATE TABLE change_marks (visit INTEGER PRIMARY KEY, read INTEGER NOT NULL);
CREATE TABLE saved_filters (name TEXT PRIMARY KEY, query TEXT NOT NULL) WITHOUT ROWID;
INSERT OR REPLACE INTO meta (name, value) SELECT 'changes:read', ifnull(max(id), -1) FROM visits;
"""
