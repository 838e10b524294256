"""Plug-ins that settings name: checked before a run, so that a broken one stops no command that only reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recrawl import plugins
from recrawl.crawl.options import CrawlOptions
from recrawl.errors import UnknownName
from recrawl.fetch.fetcher import Fetcher, libcurl
from recrawl.settings import Settings


def check_plugins(options: CrawlOptions, values: Settings) -> None:
    """Raise `UsageError` if a change level or fetcher that the settings name cannot be used."""
    for level in options.levels:
        level.check()
    _fetcher_kind(values["fetcher"])


def make_fetcher(name: str, **options: Any) -> Fetcher:
    """What downloads the pages of a run: libcurl, or a plug-in, which is loaded now."""
    return _fetcher_kind(name)(**options)


def _fetcher_kind(name: str) -> Callable[..., Fetcher]:
    kind: Callable[..., Fetcher] | None = libcurl if name == "http" else plugins.load("fetchers", name)
    if kind is None:
        raise UnknownName("fetcher", name, ["http", *plugins.names("fetchers")])
    return kind
