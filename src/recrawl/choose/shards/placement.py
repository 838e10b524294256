"""The shard of a site: a stable hash of its registrable domain.

The hash is over 1,024 virtual shards, and a shard is a range of them: when their number is doubled, each shard splits
into two, and no site moves between the others. All hosts of a registrable domain, with any scheme and port, are in one
shard, so that one process can keep the delay between requests to them.
"""

from __future__ import annotations

from hashlib import blake2b

from recrawl.errors import UsageError

VIRTUAL_SHARDS = 1024


def virtual_shard(domain: str) -> int:
    """Return the virtual shard of a registrable domain; the same on every machine, for ever.

    >>> virtual_shard("example.org"), virtual_shard("EXAMPLE.org")
    (437, 437)
    """
    return int.from_bytes(blake2b(domain.lower().encode(), digest_size=8).digest()) % VIRTUAL_SHARDS


def shard_of(domain: str, shards: int) -> int:
    """Return the shard of a registrable domain, from 0.

    >>> shard_of("example.org", 1), shard_of("example.org", 2), shard_of("example.org", 4)
    (0, 0, 1)
    """
    check_shards(shards)
    return virtual_shard(domain) * shards // VIRTUAL_SHARDS


def check_shards(shards: int) -> None:
    """Raise an error for an invalid number of shards."""
    if not 1 <= shards <= VIRTUAL_SHARDS:
        raise UsageError(f"invalid number of shards {shards}; use 1 to {VIRTUAL_SHARDS:,}")
