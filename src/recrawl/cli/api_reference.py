"""Generates the API reference from signatures and docstrings, for `recrawl.cli.reference`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_origin

import recrawl
from recrawl import errors, lab, testing
from recrawl.operations import described_fields, evaluated, parameters_of
from recrawl.repository import checking
from recrawl.repository.explain import anchors, noise, prediction, rates
from recrawl.repository.results import difference, rows, runs, values

_INTRODUCTION = """\
The names of the first five sections are attributes of `recrawl` (or of the module shown), loaded on first use. The
others are types of results. [Use recrawl from Python](../guides/python.md) shows them at work. Values are frozen
dataclasses with times as `datetime` in UTC; `as_dict()` returns what the command line prints with `--json`.
"""

_SECTIONS: dict[str, list[tuple[str, Any]]] = {
    "Repositories": [(f"recrawl.{name}", getattr(recrawl, name)) for name in ("open", "init", "Repository")],
    "Pages, versions and changes": [
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("Page", "Version", "Change")),
        ("Difference", difference.Difference),
        ("Rows", rows.Rows),
    ],
    "Visits of other crawlers": [
        (f"recrawl.{name}", getattr(recrawl, name)) for name in ("Answer", "Request", "Failure")
    ],
    "Policies": [
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("Policy", "Book", "Picks", "Outcomes", "Outcome")),
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("make_policy", "drive")),
        *((f"recrawl.testing.{name}", getattr(testing, name)) for name in ("check_policy", "GeneratedWeb")),
    ],
    "Lab": [(f"recrawl.lab.{name}", getattr(lab, name)) for name in lab.__all__],
    "Other values": [
        *((name, getattr(runs, name)) for name in ("Progress", "Report", "Plan", "PlannedVisit")),
        *((name, getattr(values, name)) for name in ("Status", "Site", "Visit", "SearchHit", "Explanation")),
        *((name, getattr(runs, name)) for name in ("Import", "Removal", "Attempt")),
        ("CheckReport", checking.CheckReport),
        ("CheckProblem", checking.CheckProblem),
        ("Prediction", prediction.Prediction),
        ("Rate", rates.Rate),
        ("PageRate", rates.PageRate),
        ("SiteAnchor", anchors.SiteAnchor),
        ("NoiseProposal", noise.NoiseProposal),
        ("Preview", noise.Preview),
    ],
    "Errors": [
        (f"recrawl.errors.{name}", value)
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.RecrawlError)
    ],
}


def api() -> str:
    """The page, in sections."""
    parts = ["# Python API\n", _INTRODUCTION]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}\n")
        for name, value in names:
            parts += _class(name, value) if isinstance(value, type) else _function(name, value, "###")
    return "\n".join(parts)


def _function(name: str, function: Callable[..., Any], level: str) -> Iterator[str]:
    yield f"{level} {name.rpartition('.')[2] if level == '####' else name}\n"
    yield f"```py\n{_signature(name.rpartition('.')[2], function)}\n```\n"
    yield f"{_markdown(inspect.getdoc(function) or '')}\n"
    own = inspect.signature(function).parameters
    group = [f"- `{one.name}`: {one.about.help}" for one in parameters_of(function).values() if one.name not in own]
    if group:
        yield "By keyword:\n\n" + "\n".join(group) + "\n"


def _class(name: str, kind: type[Any]) -> Iterator[str]:
    yield f"### {name}\n"
    if dataclasses.is_dataclass(kind) or "__init__" not in vars(kind):
        yield f"{_markdown(inspect.getdoc(kind) or '')}\n"
    else:
        yield f"```py\n{_signature(name.rpartition('.')[2], kind.__init__)}\n```\n"
        yield f"{_markdown(inspect.getdoc(kind) or '')}\n"
    fields = list(_fields(kind))
    if fields:
        rows_ = "\n".join(f"| `{field}` | `{annotation}` | {text} |" for field, annotation, text in fields)
        yield f"| field | type | meaning |\n| --- | --- | --- |\n{rows_}\n".replace("|  |", "| |")
    for member in _members(kind):
        value = inspect.getattr_static(kind, member)
        if isinstance(value, property):
            yield f"#### {member}\n"
            yield f"Property. {_markdown(inspect.getdoc(value) or '')}\n"
        else:
            yield from _function(member, getattr(kind, member), "####")


def _members(kind: type[Any]) -> Iterator[str]:
    """Public methods and properties that the class or a base of recrawl defines, in the order of the source."""
    seen = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for owner in kind.__mro__:
        if owner.__module__.startswith("recrawl."):
            for name, value in vars(owner).items():
                documented = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
                if documented and not name.startswith("_") and name not in {"of", "as_dict", *seen}:
                    seen.add(name)
                    yield name


def _fields(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Public fields of a dataclass or named tuple with the docstrings that follow them in the source."""
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "_fields"):
        return
    for name, annotation, text in described_fields(kind):
        yield name, annotation.replace("|", "\\|"), text.replace("|", "\\|")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """
    >>> def search(self, query: str, *, limit: int = 10) -> list[str]: ...
    >>> _signature("search", search)
    'search(query: str, *, limit: int = 10) -> list[str]'
    """
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        stars = (
            "*"
            if parameter.kind is parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind is parameter.VAR_KEYWORD
            else ""
        )
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{_annotation(': ', _plain(parameter, function))}{default}")
    returns = "" if function.__name__ == "__init__" else _annotation(" -> ", signature.return_annotation)
    line = f"{name}({', '.join(parts)}){returns}"
    return line if len(line) <= 110 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){returns}"


def _plain(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """The annotation of a parameter; without its description, where that is declared."""
    hint = evaluated(parameter.annotation, vars(inspect.getmodule(function)))
    return get_args(hint)[0] if get_origin(hint) is Annotated else parameter.annotation


def _annotation(before: str, annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + text.replace("collections.abc.", "").replace("datetime.datetime", "datetime")


def _default(value: Any) -> str:
    return "..." if callable(value) else repr(value)


def _markdown(text: str) -> str:
    """A docstring as Markdown: sections of parameters become lists, examples of the interpreter become code.

    >>> print(_markdown("Does it.\\n\\nParameters\\n----------\\ndays\\n    The\\n    interval.\\n"))
    Does it.
    <BLANKLINE>
    Parameters:
    <BLANKLINE>
    - `days`: The interval.
    """
    text, _, parameters = text.partition("\nParameters\n")
    text = re.sub(r"(^>>> .*(?:\n(?!$).*)*)", r"```py\n\1\n```", text.strip(), flags=re.MULTILINE)
    text = re.sub(r"(?:^    .*\n?(?:\n(?=    ))?)+", _fenced, text, flags=re.MULTILINE)
    if parameters:
        items = re.sub(r"\n {4,}", " ", parameters.partition("\nExample\n")[0].partition("\n")[2].strip("\n"))
        rows_ = (line.split(" ", 1) for line in items.splitlines() if line.strip())
        text += "\n\nParameters:\n\n" + "\n".join(f"- `{row[0]}`: {row[-1]}" for row in rows_)
    return text


def _fenced(block: re.Match[str]) -> str:
    return f"```py\n{textwrap.dedent(block[0]).strip()}\n```\n"
