"""Where archive files and models are stored: a URL in the file `archive.toml` of a repository.

    s3://bucket/prefix?endpoint=https://s3.example&region=eu-1&cache_megabytes=10000&seal=commit

The keys never are in the URL: they come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), as do endpoint
and region if the URL names none. `archive.toml` is no part of the settings: who may change settings through the service
must not move the archive.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from recrawl.errors import UsageError
from recrawl.record.store.location import cluster_values, read_url, shard_name, write_url

PLACE = "archive.toml"
_FORM = "s3://bucket/prefix?endpoint=https://host&region=NAME"
_OPTIONS = ("endpoint", "region", "cache_megabytes", "seal")


class BlobTarget(NamedTuple):
    """A prefix in a bucket."""

    url: str
    bucket: str
    prefix: str
    endpoint: str
    region: str
    cache_bytes: int
    """Limit of the copies in the folder."""
    seal_commits: bool
    """Whether each commit seals its file and puts it before it is recorded, so that nothing depends on this disk."""

    @property
    def name(self) -> str:
        """The place, for messages."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def of_shard(self, shard: int) -> BlobTarget:
        """The prefix of a shard. Bodies are put before they are recorded: another machine may take over.

        >>> parse("s3://pages/news?region=eu-1").of_shard(7).url
        's3://pages/news/s007?region=eu-1&seal=commit'
        """
        parts = urlsplit(self.url)
        options = [it for it in parts.query.split("&") if it and not it.startswith("seal=")]
        path = f"{parts.path.rstrip('/')}/{shard_name(shard)}"
        return parse(urlunsplit(parts._replace(path=path, query="&".join([*options, "seal=commit"]))))


def parse(url: str) -> BlobTarget:
    """Read a URL.

    >>> parse("s3://pages/news?endpoint=http://127.0.0.1:9000&cache_megabytes=5").name
    's3://pages/news'
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise UsageError(f"invalid URL of an archive; use {_FORM}") from None
    if parts.scheme != "s3" or not parts.hostname:
        raise UsageError(f"invalid URL of an archive; use {_FORM}")
    if parts.username or parts.password:
        raise UsageError(
            "keys in the URL of the archive are not allowed; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    for option in options.keys() - _OPTIONS:
        raise UsageError(f"unknown option '{option[:40]}' in the URL of the archive; use {', '.join(_OPTIONS)}")
    megabytes, seal = options.get("cache_megabytes", "10000"), options.get("seal", "end")
    if not megabytes.isdecimal() or seal not in ("end", "commit"):
        raise UsageError(
            "invalid option in the URL of the archive; use cache_megabytes=NUMBER, seal=end or seal=commit"
        )
    endpoint = options.get("endpoint", "")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise UsageError(f"invalid endpoint '{endpoint}' in the URL of the archive; use https://host")
    prefix = parts.path.strip("/")
    cache = int(megabytes) * 1_000_000
    return BlobTarget(url, parts.netloc, prefix, endpoint, options.get("region", ""), cache, seal == "commit")


def archive_target(folder: Path) -> BlobTarget | None:
    """Where a repository stores its archive files; None if that is its folder alone."""
    moved = cluster_values(folder).get("archive")
    url = read_url(folder / PLACE, "s3://bucket/prefix") if moved is None else str(moved)
    return parse(url) if url else None


def write_archive_target(folder: Path, target: BlobTarget) -> None:
    """Make this the place of the archive."""
    write_url(folder / PLACE, target.url)
