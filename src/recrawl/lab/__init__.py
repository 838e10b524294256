"""The lab: replay the histories of web sites under a policy, and measure what it finds.

    history = History.read("sites/")
    result = replay(history, policy="shock", budget=0.01, cycle="1d")
    result.change_ratio

Nothing here depends on the current time or on unseeded random numbers; both come in as arguments.

- `api`: `replay` and `compare` for programs
- `formats`: importers (Archive Parquet, WARC, git, CDX listings), and the facts read from their pages
- `histories`: histories as columns; definitions of change, page weights, clusters
- `replays`: the replay of a history under a policy, its metrics, and the clairvoyant bound
- `predict`: change prediction, compared with published results
- `experiments`: the experiments of the papers that recrawl reproduces, one folder each
- `synth`: a generator of synthetic web sites
- `timelapse`: a web server that serves an archive as of any time
- `extraction`: the main content of pages whose sites are not known
- `labels`: given changes judged at every level, to compare with labels
- `charts`: charts from rows, and the chart of `recrawl lab compare`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.lab.api import ReplayResult, compare, replay
    from recrawl.lab.histories.history import History

__all__ = ["History", "ReplayResult", "compare", "replay"]


def __getattr__(name: str) -> Any:
    if name == "History":
        from recrawl.lab.histories.history import History  # lazy: numpy and scipy load slowly

        return History
    if name in __all__:
        from recrawl.lab import api  # lazy: all policies load with it

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
