"""Page weights of a history, for weighted measures and for policies that use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recrawl.discover.urls import UrlRules, canonical, keys
from recrawl.discover.weight_files import read_weights, split_base
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.learn.value import kind_of, match_weights, normalise


def check_importance(importance: str) -> str:
    """The kind of an importance: even, pagerank, sitemap, file or clicks; raises `UsageError` for an invalid one."""
    return kind_of(importance)[0]


def with_importance(history: History, importance: str) -> tuple[History, str]:
    """Return the history with these weights, and a description of the weights that were ignored.

    `even` and `pagerank` keep the history's own weights, which are the PageRank of its links.
    """
    kind, path = kind_of(importance)
    if kind in ("even", "pagerank"):
        if kind == "pagerank" and history.weight is None:
            raise UsageError("this archive has no links, so it has no PageRank; use --importance file:PATH")
        return history, ""
    if kind == "sitemap":
        raise UsageError("archives have no sitemap priorities; use --importance pagerank, file:PATH or clicks:PATH")
    rules = UrlRules()
    path, base = split_base(path)
    keys_given, weight, lost = read_weights(Path(path), rules, clicks=kind == "clicks", base=base)
    pages = keys([canonical(url, rules=rules) or url for url in history.urls])
    raw, unknown = match_weights(pages, keys_given, weight, add=kind == "clicks", missing=1.0)
    limited, ignored = normalise(raw)
    ignored = replace(ignored, unreadable=ignored.unreadable + lost, unknown=unknown)
    return replace(history, weight=limited), str(ignored)
