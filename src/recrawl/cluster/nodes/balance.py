"""Which shard runs on which node: as many on each as on any other, with as few moves as possible. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def balanced(
    shards: int, nodes: Sequence[str], placed: Mapping[int, str], wanted: Mapping[int, str] | None = None
) -> dict[int, str]:
    """Return the node of each shard; empty without nodes.

    `nodes` are those that may have shards, `placed` is where shards are, `wanted` where the user wants some of them.

    >>> balanced(4, ["a", "b"], {0: "a", 1: "a", 2: "a", 3: "a"})
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}
    >>> balanced(3, ["a", "b"], {0: "gone"}, {2: "b"})
    {0: 'a', 1: 'a', 2: 'b'}
    """
    if not nodes:
        return {}
    pinned = {shard: node for shard, node in (wanted or {}).items() if node in nodes and shard < shards}
    where = pinned | {shard: node for shard, node in placed.items() if node in nodes and shard not in pinned}
    load = Counter(dict.fromkeys(nodes, 0))
    load.update(where.values())

    def emptiest() -> str:
        return min(nodes, key=lambda node: load[node])

    for shard in range(shards):
        if shard not in where:
            where[shard] = emptiest()
            load[where[shard]] += 1
    for shard in range(shards):
        if shard not in pinned and load[where[shard]] - load[emptiest()] > 1:
            load[where[shard]] -= 1
            where[shard] = emptiest()
            load[where[shard]] += 1
    return dict(sorted(where.items()))
