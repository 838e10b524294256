"""`recrawl lab`: replay policies on histories, repeat published experiments, generate and serve living webs."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TextColumn, TimeElapsedColumn

from recrawl.cli.lab_predict import predict_command
from recrawl.cli.lab_reproduce import reproduce
from recrawl.cli.lab_run import compare_command, run_command
from recrawl.cli.output import AsJson, as_json, note, say
from recrawl.cli.progress import progress
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.simulated_hints import HOWS
from recrawl.lab.synth import KINDS, PARAMETERS, SyntheticWorld, hosts, write
from recrawl.lab.timelapse import Clock, ServerOptions, serve
from recrawl.lab.timelapse import app as timelapse
from recrawl.lab.timelapse.server import listen
from recrawl.repository.times import iso, moment, stamp

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("run", epilog="Example: recrawl lab run world.parquet --policy round-robin --policy greedy --budget 0.02")(
    run_command
)
app.command(
    "compare",
    epilog="Example: recrawl lab compare world.parquet --policy random --policy clairvoyant --budget 40 --chart c.svg",
)(compare_command)
app.command(epilog="Example: recrawl lab reproduce q-example")(reproduce)
app.command("predict", epilog="Example: recrawl lab predict daily.parquet --method 2d --days 10")(predict_command)

_DEFAULT = SyntheticWorld()
_SHOWN_SITES = 20
_SET = "Any parameter, as NAME=VALUE; repeatable. --parameters lists them."


def _list_parameters(wanted: bool) -> None:
    if wanted:
        for name, default, text in PARAMETERS:
            say(f"{name}={default}\n    {text}")
        raise typer.Exit


@app.command(epilog="Example: recrawl lab synth world.parquet --sites 3 --pages 100 --days 30 --set births=0.02")
def synth(
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The archive to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")] = _DEFAULT.seed,
    sites: Annotated[int, typer.Option(help="Number of sites.")] = _DEFAULT.sites,
    pages: Annotated[int, typer.Option(help="Pages of a site at the start.")] = _DEFAULT.pages,
    days: Annotated[float, typer.Option(help="How long the world is watched.")] = _DEFAULT.days,
    kinds: Annotated[
        str, typer.Option(help=f"Kinds of site with weights, as news=2,blog=1, out of {', '.join(KINDS)}.")
    ] = _DEFAULT.kinds,
    changed: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=_SET)] = None,
    parameters: Annotated[
        bool, typer.Option("--parameters", callback=_list_parameters, is_eager=True, help="List all parameters.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Generate a living web: pages that are born, change and go, as an archive."""
    del parameters
    given = {"seed": str(seed), "sites": str(sites), "pages": str(pages), "days": str(days), "kinds": kinds}
    world = SyntheticWorld.of(given | _pairs(changed or []))
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist")
    begun = time.monotonic()
    rows = _write(world, out)
    made = {
        "archive": str(out),
        "sites": [host for host, _ in hosts(world)],
        "rows": rows,
        "start": iso(world.start),
        "end": iso(world.end),
        "bytes": out.stat().st_size,
        "seconds": round(time.monotonic() - begun, 3),
    }
    if json:
        as_json(made)
        return
    say(f"wrote {out}: {rows:,} versions on {world.sites:,} sites, {out.stat().st_size / 1e6:,.1f} MB")
    say(f"from {stamp(world.start)} to {stamp(world.end)}; seed {world.seed}")


def _pairs(changed: list[str]) -> dict[str, str]:
    pairs = {}
    for part in changed:
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"--set {part} has no value: write --set NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _write(world: SyntheticWorld, out: Path) -> int:
    columns = (
        TextColumn("{task.description} {task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with progress(*columns) as bars:
        task = bars.add_task("writing", total=world.sites, told="")

        def told(done: int, rows: int) -> None:
            site = min(done + 1, world.sites)
            bars.update(task, completed=done, told=f"site {site:,} of {world.sites:,}, {rows:,} versions")

        return write(world, out, told)


@app.command("serve", epilog="Example: recrawl lab serve world.parquet --port 8080 --speed 3600 --at 2024-01-15T12:00")
def serve_command(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files, or folders of them.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    speed: Annotated[float, typer.Option(help="Virtual seconds in a real one.")] = 1.0,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Where the clock starts: 2024-01-15, or 2d before the archive's end."),
    ] = None,
    latency: Annotated[float, typer.Option(min=0, help="Seconds that every answer waits.")] = 0.0,
    lying_lastmod: Annotated[
        bool, typer.Option("--lying-lastmod", help="Claim that every page changed just now.")
    ] = False,
    no_validators: Annotated[
        bool, typer.Option("--no-validators", help="Send neither ETag nor Last-Modified.")
    ] = False,
    sitemap: Annotated[
        str, typer.Option(metavar="HOW", help=f"Which dates sitemaps name: {', '.join(HOWS)}.")
    ] = "honest",
    json: AsJson = False,
) -> None:
    """Serve archives over HTTP on this machine, at a time that runs as fast as you like. Ctrl-C stops it."""
    if not math.isfinite(speed) or speed < 0:
        raise UsageError(f"--speed is a number from 0 up, not {speed}")
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
        for name in names[:_SHOWN_SITES]:
            say(f"  {name}")
        if len(names) > _SHOWN_SITES:
            say(f"  ... and {len(names) - _SHOWN_SITES:,} more, listed there")
        say(f"the clock shows {stamp(begin)} and runs {speed:g} times as fast as real time; turn it with")
        say(f"  curl {here}-/clock -d '{{\"advance\": 86400}}'")
    serve(served, bound)
    note("stopped")
