"""Where a store in PostgreSQL is: a URL, one schema of its database, the password by reference.

    postgresql://user:${NAME}@host:port/database?schema=news

The password is `${NAME}` or `${file:PATH}` (see `recrawl.secrets`), or comes from where PostgreSQL's own programs take
it (`~/.pgpass`). It is looked up when a connection is made; the file `store.toml` of a repository holds the reference.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from recrawl.errors import UsageError
from recrawl.record.store.location import shard_name
from recrawl.secrets import reveal

_PASSWORD = re.compile(r"(?<=[^/]):(\$\{[^{}]*\})@")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SCHEMES = ("postgresql", "postgres")


class PostgresTarget(NamedTuple):
    """A schema of a PostgreSQL database."""

    url: str
    """Without password and schema."""
    schema: str
    password: str
    """A reference, or empty."""

    @property
    def name(self) -> str:
        """The store, for messages: no password, no reference."""
        return f"{self.url} (schema {self.schema})"

    @property
    def reference(self) -> str:
        """The URL as `parse` reads it."""
        scheme, _, rest = self.url.partition("://")
        user, at, host = rest.partition("@")
        password = f":{self.password}" if self.password else ""
        joined = "&" if "?" in host else "?"
        return f"{scheme}://{user}{password}{at}{host}{joined}schema={self.schema}"

    def of_shard(self, shard: int) -> PostgresTarget:
        """The schema of a shard, if this is the schema of a cluster.

        >>> parse("postgresql:///crawl?schema=news").of_shard(7).schema
        'news_s007'
        """
        return self._replace(schema=f"{self.schema}_{shard_name(shard)}")

    def revealed(self) -> str:
        """The password; empty without a reference."""
        return reveal(self.password, "the URL of the store") if self.password else ""


def is_postgres(url: str) -> bool:
    """Whether a URL names a PostgreSQL database."""
    return url.partition("://")[0] in _SCHEMES


def parse(url: str) -> PostgresTarget:
    """Read a URL; a password that is written out is refused.

    >>> parse("postgresql://me:${PG_PASSWORD}@db.example/crawl?schema=news")
    PostgresTarget(url='postgresql://me@db.example/crawl', schema='news', password='${PG_PASSWORD}')
    >>> parse("postgresql:///crawl").reference
    'postgresql:///crawl?schema=recrawl'
    """
    found = _PASSWORD.search(url)
    plain = url if found is None else url[: found.start()] + "@" + url[found.end() :]
    try:
        parts = urlsplit(plain)
        written_out = parts.password is not None
    except ValueError:
        raise UsageError("invalid URL of a store; use postgresql://user@host/database?schema=NAME") from None
    options = dict(parse_qsl(parts.query))
    if written_out or "password" in options:
        raise UsageError(
            "the password in the URL of the store is written out; use ${NAME} (environment) or ${file:PATH} instead"
        )
    schema = options.pop("schema", "recrawl")
    if not _SCHEMA.fullmatch(schema):
        raise UsageError(f"invalid schema '{schema}' in the URL of the store; use lower-case letters, digits and _")
    bare = urlunsplit(parts._replace(query=urlencode(options)))
    if not parts.netloc:  # urlunsplit drops the slashes of an empty host
        bare = f"{parts.scheme}://{bare.partition(':')[2].removeprefix('//')}"
    return PostgresTarget(bare, schema, found[1] if found else "")
