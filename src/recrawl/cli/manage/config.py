"""`recrawl config`: list, show or change settings."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.session import repository
from recrawl.errors import UnknownName

EXAMPLE = "Example: recrawl config delay 2.5"


def command(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(autocompletion=completions.settings, help="A setting. Default: list all of them.")
    ] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value; write lists as a,b,c.")] = None,
    json: AsJson = False,
) -> None:
    """List, show or change settings. They are stored in recrawl.toml, which you can also edit."""
    from recrawl.settings import SETTINGS, parse_value  # lazy: the help does without

    names = [setting.name for setting in SETTINGS]
    if name is not None and name not in names:
        raise UnknownName("setting", name, names)
    with repository(ctx) as repo:
        if name is not None and value is not None:
            repo.configure(**{name: parse_value(name, value)})
        values = repo.settings
    rows = [
        {"name": setting.name, "value": values[setting.name], "help": setting.help}
        for setting in SETTINGS
        if name in (None, setting.name)
    ]
    if json:
        as_json(rows)
    elif name is not None:
        say(_text(rows[0]["value"]))
    else:
        table(
            ({**row, "value": _text(row["value"])} for row in rows),
            {"name": "name", "value": "value", "help": "meaning"},
        )


def _text(value: object) -> str:
    """A value in the form that `recrawl config` accepts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else str(value)
