"""Options and arguments of commands, from the declarations that the other surfaces have too (`recrawl.parameters`).

A command is a function: what is `Described` in its signature, or in a group after `**`, becomes an option or argument
with its help, range, choices and completion. Options of the command line alone are typer's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import typer

from recrawl.cli.terminal import completions
from recrawl.errors import UnknownName
from recrawl.operations import Given, evaluated, parameters_of

Parameter = inspect.Parameter
_MOST_SHOWN = 1e9
"""A range up to more than this says nothing to people; the command itself refuses what makes no sense."""


Command = TypeVar("Command", bound=Callable[..., Any])


def example(text: str) -> Callable[[Command], Command]:
    """Give a command the example that its help ends with."""

    def declare(function: Command) -> Command:
        function.example = text  # type: ignore[attr-defined]
        return function

    return declare


def as_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer reads it. Members of a group that were not given are not passed on."""
    described, names = parameters_of(function), vars(inspect.getmodule(function))
    own = inspect.signature(function).parameters.values()
    group = [name for name in described if name not in {it.name for it in own}]
    offered = [_plain(it, names) if it.name not in described else _offered(described[it.name])
               for it in own if it.kind is not Parameter.VAR_KEYWORD]  # fmt: skip
    offered[-1:-1] = [_offered(described[name]) for name in group]  # the last one is --json
    several = next((it.name for it in own if it.kind is Parameter.VAR_POSITIONAL), "")

    @wraps(function)
    def command(**values: Any) -> Any:
        for name, one in described.items():
            choices = one.about.choices
            if choices and all(choices) and values[name] not in choices:
                raise UnknownName(name, values[name], choices)
        for name in group:
            if values[name] is None:
                del values[name]
        if not several:
            return function(**values)
        return function(values.pop("ctx"), *values.pop(several), **values)

    command.__signature__ = inspect.Signature(offered)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def _plain(parameter: inspect.Parameter, names: dict[str, Any]) -> inspect.Parameter:
    """A parameter that typer understands as it is."""
    return parameter.replace(annotation=evaluated(parameter.annotation, names), kind=Parameter.KEYWORD_ONLY)


def _offered(given: Given) -> inspect.Parameter:
    about, kind, default = given.about, given.kind, given.default
    if given.many:
        default = list(default) if default else None
    text = f"{about.help.removesuffix('.')}; repeatable." if given.many and not about.argument else about.help
    more: dict[str, Any] = {
        "help": text,
        "metavar": about.metavar or (f"[{'|'.join(about.choices)}]" if all(about.choices) and about.choices else None),
    }
    if about.complete:
        more["autocompletion"] = getattr(completions, about.complete)
    if kind in (int, float) and not (kind is float and (about.most or 0) > _MOST_SHOWN):
        more |= {"min": about.least, "max": about.most}
    if not given.required and default is None:
        kind = kind | None
    if about.argument:
        info: Any = typer.Argument(**more)
    else:
        info = typer.Option(*_spellings(given, flag=bool in (kind, *get_args(kind))), **more)
    return Parameter(
        given.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if given.required else default,
        annotation=Annotated[kind, info],
    )


def _spellings(given: Given, *, flag: bool) -> tuple[str, ...]:
    word = given.about.option or f"--{given.name.replace('_', '-')}"
    if not flag:
        return tuple(word.split("/"))
    return (word if given.default is False or "/" in word else f"{word}/--no-{word[2:]}",)
