"""`recrawl policies`: list the policies."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table

EXAMPLE = "Example: recrawl policies --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the policies: purpose, parameters with defaults, and source."""
    from recrawl.choose import parameters, usable_policies  # lazy: the help does without
    from recrawl.lab.replays.clairvoyant import Clairvoyant  # lazy: the help does without

    # `recrawl plugins` lists those that cannot be loaded, with the reason. Only the lab knows the future.
    kinds: dict[str, type[Any]] = {**usable_policies(), Clairvoyant.name: Clairvoyant}
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
