"""`recrawl serve`: scheduler, dashboard and HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError

EXAMPLE = "Example: recrawl serve --port 8700"

Hosts = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Additional host name that browsers may use; repeatable.")
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(metavar="ADDRESS", help="IP address or network of a proxy that sets X-Forwarded-*; repeatable."),
]


def command(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="IP address to listen on; outside loopback, clients need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8700,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token that clients must send.")
    ] = None,
    allow_host: Hosts = None,
    trusted_proxy: Proxies = None,
    schedule: Annotated[bool, typer.Option(help="Run cycles on schedule.")] = True,
    mcp_writes: Annotated[
        bool, typer.Option("--mcp-writes", help="Let assistants at /mcp add pages and request visits.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Run the service: scheduled cycles, a dashboard, an HTTP API. Ctrl-C stops it cleanly.

    The settings 'every', 'budget' and 'policy' control the cycles and can be changed while the service runs. Outside
    loopback and behind a trusted proxy, a token is created, printed once and stored in the repository, unless
    --token-file names one.
    """
    from recrawl.repository.plugin_checks import check_plugins  # lazy: the help does without

    with repository(ctx) as repo:
        folder = repo.folder
        check_plugins(repo.options(), repo.settings)  # refuse invalid settings before anything starts
    from recrawl.serve import service as running  # lazy: starlette and uvicorn load slowly
    from recrawl.serve.access import sessions  # lazy: only if a token is needed

    token, fresh = _token(token_file), False
    if not token and (trusted_proxy or not running.is_loopback(host)):
        token, fresh = sessions.access_token(folder)
    plan = running.ServiceConfig(
        host=host,
        port=port,
        token=token,
        names=tuple(allow_host or ()),
        proxies=tuple(trusted_proxy or ()),
        schedule=schedule,
        mcp_writes=mcp_writes,
        log=None if json else say,
    )
    service = running.Service(folder, plan)

    service.foreground(lambda: _announce(service, token if fresh else "", json=json))
    note("stopped")


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise UsageError(f"{file} is empty: write a token of at least 16 characters into it")
    return token


def _announce(service: Any, fresh: str, *, json: bool) -> None:
    from recrawl.serve.cycle_log import describe_plan, plan  # lazy: starlette loads slowly

    planned = plan(service.context)
    if json:
        addresses = {"address": service.url, "api": f"{service.url}api/v1/"}
        as_json({**addresses, **({"token": fresh} if fresh else {}), **planned})
        return
    say(f"serving at {service.url}; the API is at {service.url}api/v1/")
    say(describe_plan(planned))
    if fresh:
        say(f"token (stored in serve.token, not shown again): {fresh}")
