"""`recrawl policies`: list the policies."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from recrawl.choose import POLICIES, parameters
from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.lab.replays.clairvoyant import Clairvoyant

EXAMPLE = "Example: recrawl policies --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the policies: purpose, parameters with defaults, and source."""
    kinds: dict[str, type[Any]] = {**POLICIES, Clairvoyant.name: Clairvoyant}  # only the lab knows the future
    rows = [
        {
            "name": name,
            "what": (inspect.getdoc(kind) or "").partition("\n")[0],
            "parameters": parameters(name) if name in POLICIES else {},
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
