"""Views over the tables of all shards, and the indexes that let PostgreSQL push conditions and order into every shard.

The views are in the schema NAME_all, which can be dropped and made again at any time; NAME_own has what belongs to the
whole: alerts, tags, read marks, saved filters, subscriptions. Shards make the same run under the same number, so that
rows of `cycles` and `cycle_summaries` with the same number add up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from recrawl.record.store.location import shard_name
from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.postgres.schema import PARTITIONED
from recrawl.record.store.sql.base import Transaction

NUMBERS: dict[str, tuple[str, ...]] = {
    "sites": ("id",),
    "pages": ("id", "site", "parent", "version", "target"),
    "visits": ("id", "page", "version", "why"),
    "versions": ("id", "page", "warc"),
    "links": ("page",),
    "reasons": ("id",),
    "hints": ("page",),
    "warcs": ("id",),
    "site_cycles": ("site",),
    "site_summaries": ("site",),
    "sources": ("site",),
    "feeds": ("site",),
    "frames": ("site",),
    "pushes": (),
    "pushed": ("page",),
    "requests": ("page",),
    "requisites": ("id", "version", "target"),
    "requisite_versions": ("id", "requisite", "record", "warc"),
    "page_requisites": ("page",),
    "requisite_hosts": (),
    "screenshots": ("id", "page", "version", "record", "warc"),
}
"""The tables of shards that are read as one, with the columns that hold numbers of a shard."""
_INDEXES: dict[str, tuple[str, ...]] = {
    "sites": ("id",),
    "pages": ("id", "site, state, id"),
    "visits": ("id", "page, id", "at, id"),
    "versions": ("id", "page, id"),
    "links": ("page",),
    "reasons": ("id",),
    "hints": ("page",),
    "site_cycles": ("site",),
    "site_summaries": ("site",),
    "page_requisites": ("page",),
    "requisites": ("id",),
    "requisite_versions": ("id", "requisite"),
    "screenshots": ("page, id",),
}
_UPDATES_ONLY = " WHERE outcome IN (1, 2, 3)"
_MEAN = "sum({0} * pages) / nullif(sum(pages) FILTER (WHERE {0} IS NOT NULL), 0)"
_DEVIATION = "sqrt(sum(({0} * pages) ^ 2)) / nullif(sum(pages) FILTER (WHERE {0} IS NOT NULL), 0)"


def views_schema(schema: str) -> str:
    """The schema of the views of a cluster."""
    return f"{schema}_all"


def own_schema(schema: str) -> str:
    """The schema of what belongs to the whole of a cluster."""
    return f"{schema}_own"


def shard_schema(schema: str, shard: int) -> str:
    """The schema of a shard."""
    return f"{schema}_{shard_name(shard)}"


def make_views(db: PostgresConnection, schema: str, shards: int, migrate: Callable[[], None]) -> None:
    """Make the views if there are none, or others than these; `migrate` brings the tables of all shards up to date."""
    if _made(db, schema) == _mark(db, schema, shards):
        return
    migrate()
    mark = _mark(db, schema, shards)
    with Transaction(db):
        db.run("SELECT pg_advisory_xact_lock(hashtext(%s))", (views_schema(schema),))
        if _made(db, schema) == mark:
            return
        db.run(f"DROP SCHEMA IF EXISTS {views_schema(schema)} CASCADE; CREATE SCHEMA {views_schema(schema)}")
        for table in NUMBERS:
            db.run(_view(schema, table, _columns(db, schema)[table], shards))
        db.run(_cycles(schema, shards))
        db.run(_cycle_summaries(schema, _columns(db, schema)["cycle_summaries"], shards))
        db.run(_push_sources(schema, shards))
        for shard in range(shards):
            db.run(_indexes(schema, shard, shards))
        db.run(f"COMMENT ON SCHEMA {views_schema(schema)} IS '{mark}'")


def _made(db: PostgresConnection, schema: str) -> str:
    """The mark of the views that are there; empty if there are none."""
    sql = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
    found = db.run(sql, (views_schema(schema),)).fetchone()
    return (found[0] or "") if found else ""


def _mark(db: PostgresConnection, schema: str, shards: int) -> str:
    """What the views depend on: this module's version of them, and the columns of the tables."""
    text = f"3 {shards} {sorted(_columns(db, schema).items())}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _columns(db: PostgresConnection, schema: str) -> dict[str, list[str]]:
    """The columns of the tables of a shard, in their order."""
    found: dict[str, list[str]] = {}
    sql = """SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s
             ORDER BY table_name, ordinal_position"""
    for table, column in db.run(sql, (shard_schema(schema, 0),)):
        found.setdefault(table, []).append(column)
    return found


