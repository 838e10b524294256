"""`recrawl config`: list, show or change settings."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.choose import make_policy
from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.session import folder_of, load
from recrawl.errors import UnknownName
from recrawl.record.storage import SETTINGS as FILE
from recrawl.settings import SETTINGS, parse_value, write_value

EXAMPLE = "Example: recrawl config delay 2.5"


def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="A setting. Default: list all of them.")] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value; write lists as a,b,c.")] = None,
    json: AsJson = False,
) -> None:
    """List, show or change settings. They are stored in recrawl.toml, which you can also edit."""
    folder = folder_of(ctx)
    if name is not None and value is not None:
        parsed = parse_value(name, value)
        if name == "policy":
            make_policy(parsed)  # refuses an invalid policy
        write_value(folder / FILE, name, parsed)
    values = load(folder)
    if name is not None and name not in {setting.name for setting in SETTINGS}:
        raise UnknownName("setting", name, (setting.name for setting in SETTINGS))
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
