"""`recrawl lab synth`: generate a web as an archive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Unpack

import typer
from rich.progress import TextColumn, TimeElapsedColumn

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.progress import progress
from recrawl.errors import UsageError
from recrawl.lab.synth import PARAMETERS, SyntheticWorld, hosts, write
from recrawl.parameters import Synthesis
from recrawl.times import iso, stamp


def _list_parameters(show: bool) -> None:
    if show:
        for name, default, text in PARAMETERS:
            say(f"{name}={default}\n    {text}")
        raise typer.Exit


def synth_command(
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The archive to write.")],
    parameters: Annotated[
        bool, typer.Option("--parameters", callback=_list_parameters, is_eager=True, help="List all parameters.")
    ] = False,
    json: AsJson = False,
    **asked: Unpack[Synthesis],
) -> None:
    """Generate a web whose pages appear, change and disappear, as an archive."""
    del parameters
    named = _pairs(asked.pop("set", []))
    world = SyntheticWorld.of({name: str(value) for name, value in asked.items()} | named)
    if not out.parent.is_dir():
        raise UsageError(f"cannot write {out}: folder {out.parent} does not exist")
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


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"invalid --set {text}: use NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _write(world: SyntheticWorld, out: Path) -> int:
    with progress(TextColumn("{task.description} {task.fields[detail]}"), TimeElapsedColumn()) as bars:
        task = bars.add_task("writing", total=world.sites, detail="")

        def on_site(done: int, rows: int) -> None:
            site = min(done + 1, world.sites)
            bars.update(task, completed=done, detail=f"site {site:,} of {world.sites:,}, {rows:,} versions")

        return write(world, out, on_site)
