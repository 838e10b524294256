"""`recrawl serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.output import AsJson, as_json, note, say
from recrawl.cli.session import folder_of, load
from recrawl.errors import UsageError

EXAMPLE = "Example: recrawl serve --port 8700"


def command(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="The address to listen on; beyond loopback a token is asked for.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8700,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the token that clients must show.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which browsers reach us; repeatable.")
    ] = None,
    schedule: Annotated[bool, typer.Option(help="Whether cycles are run by the clock.")] = True,
    json: AsJson = False,
) -> None:
    """Run the service: cycles by the clock, a dashboard, an HTTP API. Ctrl-C stops it cleanly.

    The period is the setting 'every', the budget and the policy are settings too; all of them can be changed while it
    runs. Beyond loopback a token is made, printed once and kept in the repository, unless --token-file names one.
    """
    folder = folder_of(ctx)
    load(folder)  # complain before anything is begun
    from recrawl.serve import service as running  # lazy: web frameworks load slowly
    from recrawl.serve import sessions  # lazy: loads slowly

    token, fresh = _token(token_file), False
    if not token and not running.is_loopback(host):
        token, fresh = sessions.access_token(folder)
    plan = running.ServiceConfig(host=host, port=port, token=token, names=tuple(allow_host or ()), schedule=schedule)
    service = running.Service(folder, plan)

    def ready() -> None:
        _tell(service, token if fresh else "", json=json)

    service.foreground(ready)
    note("stopped")


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise UsageError(f"{file} holds no token: put one of at least 16 characters into it")
    return token


def _tell(service: Any, fresh: str, *, json: bool) -> None:
    if json:
        as_json({"address": service.url, "api": f"{service.url}api/v1/", **({"token": fresh} if fresh else {})})
        return
    say(f"serving at {service.url}; the API is at {service.url}api/v1/")
    if fresh:
        say(f"the token, which is shown only now and kept in serve.token: {fresh}")
