"""One process of a cluster without Ray: `python -m benchmarks.cluster_process STORE shard 3 FOLDER NODE SECONDS`.

`STORE coordinator SECONDS` is the coordinator. SECONDS are those of its lease.
"""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import layout_at
from recrawl.cluster.worker import ShardWorker


def main() -> None:
    store, what, *words = sys.argv[1:]
    layout, say = layout_at(store), partial(print, flush=True)
    process: ShardWorker | ClusterCoordinator
    if what == "coordinator":
        process = ClusterCoordinator(layout, seconds=float(words[0]), notify=say)
    else:
        process = ShardWorker(layout, int(words[0]), Path(words[1]), node=words[2], seconds=float(words[3]), notify=say)
    signal.signal(signal.SIGTERM, lambda *_: process.end())
    process.run()


if __name__ == "__main__":
    main()
