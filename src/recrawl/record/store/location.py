"""Where the store of a repository is: the file `recrawl.db`, or the PostgreSQL schema that `store.toml` names.

With `cluster.toml`, the schema is that of a cluster: the repository is divided into shards, each with a schema of its
own. While a repository becomes a cluster, or a cluster moves, `cluster.toml` names store and archive too, and what it
says counts: one file decides, so that the repository is never half of the one and half of the other.

`store.toml` is no part of the settings: who may change settings through the service must not move the store.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recrawl.errors import RepositoryError
from recrawl.secrets import write_private

DATABASE = "recrawl.db"
LOCATION = "store.toml"
CLUSTER = "cluster.toml"
SETTINGS = "recrawl.toml"


def has_store(folder: Path) -> bool:
    """Whether there is a store in a folder, or the address of one."""
    return (folder / DATABASE).is_file() or (folder / LOCATION).is_file()


def store_url(folder: Path) -> str:
    """The URL of a repository's store, its password by reference; empty for the file in the folder."""
    moved = cluster_values(folder).get("store")
    return read_url(folder / LOCATION, "postgresql://...") if moved is None else str(moved)


def write_store_url(folder: Path, url: str) -> None:
    """Make this the store of the repository, at once and whole."""
    write_url(folder / LOCATION, url)


def read_url(path: Path, form: str) -> str:
    """The URL in a file; empty without a file. `form` is what to write there, for messages."""
    try:
        url = tomllib.loads(path.read_text(encoding="utf-8"))["url"]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError) as error:
        raise RepositoryError(f"{path} cannot be read ({error}): write url = '{form}' there") from error
    return str(url)


def write_url(path: Path, url: str) -> None:
    """Write a file with a URL, at once and whole."""
    import tomlkit  # lazy: only commands that move a repository need it

    write_private(path, tomlkit.dumps({"url": url}))


def shards_of(folder: Path) -> int:
    """The number of shards of a cluster; 0 for a repository that is not divided."""
    return int(cluster_values(folder)["shards"])


def cluster_values(folder: Path) -> dict[str, Any]:
    """What `cluster.toml` says: `shards`, and during a move `store` and `archive`."""
    path = folder / CLUSTER
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return values | {"shards": int(values["shards"])}
    except FileNotFoundError:
        return {"shards": 0}
    except (OSError, ValueError, KeyError) as error:
        raise RepositoryError(f"{path} cannot be read ({error}): write shards = NUMBER there") from error


def write_cluster_values(folder: Path, values: Mapping[str, Any]) -> None:
    """Write `cluster.toml`, at once and whole."""
    import tomlkit  # lazy: only commands that move a repository need it

    write_private(folder / CLUSTER, tomlkit.dumps(dict(values)))


def shard_name(shard: int) -> str:
    """A shard in the names of schemas, prefixes and folders.

    >>> shard_name(7)
    's007'
    """
    return f"s{shard:03d}"
