"""`recrawl policies`."""

from __future__ import annotations

import inspect

import typer

from recrawl.choose import POLICIES, parameters
from recrawl.cli.output import AsJson, as_json, table

EXAMPLE = "Example: recrawl policies --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the policies: what each does, its parameters with their defaults, and where it comes from."""
    rows = [
        {
            "name": name,
            "what": (inspect.getdoc(kind) or "").partition("\n")[0],
            "parameters": parameters(name),
            "needs": sorted(kind.needs),
            "source": kind.source,
        }
        for name, kind in POLICIES.items()
    ]
    if json:
        as_json(rows)
        return
    shown = ({**row, "parameters": ", ".join(f"{k}={v}" for k, v in row["parameters"].items())} for row in rows)
    table(shown, {"name": "policy", "parameters": "parameters", "what": "what it does", "source": "source"})
