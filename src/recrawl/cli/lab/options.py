"""Options that the lab's commands share, and the folder of the lab's cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from recrawl.lab.replays.simulated_hints import SITEMAP_KINDS

Archives = Annotated[
    list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files, folders of Parquet files, or CDX listings.")
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy", metavar="P", help="A policy: round-robin, greedy(sample=20), or module:Class(args); repeatable."
    ),
]
Change = Annotated[
    str,
    typer.Option(
        help="What counts as a change: text, raw, content, significant, divergence:0.1 (share of words) or words:20."
    ),
]
Cycles = Annotated[int | None, typer.Option(min=1, help="Number of cycles. Default: to the end of the archives.")]
Skip = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Skip this much of each site's history, e.g. the 365d that a policy was tuned on."
    ),
]
Bytes = Annotated[
    str,
    typer.Option("--bytes", metavar="AMOUNT", help="Limit the bytes per cycle, e.g. 200MB; 0 is no limit."),
]
Discover = Annotated[str, typer.Option(help="How new pages are discovered: births (at once) or links.")]
AtStart = Annotated[
    float, typer.Option(min=0, max=1, help="Share of a cycle's visits made at its start; the rest is spread evenly.")
]
Failures = Annotated[float, typer.Option(min=0, max=1, help="Share of visits that fail.")]
Late = Annotated[float, typer.Option(min=0, max=1, help="Share of each batch whose outcomes come with a later one.")]
HintsFrom = Annotated[
    str,
    typer.Option(
        "--hints",
        metavar="SOURCE",
        help="Hints of the sites: a folder of files that say what sitemaps and feeds said, or a simulated sitemap: "
        f"sitemap:HOW, with HOW one of {', '.join(SITEMAP_KINDS)}.",
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        "--importance",
        metavar="KIND",
        help="Page weights for policies: even, pagerank, file:PATH or clicks:PATH.",
    ),
]
Costs = Annotated[str, typer.Option("--cost", help="Cost of a visit for policies: visit (all equal) or bytes.")]
Shards = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        help="Divide the pages by site into this many shards with one budget, as a cluster does; policies that cannot "
        "be split run on one.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ignore the cache: read and replay again.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes. Default: as many as pay, at most one per core.")
]


def cache_folder() -> Path:
    """The folder of cached archives and replays, which can be deleted at any time; `RECRAWL_CACHE` moves it."""
    named = os.environ.get("RECRAWL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "recrawl"
