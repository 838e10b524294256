"""`recrawl plugins`: list the plug-ins."""

from __future__ import annotations

import typer

from recrawl import plugins
from recrawl.cli.terminal.output import AsJson, as_json, table

EXAMPLE = "Example: recrawl plugins --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001
    """List the plug-ins of installed packages: policies, fetchers, parsers, change levels and sinks.

    Each is imported, and the list says why one cannot be used.
    """
    rows = [plugin.as_dict() for plugin in plugins.found()]
    if json:
        as_json(rows)
    else:
        table(
            rows, {"group": "group", "name": "name", "package": "package", "version": "version", "problem": "problem"}
        )
