"""Speed and size, measured against other crawlers on this machine: `make bench`.

`web` is the site that everybody crawls, `measure` runs a command and adds up what it cost, `ours` and
`peers` say how each crawler is started, `crawl` and `scale` are the benchmarks, `report` prints them.
Figures are only compared with figures of the same run: a machine's speed is not part of the result.
"""

import os

# As the command does it: threads that share a small matrix wait for each other longer than it takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
