"""`recrawl policies`: list the policies."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from recrawl.choose import POLICIES, kind_of, parameters
from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.plugins import found

EXAMPLE = "Example: recrawl policies --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the policies: purpose, parameters with defaults, and source."""
    # Plug-ins that cannot be loaded are in the list of `recrawl plugins`, with the reason.
    usable = [plugin.name for plugin in found() if plugin.group == "policies" and not plugin.problem]
    added = {name: kind for name in usable if (kind := kind_of(name))}
    # Only the lab knows the future.
    kinds: dict[str, type[Any]] = {**POLICIES, **added, Clairvoyant.name: Clairvoyant}
    rows = [
        {
            "name": name,
            "what": (inspect.getdoc(kind) or "").partition("\n")[0],
            "parameters": parameters(name) if kind is not Clairvoyant else {},
            "needs": sorted(kind.needs),
            "source": kind.source,
        }
        for name, kind in kinds.items()
    ]
    if json:
        as_json(rows)
        return
    shown = ({**row, "parameters": ", ".join(f"{k}={v}" for k, v in row["parameters"].items())} for row in rows)
    table(shown, {"name": "policy", "parameters": "parameters", "what": "what it does", "source": "source"})
