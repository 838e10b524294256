"""Single values of a cluster and of its shards as those of one store."""

from __future__ import annotations

import json
from typing import Any

from recrawl.record.store.division.joined_numbers import JoinedNumbers
from recrawl.record.store.division.own_rows import BY_ORIGIN, BY_SITE, CURSOR, EVERYWHERE, MADE_ANEW
from recrawl.record.store.postgres.gathered.store import GatheredStore

_ALIASES = "aliases"


def joined_values(source: GatheredStore, numbers: JoinedNumbers) -> dict[str, Any]:
    """The values of the whole, those of all shards together, and how far readers are, by the new numbers."""
    names = [row[0] for row in source.db.run("SELECT name FROM meta").fetchall() if row[0] not in MADE_ANEW]
    found = {name: source.meta.get(name, None) for name in names}
    for name in names:
        if CURSOR.fullmatch(name) and found[name] is not None:
            found[name] = numbers.places("visits", [int(found[name])])[0]
    return found | _of_shards(source, numbers)


def _of_shards(source: GatheredStore, numbers: JoinedNumbers) -> dict[str, Any]:
    shards = [_shard_values(source, shard) for shard in range(numbers.shards)]
    found: dict[str, Any] = {}
    for name in (_ALIASES, BY_ORIGIN):
        joined: dict[str, Any] = {}
        for values in shards:
            joined |= json.loads(values.get(name) or "{}")
        if joined:
            found[name] = json.dumps(joined)
    for name in EVERYWHERE:
        given = {values.get(name) for values in shards}
        if name != _ALIASES and len(given) == 1 and None not in given:
            found[name] = given.pop()
    texts: dict[str, Any] = {}
    for shard, values in enumerate(shards):
        texts |= _shared_texts(values.get(BY_SITE) or "{}", shard, numbers)
    return found | ({BY_SITE: json.dumps(texts)} if texts else {})


def _shard_values(source: GatheredStore, shard: int) -> dict[str, Any]:
    sql = f"SELECT name, value FROM {source.shards.schema(shard)}.meta WHERE name = ANY (%s)"
    rows = source.db.run(sql, ([*EVERYWHERE, BY_ORIGIN, BY_SITE],)).fetchall()
    return {name: json.loads(value) for name, value in rows}


def _shared_texts(text: str, shard: int, numbers: JoinedNumbers) -> dict[str, Any]:
    """The texts that several pages of a site had, by site, each with those pages."""
    found = {}
    for site, (digest, since, title, recent, *rest) in json.loads(text).items():
        pages = numbers.places("pages", [page * numbers.shards + shard for page, *_ in recent])
        own = [[page, *texts] for page, (_, *texts) in zip(pages, recent, strict=True)]
        (number,) = numbers.places("sites", [int(site) * numbers.shards + shard])
        found[str(number)] = [digest, since, title, own, *rest]
    return found


def joined_name(name: str) -> str:
    """The name of an archive file among those of all shards.

    >>> joined_name("s007-recrawl-20260101000000-c0ffee-00012.warc.gz")
    'recrawl-20260101000000-s007-c0ffee-00012.warc.gz'
    """
    shard, prefix, stamp, rest = name.split("-", 3)
    return f"{prefix}-{stamp}-{shard}-{rest}"
