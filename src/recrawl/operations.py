"""Operations: what users can do, each declared once, as a typed function.

The declaration of an operation is its function: the parameters with their types and defaults, `Described` (help, range,
choices), the type that it returns, and the docstring. `operation` adds where it is offered. From it come

- the method of `recrawl.Repository`, which is the function itself,
- the command of the command line with its options (`recrawl.cli.declared`),
- the route of the HTTP API with the schemas of its request and its answer (`recrawl.serve.api`),
- the fields of forms,
- the tool of the MCP server,
- the reference pages of the documentation.

    Site = Annotated[str, Described("Only this site; the URL of the site or of any of its pages.")]

    @operation(http="GET /pages", command="pages", tool=True, examples=("recrawl pages --state live",))
    def pages(self, *, site: Site = "", limit: Limit = 50) -> Rows[Page]: ...

A parameter that is not `Described` (callbacks, objects of Python) is for Python alone. This module imports nothing that
is slow: the help of a command needs no more than declarations.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, TypeVar, Union, Unpack, get_args, get_origin

from recrawl.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])
LONGEST_TEXT = 4096
MOST_ITEMS = 200
LARGEST_NUMBER = 2**53
"""Larger whole numbers are not exact in JSON."""


@dataclass(frozen=True, slots=True)
class Described:
    """What users read and may give for a parameter; its type and default stand in the function's signature."""

    help: str
    label: str = ""
    """Its name in forms; by default its name."""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    option: str = ""
    """Its spelling on the command line; by default its name. Others follow after `/`; of a flag, that for no."""
    metavar: str = ""
    complete: str = ""
    """What completes it in a shell: a name of `recrawl.cli.terminal.completions`."""
    argument: bool = False
    """On the command line it stands without a name."""
    names_file: bool = False
    """It may name a file: over HTTP, one in the folder of the repository."""
    longest: int = LONGEST_TEXT
    """Most characters of a text."""
    default: Any = None
    """What holds where it is not given, if its function does not say that."""
    sent_as: Any = None
    """Its type in JSON, where that does not follow from its type in Python."""
    sent_name: str = ""
    """Its name in JSON, where that is another one; of several values after `*`, a request has one."""


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter of an operation: its name, its type where it is sent as JSON, its default, and its `Described`."""

    name: str
    kind: Any
    """str, int, float, bool, list[str], list[int] or list[float]."""
    optional: bool
    """None is a value of its own: not given."""
    default: Any
    required: bool
    about: Described
    several: bool = False
    """Python takes several after `*`."""

    @property
    def many(self) -> bool:
        """Whether it is a list."""
        return get_origin(self.kind) is list

    def meta(self) -> Any:
        """The type with its limits, for validation and for JSON Schema."""
        from msgspec import Meta  # lazy: the help of a command does not validate

        about, kind = self.about, self.kind
        if about.choices:
            kind = Literal[about.choices]
        elif kind in (int, float):
            least = -LARGEST_NUMBER if about.least is None else about.least
            most = LARGEST_NUMBER if about.most is None else about.most
            kind = Annotated[kind, Meta(ge=kind(least), le=kind(most))]
        elif kind is str:
            kind = Annotated[str, Meta(max_length=about.longest, min_length=1 if self.required else None)]
        elif get_origin(kind) is list:
            (inner,) = get_args(kind)
            inner = Annotated[inner, Meta(max_length=about.longest)] if inner is str else inner
            kind = Annotated[list[inner], Meta(max_length=MOST_ITEMS)]  # type: ignore[valid-type]
        return Annotated[kind | None if self.optional else kind, Meta(description=about.help)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation; see the module."""

    name: str
    function: Callable[..., Any]
    http: str = ""
    """Method and path below the prefix of the API; empty if it is not offered there."""
    command: str = ""
    """The command of the command line."""
    tool: bool = False
    """A tool of the MCP server."""
    writes: bool = False
    """It changes the repository, its settings or what the service does."""
    status: int = 200
    """The HTTP status of success."""
    examples: tuple[str, ...] = ()
    part: str = ""
    """The function that reads a bounded part of a list, as `module:name`; it takes what the method takes, `limit` and
    `after`."""
    about: dict[str, Any] = field(default_factory=dict)
    """What one surface alone needs to know."""

    @property
    def method(self) -> str:
        """The method of its HTTP request."""
        return self.http.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of its HTTP request, below the prefix of the API."""
        return self.http.partition(" ")[2]

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of the command line that do the same."""
        return (self.command,) if self.command else tuple(self.about.get("commands", ()))

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def text(self) -> str:
        """The whole docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def parameters(self) -> dict[str, Given]:
        """The parameters of a request, by name."""
        return _sent(self.function, self.part)

    def input(self) -> type[Any]:
        """The parameters as one type: it validates, and gives the JSON Schema. Unknown names are refused."""
        return _input_of(self.function, self.part, self.name)

    @property
    def part_of_list(self) -> Callable[..., Any]:
        """The function that `part` names."""
        return _named(self.part)

    @property
    def single(self) -> bool:
        """Whether Python does it for several things at once, and answers with a list; a request is about one."""
        return any(given.several and given.about.sent_name for given in parameters_of(self.function).values())

    def call(self, method: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """Call the method of a repository with what a request has given."""
        first: list[Any] = []
        left = dict(values)
        for name, given in parameters_of(self.function).items():
            sent = given.about.sent_name or name
            if given.several:  # what stands before it is given by place
                first = [left.pop(before) for before in _before(self.function) if before in left]
                first.append(left.pop(sent))
            elif sent in left:
                left[name] = left.pop(sent)
        found = method(*first, **left)
        return found[0] if self.single else found

    def read(self, values: Mapping[str, Any], *, texts: bool = False) -> dict[str, Any]:
        """Validate values that came from outside; those of a query string are texts.

        `InvalidValue` names a wrong one. What was not given is not in the answer: the function's own defaults hold.
        """
        from msgspec import ValidationError, convert  # lazy: the help of a command does not validate

        known = self.parameters
        for name in values:
            if name not in known:
                close = get_close_matches(name, known, 1)
                raise InvalidValue(
                    name, f"Unknown parameter '{name}'" + (f"; did you mean '{close[0]}'?" if close else ".")
                )
        for name, given in known.items():
            if given.required and name not in values:
                raise InvalidValue(name, f"Missing parameter '{name}'.")
        try:
            found = convert(dict(values), self.input(), strict=not texts)
        except ValidationError as error:
            raise _invalid(str(error), known) from None
        made = {name: getattr(found, name) for name in values}
        for name, value in made.items():
            _check_texts(name, value)
        return made

    @property
    def answer(self) -> Any:
        """The type that it returns."""
        function = self.part_of_list if self.part else self.function
        module = inspect.getmodule(function)
        hint, names = function.__annotations__["return"], dict(vars(module))
        while isinstance(hint, str):
            try:
                hint = eval(hint, names)  # noqa: S307  # our own source
            except NameError as error:  # imported for type checkers alone
                names[str(error.name)] = _imported(module, str(error.name))
        return hint


def _imported(module: Any, name: str) -> Any:
    """What a module imports under a name for type checkers."""
    for part in ast.parse(inspect.getsource(module)).body:
        for line in part.body if isinstance(part, ast.If) else ():
            if isinstance(line, ast.ImportFrom) and name in [item.asname or item.name for item in line.names]:
                return getattr(import_module(str(line.module)), name)
    raise NameError(name)


def _before(function: Callable[..., Any]) -> list[str]:
    """The parameters that stand before one that takes several values."""
    names = inspect.signature(function).parameters.values()
    return [it.name for it in names if it.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]


@cache
def _named(place: str) -> Callable[..., Any]:
    """The function that a text names."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


