"""`recrawl sink`: deliver every change to another system."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.session import Stop, repository
from recrawl.errors import UnknownName, UsageError
from recrawl.repository.repository import Repository
from recrawl.repository.results.words import count

EXAMPLE = "Example: recrawl sink add search opensearch https://search.example:9200/pages --secret '${SEARCH_KEY}'"
_ACTIONS = ("add", "list", "remove", "run")
_COLUMNS = {"name": "name", "kind": "kind", "target": "target", "waiting": ">waiting", "problem": "problem"}


def command(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="[ACTION]", help="add, list, remove or run.")] = "list",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the sink; 'run' without one runs all.")] = "",
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="opensearch, webhook, postgres, markdown, chunks, or of a plug-in.")
    ] = "",
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help="A URL, or a folder or file.")] = "",
    site: Annotated[str, typer.Option(metavar="SITE", help="Only changes of this site.")] = "",
    secret: Annotated[
        str,
        typer.Option(metavar="REFERENCE", help="Token or password: '${NAME}' of the environment, or '${file:PATH}'."),
    ] = "",
    from_now: Annotated[bool, typer.Option("--from-now", help="Skip what is stored already.")] = False,
    json: AsJson = False,
) -> None:
    """Deliver every change to a sink: at least once, the changes of a page in order, resumed after a crash.

    'run' and 'serve' deliver after each cycle; 'sink run' delivers now. A failed delivery is tried again next time,
    from where it stopped. Secrets are referred to, never stored or shown.
    """
    _check(action, name, kind, target)
    with repository(ctx) as repo:
        if action == "add":
            repo.add_sink(name, kind, target, site=site, secret=secret, from_now=from_now)
        elif action == "remove":
            repo.remove_sink(name)
        sent = _run(repo, name) if action == "run" else {}
        rows = [state.as_dict() | ({"sent": sent[state.rule.name]} if sent else {}) for state in repo.sinks()
                if not sent or state.rule.name in sent]  # fmt: skip
    if json:
        as_json(rows)
    elif action == "list":
        table(rows, _COLUMNS)
    elif action == "run":
        for done, number in sent.items():
            say(f"{done}: {count(number, 'change')} delivered")
    else:
        say(f"{'added' if action == 'add' else 'removed'} the sink {name}")


def _check(action: str, name: str, kind: str, target: str) -> None:
    """Raise `UsageError` unless the action has what it needs."""
    if action not in _ACTIONS:
        raise UnknownName("action of sink", action, _ACTIONS)
    if action == "add" and not (name and kind and target):
        raise UsageError("name the sink, its kind and its target: recrawl sink add NAME KIND TARGET")
    if action == "remove" and not name:
        raise UsageError("name the sink: recrawl sink remove NAME")


def _run(repo: Repository, name: str) -> dict[str, int]:
    """Deliver to one sink or to all; the number of changes of each."""
    names = [name] if name else [state.rule.name for state in repo.sinks()]
    stop = Stop()
    return {one: repo.deliver(one, stop=stop) for one in names}