def number(column: str, shard: int, shards: int) -> str:
    """A number of a shard as one of the whole, in SQL.

    >>> number("id", 3, 8)
    'id * 8 + 3'
    """
    return f"{column} * {shards} + {shard}"


def _view(schema: str, table: str, columns: Sequence[str], shards: int) -> str:
    parts = (_part(schema, table, columns, shard, shards) for shard in range(shards))
    return f"CREATE VIEW {views_schema(schema)}.{table} AS " + " UNION ALL ".join(parts)


def _part(schema: str, table: str, columns: Sequence[str], shard: int, shards: int) -> str:
    shown = (_shown(table, column, shard, shards) for column in columns)
    return f"SELECT {', '.join(shown)} FROM {_source(schema, table, shard)}"


def _source(schema: str, table: str, shard: int) -> str:
    """A table of a shard; of a partitioned one its only partition, which is half of the work for the planner."""
    return f"{shard_schema(schema, shard)}.{table}{'_0' if table in PARTITIONED else ''}"


def _shown(table: str, column: str, shard: int, shards: int) -> str:
    """A column of a shard as the view shows it. A negative number says that there is none, and stays what it is."""
    if column == "shard":
        return f"{shard} AS shard"
    if table == "warcs" and column == "name":
        return f"'{shard_name(shard)}-' || name AS name"
    if column not in NUMBERS.get(table, ()):
        return f'"{column}"'
    if column in ("parent", "version", "target", "record"):
        return f"CASE WHEN {column} < 0 THEN {column} ELSE {number(column, shard, shards)} END AS {column}"
    return f"{number(column, shard, shards)} AS {column}"


def _indexes(schema: str, shard: int, shards: int) -> str:
    return "; ".join(
        f"CREATE INDEX IF NOT EXISTS whole_{table}_{place} ON {_source(schema, table, shard)} "
        f"({', '.join(_indexed(table, column, shard, shards) for column in columns.split(', '))})"
        f"{_UPDATES_ONLY if columns == 'at, id' else ''}"
        for table, indexes in _INDEXES.items()
        for place, columns in enumerate(indexes)
    )


def _indexed(table: str, column: str, shard: int, shards: int) -> str:
    return f"({number(column, shard, shards)})" if column in NUMBERS[table] else column


def _union(schema: str, table: str, shards: int, columns: str = "*") -> str:
    return " UNION ALL ".join(
        f"SELECT {columns.format(shard=shard)} FROM {shard_schema(schema, shard)}.{table}" for shard in range(shards)
    )