@cache
def _sent(function: Callable[..., Any], part: str) -> dict[str, Given]:
    """The parameters of a request: those of the function; for a part of a list, also its length and where it begins."""
    found: dict[str, Given] = {}
    for name, given in parameters_of(function).items():
        sent, kind = given.about.sent_name, given.kind
        if sent and given.several:
            (kind,) = get_args(kind)
        found[sent or name] = replace(given, name=sent or name, kind=kind)
    if part:
        found.pop("offset", None)
        found |= {name: parameters_of(_named(part))[name] for name in ("limit", "after")}
    return found


def described_fields(kind: type[Any]) -> list[tuple[str, str, str]]:
    """The public fields of a dataclass or named tuple: name, type as it is written, and the docstring that follows."""
    found = []
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            told = following.value if isinstance(following, ast.Expr) else None
            text = " ".join(str(told.value).split()) if isinstance(told, ast.Constant) else ""
            found.append((node.target.id, ast.unparse(node.annotation), text))
    return found


class InvalidValue(UsageError):
    """A value that an operation does not take; `parameter` is its name."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def operation(
    *,
    http: str = "",
    command: str = "",
    tool: bool = False,
    writes: bool = False,
    status: int = 200,
    examples: Iterable[str] = (),
    name: str = "",
    part: str = "",
    **about: Any,
) -> Callable[[Function], Function]:
    """Declare the function as an operation."""

    def declare(function: Function) -> Function:
        function.operation = Operation(  # type: ignore[attr-defined]
            name=name or function.__name__,
            function=function,
            http=http,
            command=command,
            tool=tool,
            writes=writes,
            status=status,
            examples=tuple(examples),
            part=part,
            about=about,
        )
        return function

    return declare


def declared(where: type[Any] | types.ModuleType) -> dict[str, Operation]:
    """The operations of a class or module by name, in the order of their declaration."""
    if isinstance(where, type):
        members = {name: value for kind in reversed(where.__mro__) for name, value in vars(kind).items()}
    else:
        members = vars(where)
    found = (getattr(value, "operation", None) for value in members.values())
    return {one.name: one for one in found if isinstance(one, Operation)}


@cache
def parameters_of(function: Callable[..., Any]) -> dict[str, Given]:
    """The parameters of a function that have a `Described`, by name; those of a TypedDict after `**` one by one."""
    names = vars(inspect.getmodule(function))
    found: dict[str, Given] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = evaluated(parameter.annotation, names)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found |= members_of(get_args(hint)[0]) if get_origin(hint) is Unpack else {}
            continue
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        required = several or parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        if given := _given(parameter.name, hint, default, required=required, several=several):
            found[parameter.name] = given
    return found


def evaluated(hint: Any, names: dict[str, Any]) -> Any:
    """The type that an annotation names; None for one that only type checkers know."""
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, names)  # noqa: S307  # our own source
    except NameError:
        return None


@cache
def members_of(group: type[Any]) -> dict[str, Given]:
    """The parameters of a group, which is a TypedDict, by name."""
    names = vars(inspect.getmodule(group))
    hints = {name: evaluated(hint.__forward_arg__, names) for name, hint in group.__annotations__.items()}
    found = {name: _given(name, hint, None, required=False) for name, hint in hints.items()}
    return {name: given for name, given in found.items() if given is not None}


def _given(name: str, hint: Any, default: Any, *, required: bool, several: bool = False) -> Given | None:
    if get_origin(hint) is not Annotated:
        return None
    kind, *more = get_args(hint)
    about = next((item for item in more if isinstance(item, Described)), None)
    if about is None:
        return None
    default = about.default if default is None else default
    inner, optional = (about.sent_as, False) if about.sent_as else _sent_as(kind)
    if several:
        inner = list[inner]  # type: ignore[valid-type]
    return Given(name, inner, optional or (default is None and not required), default, required, about, several)


def _sent_as(kind: Any) -> tuple[Any, bool]:
    """The JSON type for a Python type, and whether None is among its values."""
    members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    optional, members = type(None) in members, tuple(one for one in members if one is not type(None))
    if str in members:
        return str, optional
    first = members[0]
    if get_origin(first) is Literal:
        return str, optional
    if get_origin(first) in (Iterable, Sequence, list, tuple) or first in (list, tuple):
        return list[get_args(first)[0]], optional  # type: ignore[misc]
    return first, optional


@cache
def _input_of(function: Callable[..., Any], part: str, name: str) -> type[Any]:
    from msgspec import UNSET, UnsetType, defstruct  # lazy: the help of a command does not validate

    fields: list[Any] = []
    for given in _sent(function, part).values():
        if given.required:
            fields.append((given.name, given.meta()))
        elif isinstance(given.default, (str, int, float, bool)):
            fields.append((given.name, given.meta(), given.default))
        else:
            fields.append((given.name, given.meta() | UnsetType, UNSET))
    title = "".join(part.title() for part in name.split("_")) + "Parameters"
    return defstruct(title, fields, kw_only=True, frozen=True, forbid_unknown_fields=True)


def _invalid(message: str, known: Mapping[str, Given]) -> InvalidValue:
    """
    >>> _invalid("Expected `int` <= 5 - at `$.limit`", {})
    InvalidValue("'limit' is wrong: expected int <= 5.")
    """
    what, _, place = message.partition(" - at `$.")
    name = place.rstrip("`").partition("[")[0]
    what = what.replace("`", "").replace("'", "")
    if what.startswith("Invalid enum value ") and name in known:
        value = what.removeprefix("Invalid enum value ")
        return InvalidValue(
            name, f"invalid value '{value}' of '{name}'; use {', '.join(filter(None, known[name].about.choices))}"
        )
    return InvalidValue(name, f"'{name}' is wrong: {what[:1].lower()}{what[1:]}.")


def _check_texts(name: str, value: Any) -> None:
    """Refuse text that could not be stored or sent on: with NUL or with half characters."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and ("\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
            raise InvalidValue(name, f"'{name}' is wrong: expected text without NUL and half characters.")
