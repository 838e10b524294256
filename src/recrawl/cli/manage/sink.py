"""`recrawl sink`: deliver every change to another system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.cli.terminal.session import repository
from recrawl.cli.terminal.signals import Stop
from recrawl.errors import UnknownName, UsageError
from recrawl.repository.results.words import count

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

EXAMPLE = "Example: recrawl sink add search opensearch https://search.example:9200/pages --secret '${SEARCH_KEY}'"
_ACTIONS = ("add", "list", "remove", "run", "parked", "retry", "drop")
_COLUMNS = {"name": "name", "kind": "kind", "target": "target", "waiting": ">waiting", "parked": ">parked"} | {
    "problem": "problem"
}
_PARKED = {"number": ">number", "receiver": "receiver", "since": "since", "outcome": "outcome", "url": "url"} | {
    "tries": ">tries",
    "error": "error",
}


def command(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="add, list, remove, run, parked, retry or drop.")
    ] = "list",
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the sink; 'run' and 'parked' without one take all.")
    ] = "",
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="opensearch, webhook, postgres, markdown, chunks, or of a plug-in.")
    ] = "",
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help="A URL, or a folder or file.")] = "",
    site: Annotated[str, typer.Option(metavar="SITE", help="Only changes of this site.")] = "",
    secret: Annotated[
        str,
        typer.Option(metavar="REFERENCE", help="Token or password: '${NAME}' of the environment, or '${file:PATH}'."),
    ] = "",
    max_body: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Send a change without its text if its body is larger; 0: no limit. Default: webhook 1MB, "
            "opensearch 10MB, others none.",
        ),
    ] = "",
    from_now: Annotated[bool, typer.Option("--from-now", help="Skip what is stored already.")] = False,
    number: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="For 'retry' and 'drop': a parked change; may be given several times."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="For 'retry' and 'drop': all parked changes of NAME.")] = False,
    json: AsJson = False,
) -> None:
    """Deliver every change to a sink: at least once, the changes of a page in order, resumed after a crash.

    'run' and 'serve' deliver by themselves; 'sink run' delivers now. What fails is tried again with growing pauses. A
    change that the receiver refuses, or that failed 12 times, is parked and holds up nothing: 'parked' lists those of
    sinks and alerts, 'retry' sends them again, 'drop' drops them. Secrets are referred to, never stored or shown.
    """
    numbers = number or []
    _check(action, name, kind, target, chosen=bool(numbers) or every)
    with repository(ctx) as repo:
        if action == "parked":
            _parked(repo, name, as_rows=json)
        elif action in ("retry", "drop"):
            done = (repo.retry_parked if action == "retry" else repo.drop_parked)(name, numbers)
            word = "to be sent again" if action == "retry" else "dropped"
            if json:
                as_json({"changes": done})
            else:
                say(f"{count(done, 'change')} {word}")
        elif action == "run":
            _run(repo, name, as_rows=json)
        else:
            if action == "add":
                repo.add_sink(name, kind, target, site=site, secret=secret, max_body=max_body, from_now=from_now)
            elif action == "remove":
                repo.remove_sink(name)
            rows = [state.as_dict() for state in repo.sinks()]
            if json:
                as_json(rows)
            elif action == "list":
                table(rows, _COLUMNS)
            else:
                say(f"{'added' if action == 'add' else 'removed'} the sink {name}")


def _check(action: str, name: str, kind: str, target: str, *, chosen: bool) -> None:
    """Raise `UsageError` unless the action has what it needs."""
    if action not in _ACTIONS:
        raise UnknownName("action of sink", action, _ACTIONS)
    if action == "add" and not (name and kind and target):
        raise UsageError("name the sink, its kind and its target: recrawl sink add NAME KIND TARGET")
    if action == "remove" and not name:
        raise UsageError("name the sink: recrawl sink remove NAME")
    if action in ("retry", "drop") and not (name and chosen):
        raise UsageError(f"say which changes: recrawl sink {action} NAME --number NUMBER, or --all")


def _parked(repo: Repository, name: str, *, as_rows: bool) -> None:
    rows = [parked.as_dict() for parked in repo.parked(name)]
    if as_rows:
        as_json(rows)
    else:
        table(rows, _PARKED)


def _run(repo: Repository, name: str, *, as_rows: bool) -> None:
    """Deliver to one sink or to all, side by side; end with code 1 if something could not be delivered."""
    from recrawl.repository.sinks.delivery import failure, run  # lazy: the help does without

    names = [name] if name else [state.rule.name for state in repo.sinks()]
    stop = Stop()
    done = run(repo, names, stop, at_once=True)
    if as_rows:
        states: list[dict[str, Any]] = [state.as_dict() for state in repo.sinks() if state.rule.name in done]
        as_json([row | {"sent": done[row["name"]].delivered} for row in states])
    else:
        for one, counts in done.items():
            say(f"{one}: {count(counts.delivered, 'change')} delivered")
    failed = {one: counts for one, counts in done.items() if counts.error is not None}
    for one, counts in failed.items():
        note(f"recrawl: sink {one}: {failure(one, counts)}")
    if failed:
        raise typer.Exit(max(counts.error.exit_code for counts in failed.values() if counts.error))
    stop.end(finished=False)
