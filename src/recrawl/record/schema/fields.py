"""The SQL of the step `0015-fields`: what pages state about themselves. A released step is never edited."""

FIELDS = """
ALTER TABLE versions ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN image TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN published REAL;
ALTER TABLE versions ADD COLUMN updated REAL;
"""
