"""`recrawl access`: set how the crawler gets in to a site."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.repository.results.words import count

EXAMPLE = "Example: recrawl access https://example.org user=reader 'password=${EXAMPLE_PASSWORD}'"
_ALL = "all"

Site = Annotated[
    str, typer.Argument(metavar="[SITE]", help="A site, or 'all' for all others. Default: list the rules.")
]
Entries = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ENTRY=VALUE]...", help="Entries to set; repeat headers, cookies and login_fields."),
]
Clear = Annotated[list[str] | None, typer.Option(metavar="ENTRY", help="Remove this entry; repeatable.")]


def command(
    ctx: typer.Context,
    site: Site = "",
    entries: Entries = None,
    clear: Clear = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the rule of the site.")] = False,
    attempt: Annotated[bool, typer.Option("--try", help="Request SITE (any URL of it) with its rule.")] = False,
    json: AsJson = False,
) -> None:
    """List, set or try how the crawler gets in to sites: headers, cookies, passwords, form logins, proxies.

    The entries are listed in the settings reference. Secrets are references: ${NAME} for an environment variable,
    ${file:PATH} for a file that only you can read. They are looked up when a run begins, and are never stored, logged
    or exported.
    """
    if not site and (clear or remove or attempt):
        raise UsageError("name the site: recrawl access https://example.org ..., or 'all' for all others")
    with repository(ctx) as repo:
        where = "" if site == _ALL else site
        if attempt:
            _show(repo.try_access(site), json=json)
            return
        if remove:
            repo.remove_access(where)
        elif entries or clear:
            repo.set_access(where, clear=clear or (), **_parsed(entries or []))
        rules = [{name: value for name, value in asdict(rule).items() if value} for rule in repo.settings.access]
    _print(rules, site if entries or clear or remove else "", json=json)


def _parsed(entries: list[str]) -> dict[str, Any]:
    """Entries by name, as text; all values of an entry that is named several times."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        name, sign, value = entry.partition("=")
        if not sign:
            raise UsageError("write entries as ENTRY=VALUE, such as proxy=http://127.0.0.1:3128")
        found.setdefault(name.strip(), []).append(value)
    return found


def _show(found: Any, *, json: bool) -> None:
    if json:
        as_json(found.as_dict())
    else:
        leads = f", redirects to {found.location}" if found.location else f", {count(found.bytes, 'byte')}"
        say(f"{found.url}: {found.failure or f'HTTP {found.status}{leads}'}")
    if found.failure or found.status >= 400:
        raise typer.Exit(1)


def _print(rules: list[dict[str, Any]], changed: str, *, json: bool) -> None:
    if json:
        as_json(rules)
    elif changed:
        say(f"changed the access rule of {changed}")
    else:
        table(
            (
                {"site": rule.get("site", "all others"), "entry": name, "value": _text(value)}
                for rule in rules
                for name, value in rule.items()
                if name != "site"
            ),
            {"site": "site", "entry": "entry", "value": "value"},
        )


def _text(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