def _cycles(schema: str, shards: int) -> str:
    """A cycle of the whole has finished when the run has, and before runs are recorded when every shard has.

    Its limits are those of all shards: objects are by number of a site, and bytes were divided among the shards.
    """
    first = f"first_visit * {shards} + {{shard}} AS first_visit"
    views = views_schema(schema)
    limits = f"{views}.numbered(limits, {{shard}}) AS limits"
    names = f"id, kind, policy, budget, seed, started, finished, {first}, known, {limits}"
    return f"""
        CREATE FUNCTION {views}.numbered(limits text, shard bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
            SELECT CASE WHEN coalesce(limits, '') = '' THEN limits ELSE (
                SELECT jsonb_object_agg(name, CASE WHEN jsonb_typeof(value) <> 'object' THEN value ELSE (
                    SELECT coalesce(jsonb_object_agg((site::bigint * {shards} + shard)::text, visits), '{{}}')
                    FROM jsonb_each(value) o (site, visits)) END)::text
                FROM jsonb_each(limits::jsonb) l (name, value)) END $$;
        CREATE FUNCTION {views}.joined(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
            WITH parts AS (SELECT name, value FROM unnest(texts) t, jsonb_each(nullif(t, '')::jsonb) l (name, value)),
            whole AS (
                SELECT name, jsonb_object_agg(site, visits) AS value
                FROM parts, jsonb_each(CASE WHEN jsonb_typeof(value) = 'object' THEN value END) o (site, visits)
                GROUP BY name
                UNION ALL
                SELECT name, to_jsonb(CASE name WHEN 'bytes' THEN sum(value::numeric) ELSE max(value::numeric) END)
                FROM (SELECT name, CASE WHEN jsonb_typeof(value) = 'number' THEN value END AS value FROM parts) n
                WHERE value IS NOT NULL GROUP BY name)
            SELECT coalesce((SELECT jsonb_object_agg(name, value)::text FROM whole),
                            (SELECT max(t) FROM unnest(texts) t)) $$;
        CREATE VIEW {views}.cycles AS
        SELECT id, min(kind) AS kind, min(policy) AS policy, max(budget) AS budget, min(seed) AS seed,
               min(started) AS started, CASE WHEN bool_and(finished IS NOT NULL) THEN max(finished) END AS finished,
               min(first_visit) AS first_visit, sum(known)::bigint AS known,
               {views}.joined(array_agg(limits)) AS limits
        FROM ({_union(schema, "cycles", shards, names)}) c GROUP BY id"""


def _cycle_summaries(schema: str, columns: Sequence[str], shards: int) -> str:
    """Counts add up; freshness and age are means over the stored pages."""
    special = {
        "cycle": "cycle",
        "pages": "sum(pages)::bigint",
        "freshness": _MEAN.format("freshness"),
        "age": _MEAN.format("age"),
        "freshness_sd": _DEVIATION.format("freshness_sd"),
        "expected_sd": "sqrt(sum(expected_sd ^ 2))",
        "failures": f"{views_schema(schema)}.added(array_agg(failures))",
        "ages": f"{views_schema(schema)}.added_lists(array_agg(ages))",
        "seconds": "sum(seconds)",
        "expected": "sum(expected)",
    }
    shown = ", ".join(f"{special.get(name, f'sum({name})::bigint')} AS {name}" for name in columns)
    return f"""
        CREATE FUNCTION {views_schema(schema)}.added(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
            SELECT coalesce(jsonb_object_agg(key, number), '{{}}')::text FROM (
                SELECT key, sum(value::bigint)::bigint AS number FROM unnest(texts) t, json_each_text(t::json)
                GROUP BY key) counted $$;
        CREATE FUNCTION {views_schema(schema)}.added_lists(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
            SELECT coalesce(jsonb_agg(number ORDER BY place)::text, max(texts[1])) FROM (
                SELECT place, sum(value::bigint)::bigint AS number
                FROM unnest(texts) t, json_array_elements_text(t::json) WITH ORDINALITY AS e (value, place)
                WHERE t IS NOT NULL GROUP BY place) counted $$;
        CREATE VIEW {views_schema(schema)}.cycle_summaries AS
            SELECT {shown} FROM ({_union(schema, "cycle_summaries", shards)}) s GROUP BY cycle"""


def _push_sources(schema: str, shards: int) -> str:
    return f"""CREATE VIEW {views_schema(schema)}.push_sources AS
        SELECT source, min(kind) AS kind, sum(heard)::bigint AS heard, sum("right") AS "right", sum(wrong) AS wrong,
               max(last) AS last, min(trusted) AS trusted
        FROM ({_union(schema, "push_sources", shards)}) s GROUP BY source"""
