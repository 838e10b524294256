"""`recrawl alert`: alert rules: added, tried on what is recorded, tested, removed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, as_json, note, repository, say, table
from recrawl.errors import UnknownName, UsageError
from recrawl.parameters import AlertConditions

if TYPE_CHECKING:
    from recrawl.repository.alerts.trial import AlertTrial
    from recrawl.repository.repository import Repository
    from recrawl.settings import Alert

_ACTIONS = ("list", "add", "try", "test", "values", "send", "remove")
_SHOWN = 20


@example("Example: recrawl alert add price feed --page https://example.org/shop --selector .price --when 'below 100'")
def alert(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(help="list, add, try, test, values, send or remove.")] = "list",
    name: Annotated[str, typer.Argument(help="Name of the rule.")] = "",
    target: Annotated[
        str,
        typer.Argument(
            help="For 'add': feed, the URL of a webhook, smtp://mail.example.org/?to=me@example.org, or an Apprise URL."
        ),
    ] = "",
    json: AsJson = False,
    **conditions: Unpack[AlertConditions],
) -> None:
    """Be told of changes by mail, webhook, chat or feed: an update that meets all conditions of a rule is sent.

    'try' says which alerts a rule would have sent for the changes that are recorded: of a rule that is stored, or of
    the conditions that are given. 'test' sends a test message, 'values' lists what the chosen elements said over time.
    'watch', 'run' and 'serve' send alerts by themselves; 'send' sends those of new visits now.
    """
    if action not in _ACTIONS:
        raise UnknownName("action of alert", action, _ACTIONS)
    if action in ("add", "test", "values", "remove") and not name:
        raise UsageError(f"name the rule: recrawl alert {action} NAME" + " TARGET" * (action == "add"))
    given: Any = {key: value for key, value in conditions.items() if value not in (None, "", False, 0.0)}
    with repository(ctx) as repo:
        if action == "list":
            _list(repo.alerts(), json=json)
        elif action == "add":
            if not target:
                raise UsageError("say where alerts go: recrawl alert add NAME TARGET")
            repo.put_alert(name=name, target=target, **given)
            trial = repo.try_alert(name=name, **given)
            _tell(trial, json=json, saved=name)
        elif action == "try":
            rule = asdict(_rule(repo, name)) if name else {"name": "trial", "target": "feed"}
            _tell(repo.try_alert(**{**rule, "outcomes": list(rule.get("outcomes", ())), **given}), json=json)
        elif action == "test":
            repo.test_alert(name=name)
            say(f"sent a test message of {name}")
        elif action == "values":
            _values(repo, _rule(repo, name), json=json)
        elif action == "send":
            repo.deliver_all()
        else:
            repo.remove_alert(name=name)
            say(f"removed the alert {name}")


def _rule(repo: Repository, name: str) -> Alert:
    rule = next((rule for rule in repo.alerts() if rule.name == name), None)
    if rule is None:
        raise UnknownName("alert", name, [rule.name for rule in repo.alerts()])
    return rule


def _list(rules: list[Alert], *, json: bool) -> None:
    rows = [{**asdict(rule), "secret": "", "outcomes": list(rule.outcomes)} for rule in rules]
    if json:
        as_json([{name: value for name, value in row.items() if name != "secret"} for row in rows])
        return
    words = ("site", "page", "tag", "path", "selector", "ignore", "text", "when", "change", "digest", "quiet")
    table(
        (
            {
                "name": row["name"],
                "target": str(row["target"]).partition("?")[0],
                "what": ", ".join(f"{word} {row[word]}" for word in words if row[word]) or "every update",
            }
            for row in rows
        ),
        {"name": "name", "target": "target", "what": "conditions"},
    )


def _tell(trial: AlertTrial, *, json: bool, saved: str = "") -> None:
    if json:
        as_json(asdict(trial))
        return
    if saved:
        say(f"saved the alert {saved}")
    times = "once" if len(trial.alerts) == 1 else f"{len(trial.alerts):,} times"
    if trial.looked:
        say(f"for the last {trial.looked:,} recorded changes it would have alerted {times}" + ":" * bool(trial.alerts))
    else:
        say("no change is recorded yet that it could be tried on")
    for alert in trial.alerts[:_SHOWN]:
        said = f"{alert.before} → {alert.after}" if alert.before and alert.after else alert.quote
        say(f"  {alert.at[:16].replace('T', ' ')}Z  {alert.outcome:<8} {alert.url}  {' '.join(said.split())[:80]}")
    if len(trial.alerts) > _SHOWN:
        note(f"and {len(trial.alerts) - _SHOWN:,} more")


def _values(repo: Repository, rule: Alert, *, json: bool) -> None:
    from recrawl.repository.alerts.trial import name_of_value  # lazy: loads what parses pages

    if not rule.page:
        raise UsageError(f"the alert {rule.name} is not about one page; values are listed for rules with --page")
    rows = [
        asdict(row) for row in repo.watched_values(url=rule.page, selector=rule.selector, words=name_of_value(rule))
    ]
    if json:
        as_json(rows)
        return
    table(
        (
            {**row, "at": row["at"][:19] + "Z", "number": "" if row["number"] is None else f"{row['number']:g}"}
            for row in rows
        ),
        {"at": "since", "number": ">number", "text": "text"},
    )
