"""`recrawl lab serve`: archives over HTTP, at an adjustable time."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say
from recrawl.errors import UsageError
from recrawl.parameters import SITEMAP_KINDS
from recrawl.times import iso, moment, stamp

if TYPE_CHECKING:
    pass

_MOST_SITES = 20

Archives = Annotated[
    list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files, or folders of Parquet files.")
]


def serve_command(
    archives: Archives,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8080,
    speed: Annotated[float, typer.Option(help="Virtual seconds per real second.")] = 1.0,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start time of the clock: 2024-01-15, or 2d before the archive's end."),
    ] = None,
    latency: Annotated[float, typer.Option(min=0, help="Delay every response by this many seconds.")] = 0.0,
    lying_lastmod: Annotated[
        bool, typer.Option("--lying-lastmod", help="Claim that every page changed just now.")
    ] = False,
    no_validators: Annotated[
        bool, typer.Option("--no-validators", help="Send neither ETag nor Last-Modified.")
    ] = False,
    sitemap: Annotated[
        str, typer.Option(metavar="HOW", help=f"Accuracy of sitemap dates: {', '.join(SITEMAP_KINDS)}.")
    ] = "honest",
    json: AsJson = False,
) -> None:
    """Serve archives over HTTP on this machine, with a clock of adjustable speed. Ctrl-C stops it."""
    from recrawl.http_server import listen  # lazy: the help does without
    from recrawl.lab.formats.archive import Archive  # lazy: the help does without
    from recrawl.lab.timelapse import Clock, ServerOptions, serve  # lazy: the help does without
    from recrawl.lab.timelapse import app as timelapse  # lazy: the help does without

    if not math.isfinite(speed) or speed < 0:
        raise UsageError(f"invalid --speed {speed}: must be 0 or more")
    archive = Archive.open(archives)
    begin = archive.start if at is None else moment(at, archive.end)
    clock = Clock(begin, speed, time.monotonic)
    served = timelapse(archive, clock, ServerOptions(lying_lastmod, no_validators, latency, sitemap))
    bound = listen(port)
    number: int = bound.getsockname()[1]
    names = [served.addresses.base(site, number) + "/" for site in range(len(archive.sites))]
    here = f"http://127.0.0.1:{number}/"
    if json:
        as_json({"address": here, "sites": names, "clock": f"{here}-/clock", "now": iso(begin), "speed": speed})
    else:
        say(f"serving {len(archive):,} pages on {len(names):,} sites at {here}")
        _say_sites(names)
        say(f"clock: {stamp(begin)}, {speed:g} virtual seconds per second; to advance it by a day:")
        say(f"  curl {here}-/clock -d '{{\"advance\": 86400}}'")
    serve(served, bound)
    note("stopped")


def _say_sites(names: list[str]) -> None:
    for name in names[:_MOST_SITES]:
        say(f"  {name}")
    if len(names) > _MOST_SITES:
        say(f"  ... and {len(names) - _MOST_SITES:,} more, listed there")
