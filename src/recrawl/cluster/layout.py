"""Where a cluster is: the schema of its tables, and schema, prefix and working folder of each shard.

    recrawl.toml   settings, as of any repository
    store.toml     the schema of the cluster's tables; that of shard 7 is NAME_s007
    archive.toml   the prefix in the object store; that of shard 7 is PREFIX/s007
    cluster.toml   the number of shards, which never changes

A machine that joins has no such folder. It needs the URL of the store and the keys of the object store; the other files
are in the tables of the cluster.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recrawl.choose.shards.placement import check_shards, shard_of
from recrawl.discover.registrable_domains import registrable_domain
from recrawl.discover.scope import site
from recrawl.durable_files import replace_file
from recrawl.errors import RepositoryError, UsageError
from recrawl.record import storage
from recrawl.record.blobs.remote import claim
from recrawl.record.blobs.target import archive_target, write_archive_target
from recrawl.record.blobs.target import parse as parse_archive
from recrawl.record.shards.folders import prepare_folder
from recrawl.record.store import postgres_target
from recrawl.record.store.location import CLUSTER, shards_of, store_url, write_store_url
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.settings import TEMPLATE

_LONGEST_SCHEMA = 63


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a cluster.

    >>> layout = Layout("postgresql:///crawl?schema=news", "s3://pages/news?region=eu-1", 16)
    >>> layout.store_of(7), layout.archive_of(7)
    ('postgresql:///crawl?schema=news_s007', 's3://pages/news/s007?region=eu-1&seal=commit')
    """

    store: str
    """URL of the schema with the cluster's tables, its password by reference."""
    archive: str
    """URL of the prefix in the object store."""
    shards: int

    @property
    def target(self) -> PostgresTarget:
        """The schema with the cluster's tables."""
        return postgres_target(self.store)

    def open(self) -> ClusterStore:
        """Connect to the cluster's tables; a thread needs a connection of its own."""
        return ClusterStore(self.target)

    def store_of(self, shard: int) -> str:
        """URL of the schema of a shard."""
        return self._shard_target(shard).reference

    def archive_of(self, shard: int) -> str:
        """URL of the prefix of a shard."""
        return parse_archive(self.archive).of_shard(shard).url

    def shard_of_url(self, url: str) -> int:
        """The shard that owns a URL: all hosts of a registrable domain are in one."""
        return _shard_of_site(site(url), self.shards)

    def prepare_folder(self, folder: Path, shard: int, settings: str) -> None:
        """Make the working folder of a shard, or renew its settings."""
        prepare_folder(folder, self._shard_target(shard), parse_archive(self.archive).of_shard(shard), settings)

    def make_shards(self) -> None:
        """Make the schemas of all shards that have none."""
        for shard in range(self.shards):
            PostgresStore(self._shard_target(shard), create=True).close()

    def _shard_target(self, shard: int) -> PostgresTarget:
        if not 0 <= shard < self.shards:
            raise UsageError(f"there is no shard {shard}: this cluster has shards 0 to {self.shards - 1}")
        return self.target.of_shard(shard)


@lru_cache(1 << 16)
def _shard_of_site(of: str, shards: int) -> int:
    return shard_of(registrable_domain(of), shards)


def is_cluster(folder: Path) -> bool:
    """Whether the repository in a folder is a cluster."""
    return shards_of(folder) > 0


def layout_of(folder: Path) -> Layout:
    """The layout of the cluster in a folder."""
    shards, archive = shards_of(folder), archive_target(folder)
    if not shards or archive is None:
        raise RepositoryError(f"{folder} is not a cluster: make one with 'recrawl init --shards NUMBER'")
    return Layout(store_url(folder), archive.url, shards)


def layout_at(store: str) -> Layout:
    """The layout of the cluster whose tables are in the schema of a URL."""
    target = postgres_target(store)
    with closing(ClusterStore(target)) as cluster:
        if not cluster.fact("shards"):
            raise RepositoryError(f"the cluster in {target.name} is not complete: finish 'recrawl move' first")
        if moved := cluster.fact("moved to"):
            raise RepositoryError(f"the cluster in {target.name} was moved to {moved}: use it there")
        return Layout(target.reference, cluster.fact("archive"), int(cluster.fact("shards")))


def new_layout(store: str, archive: str, shards: int) -> Layout:
    """The layout of a cluster that is to be made; `UsageError` if it cannot be."""
    check_shards(shards)
    if not store or not archive:
        raise UsageError(
            "a cluster needs a database (postgresql://...) for its facts and --archive s3://... for its archive: "
            "all machines must reach both"
        )
    target = postgres_target(store)
    if len(target.schema) + len("_s0000") > _LONGEST_SCHEMA:
        raise UsageError(f"the schema name '{target.schema}' is too long for a cluster; use at most 57 characters")
    return Layout(target.reference, archive, shards)


def create_cluster(folder: Path, *, store: str, archive: str, shards: int, settings: str = TEMPLATE) -> Layout:
    """Make a repository that is divided into shards, with its settings in a folder, which may exist."""
    layout = new_layout(store, archive, shards)
    if (folder / storage.SETTINGS).exists():
        raise RepositoryError(f"there is already a repository in {folder}")
    target = layout.target
    blobs = claim(folder, archive)
    with closing(ClusterStore(target, create=True)) as cluster:
        layout.make_shards()
        cluster.set_fact("archive", archive)
        cluster.set_fact("shards", str(shards))
        cluster.set_fact("settings", settings)
    write_store_url(folder, target.reference)
    write_archive_target(folder, blobs)
    replace_file(folder / CLUSTER, f"shards = {shards}\n")
    replace_file(folder / storage.SETTINGS, settings)
    return layout
