"""`recrawl add`: add sites or pages to track."""

from __future__ import annotations

from typing import Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Clear, SiteRules, StartUrl

EXAMPLE = "Example: recrawl add https://example.org/docs/ --include '/docs/*' --limit 500"


def command(
    ctx: typer.Context, *urls: StartUrl, clear: Clear = (), json: AsJson = False, **rules: Unpack[SiteRules]
) -> None:
    """Add sites or pages to track, or change their rules.

    The options are stored with the URL; add it again to change those that you name. A page never loosens the rules of
    its site: add the site again to change them.
    """
    with repository(ctx) as repo:
        added = repo.add(*urls, clear=clear or (), **rules)
    if json:
        as_json([addition.as_dict() for addition in added])
        return
    for addition in added:
        say(str(addition))
