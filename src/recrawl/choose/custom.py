"""Policies of the user's own, written as `module:Class(param=value)`: import, check, construct, describe.

The module is found as `import` finds it, and then in the current folder, which is put at the end of the path so that
none of its files can replace an installed module. A policy object is described by its class and by the attributes that
have the names of its constructor's parameters; a cycle stores this text and builds the policy again when it is resumed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from recrawl.choose.protocol import Policy
from recrawl.errors import UnknownName, UsageError

_SYNTAX = re.compile(r"\s*([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_WORDS = {"true": True, "false": False, "none": None}


def is_custom(text: str) -> bool:
    """Whether a policy's text names a Python class.

    >>> is_custom("mypackage.mymodule:MyPolicy(alpha=0.2)"), is_custom("round-robin(order=shuffled)")
    (True, False)
    """
    return ":" in text.partition("(")[0]


def make_custom(text: str) -> Policy:
    """Build the policy that `module:Class(param=value)` names."""
    match = _SYNTAX.fullmatch(text)
    if not match:
        raise UsageError(f"invalid policy '{text}': expected module:Class or module:Class(param=value)")
    kind = _class(match[1], match[2])
    values = _arguments(match[3] or "", text)
    known = inspect.signature(kind).parameters
    for name in values:
        if name not in known:
            raise UnknownName(f"parameter of {match[1]}:{match[2]}", name, known)
    try:
        policy = kind(**values)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot build the policy '{text}': {error}") from error
    check_policy_object(policy, f"{match[1]}:{match[2]}")
    return policy  # type: ignore[no-any-return]


def describe_custom(policy: Policy) -> str:
    """Return the text from which `make_custom` builds an equal policy, or raise `UsageError` where there is none."""
    kind = type(policy)
    where = f"{kind.__module__}:{kind.__qualname__}"
    check_policy_object(policy, where)
    if "." in kind.__qualname__ or getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
        raise UsageError(
            f"the policy class {where} cannot be imported: define it at the top level of a module, "
            "so that an interrupted cycle can build the policy again"
        )
    values = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UsageError(f"the constructor of {where} takes '{parameter}': use named parameters only")
        if not hasattr(policy, name):
            raise UsageError(
                f"{where} does not keep its parameter '{name}': set self.{name} = {name} in its constructor, "
                "so that an interrupted cycle can build the policy again"
            )
        if getattr(policy, name) != parameter.default:
            values[name] = getattr(policy, name)
    arguments = ", ".join(f"{name}={_format(value)}" for name, value in values.items())
    text = f"{where}({arguments})" if arguments else where
    if not _reads_back(arguments, values):
        raise UsageError(
            f"the parameters of {where} cannot be written as text: use numbers, booleans, strings or lists"
        )
    return text


def _reads_back(arguments: str, values: dict[str, Any]) -> bool:
    try:
        return _arguments(arguments, arguments) == values
    except UsageError:
        return False


def source_of(text: str) -> bytes:
    """Return the source of the module that a custom policy comes from, to name cached results; b'' without one."""
    match = _SYNTAX.fullmatch(text)
    file = inspect.getsourcefile(_class(match[1], match[2])) if match else None
    return Path(file).read_bytes() if file and Path(file).is_file() else b""


def check_policy_object(policy: object, where: str) -> None:
    """Raise `UsageError` for an object that does not follow `recrawl.Policy`."""
    wrong = [
        *(f"'{name}' must be a non-empty string" for name in ("name", "source") if not _is_text(policy, name)),
        *(
            ["'needs' must be a frozenset of strings"]
            if not isinstance(getattr(policy, "needs", None), frozenset)
            else []
        ),
        *(["it has no method cycle(book, budget, rng)"] if not callable(getattr(policy, "cycle", None)) else []),
    ]
    if wrong:
        raise UsageError(f"{where} is not a policy: {'; '.join(wrong)}; see recrawl.Policy")


def _is_text(policy: object, name: str) -> bool:
    value = getattr(policy, name, None)
    return isinstance(value, str) and bool(value)


def _class(module: str, name: str) -> type[Any]:
    """Import a class."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        found = importlib.import_module(module)
    except (ImportError, SyntaxError) as error:
        top = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name and (module + ".").startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module '{error.name}' in {here} or on the Python path: run the command in the folder "
                f"that holds {top}.py, or install the package"
            ) from error
        raise UsageError(f"the module '{module}' cannot be imported: {type(error).__name__}: {error}") from error
    kind = getattr(found, name, None)
    if not isinstance(kind, type):
        classes = [
            key
            for key, value in vars(found).items()
            if isinstance(value, type) and callable(getattr(value, "cycle", None))
        ]
        raise (
            UnknownName(f"class in the module '{module}'", name, classes)
            if classes
            else UsageError(f"the module '{module}' has no class '{name}', and no other policy")
        )
    return kind


def _arguments(inside: str, text: str) -> dict[str, Any]:
    """Parse keyword arguments; a bare word is a string.

    >>> _arguments("alpha=0.2, order=shuffled, fill=true, names=['a,b']", "")
    {'alpha': 0.2, 'order': 'shuffled', 'fill': True, 'names': ['a,b']}
    """
    try:
        call = ast.parse(f"policy({inside})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"invalid parameters in '{text}': expected name=value, name=value") from error
    if not isinstance(call, ast.Call) or call.args or any(item.arg is None for item in call.keywords):
        raise UsageError(f"invalid parameters in '{text}': expected name=value, name=value")
    return {str(item.arg): _value(item, text) for item in call.keywords}


def _value(item: ast.keyword, text: str) -> Any:
    if isinstance(item.value, ast.Name):
        return _WORDS.get(item.value.id, item.value.id)
    try:
        return ast.literal_eval(item.value)
    except ValueError as error:
        message = f"invalid value of '{item.arg}' in '{text}': use a number, true, false, a string or a list"
        raise UsageError(message) from error


def _format(value: Any) -> str:
    """
    >>> _format(True), _format("shuffled"), _format("a,b"), _format("true")
    ('true', 'shuffled', "'a,b'", "'true'")
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    plain = isinstance(value, str) and value.isidentifier() and value not in _WORDS
    return str(value) if plain else repr(value)
