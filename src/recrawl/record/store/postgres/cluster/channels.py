"""The channels by which processes of a cluster wake each other up, instead of looking again and again.

What one shard writes concerns the coordinator alone: with a channel for all, each of them would wake all others.
"""

from __future__ import annotations


def channels(schema: str) -> tuple[str, str]:
    """The channels of the shards and of the coordinator.

    >>> channels("news")
    ('news', 'news_up')
    """
    return schema, f"{schema}_up"
