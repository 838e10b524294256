"""Folders of shards: each is an ordinary repository, whose facts and bodies are elsewhere."""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import RepositoryError
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.target import BlobTarget, archive_target, write_archive_target
from recrawl.record.store import postgres_target
from recrawl.record.store.location import SETTINGS, shard_name, shards_of, store_url, write_store_url
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.secrets import write_private

READING = "shards"
"""The folder of the folders in which shards are read."""


def prepare_folder(folder: Path, store: PostgresTarget, archive: BlobTarget, settings: str) -> None:
    """Make the folder of a shard, or renew its settings."""
    (folder / ARCHIVE).mkdir(parents=True, exist_ok=True)
    write_store_url(folder, store.reference)
    write_archive_target(folder, archive)
    write_private(folder / SETTINGS, settings)


def reading_folder(folder: Path, shard: int) -> Path:
    """The folder in which a shard of the cluster in `folder` is read, with the settings of the cluster."""
    made = folder / READING / shard_name(shard)
    settings = (folder / SETTINGS).read_text(encoding="utf-8")
    if not (made / SETTINGS).exists() or (made / SETTINGS).read_text(encoding="utf-8") != settings:
        archive = shard_archive(folder, shard)
        prepare_folder(made, postgres_target(store_url(folder)).of_shard(shard), archive, settings)
    return made


def folder_of(folder: Path, number: int) -> Path:
    """The folder in which to read what a page, visit or version belongs to: a shard of a cluster, else `folder`."""
    shards = shards_of(folder)
    return reading_folder(folder, number % shards) if shards else folder


def number_in(folder: Path, number: int) -> int:
    """The number of a page, visit or version in the folder that `folder_of` gives."""
    return number // (shards_of(folder) or 1)


def shard_archive(folder: Path, shard: int) -> BlobTarget:
    """Where the archive files of a shard are."""
    target = archive_target(folder)
    if target is None:
        raise RepositoryError(f"{folder} is a cluster without archive.toml: write url = 's3://bucket/prefix' there")
    return target.of_shard(shard)


def cache_folder(folder: Path, shard: int) -> Path:
    """The folder with copies of a shard's archive files."""
    made = folder / READING / shard_name(shard) / ARCHIVE
    made.mkdir(parents=True, exist_ok=True)
    return made
