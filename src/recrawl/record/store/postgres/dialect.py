"""How PostgreSQL spells the shared statements of `record.store.sql`: a short list of replacements, no parser.

The shared statements hold `?` and `%` only as parameter and operator, never in a literal.
"""

from __future__ import annotations

from functools import lru_cache

from recrawl.record.store.sql.base import AMONG, NEVER

_SPELLING = (
    ("%", "%%"),
    # The list comes as '[1,2,3]'. With `= ANY (array)` each row of a table would be compared with all numbers of a long
    # list, one by one.
    (AMONG, "IN (SELECT unnest(translate(%s, '[]', '{}')::bigint[]))"),
    ("json_each(?)", "json_array_elements_text(%s::json)"),
    (NEVER, "'-infinity'::double precision"),
    ("instr(", "strpos("),
    ("LIMIT ?", "LIMIT nullif(%s::bigint, -1)"),
    ("?", "%s"),
)


@lru_cache(1024)
def spelled(sql: str) -> str:
    """A shared statement as PostgreSQL and psycopg read it.

    >>> spelled("SELECT url FROM pages WHERE id % ? = 0")
    'SELECT url FROM pages WHERE id %% %s = 0'
    """
    for shared, own in _SPELLING:
        sql = sql.replace(shared, own)
    return sql
