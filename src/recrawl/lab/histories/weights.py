"""How much the pages of a history matter, as somebody says; the lab measures by it, and may tell policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recrawl.discover.urls import UrlRules, canonical, keys
from recrawl.discover.weight_files import read_weights
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.learn.value.importance import kind_of, match_weights, normalise


def with_importance(history: History, importance: str) -> tuple[History, str]:
    """The history with these weights, and what of them was ignored.

    `even` and `pagerank` leave a history its own weights, which come from its links.
    """
    kind, path = kind_of(importance)
    if kind in ("even", "pagerank"):
        if kind == "pagerank" and history.weight is None:
            raise UsageError("this archive has no links, and so no PageRank: give weights with --importance file:PATH")
        return history, ""
    rules = UrlRules()
    said, weight, lost = read_weights(Path(path), rules, clicks=kind == "clicks")
    pages = keys([canonical(url, rules=rules) or url for url in history.urls])
    raw, unknown = match_weights(pages, said, weight, add=kind == "clicks", missing=1.0)
    calm, ignored = normalise(raw)
    ignored = replace(ignored, unreadable=ignored.unreadable + lost, unknown=unknown)
    return replace(history, weight=calm), str(ignored)
