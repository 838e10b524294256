"""`recrawl mcp`: answer an assistant over standard input and output."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from recrawl.cli.terminal.output import as_json
from recrawl.cli.terminal.session import repository
from recrawl.extras import require

EXAMPLE = "Example: recrawl mcp --write"


def command(
    ctx: typer.Context,
    write: Annotated[
        bool, typer.Option("--write", help="Offer the tools that add pages and request visits, too.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the entry for the settings of an assistant as JSON, and exit.")
    ] = False,
) -> None:
    """Answer an assistant over standard input and output (Model Context Protocol), until it closes them.

    The tools search the pages, read them as they are or were, compare versions, and tell what changed since the
    assistant last asked. Name this command in the settings of the assistant; it needs the extra 'mcp'. The service
    offers the same tools at /mcp.
    """
    require("mcp")
    from recrawl.cluster.opening import open_repository  # lazy: checked for the extra first
    from recrawl.mcp_server.server import serve_stdio  # lazy: needs the extra `mcp`

    with repository(ctx) as repo:
        folder = repo.folder.resolve()
    if json:
        words = ["-C", str(folder), "mcp", *(["--write"] if write else [])]
        as_json({"mcpServers": {folder.name: {"command": "recrawl", "args": words}}})
        return
    serve_stdio(partial(open_repository, folder), writing=write)
