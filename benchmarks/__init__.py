"""Speed and size, measured against other crawlers on this machine: `make bench`.

`web` is the site that all crawlers fetch, `measure` runs a command and measures its cost, `ours` and `peers` start each
crawler, `crawl` and `scale` are the benchmarks, `report` prints them. Compare figures only within one run: the speed of
the machine is not part of the result.
"""

import os

# As in the command: for small matrices, threads wait for each other longer than the work takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Installed programs have bytecode, and so have the peers: a source checkout must be allowed to write its own, or every
# command would compile each module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
