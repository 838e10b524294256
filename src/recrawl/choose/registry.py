"""The registry of policies, and the conversion between a policy and its text.

Command line, settings and reports write a policy as its name with its parameters, such as `fixed-interval(days=3)`.
`make_policy` builds the policy from this text; `describe` returns the text of a policy. Plug-ins add policies by name
(see `recrawl.plugins`). A class of the user's own is written `module:Class(param=value)` (see `custom`).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, MutableMapping
from typing import Any

from recrawl import plugins
from recrawl.choose.custom import describe_custom, is_custom, make_custom
from recrawl.choose.protocol import Policy
from recrawl.errors import UnknownName, UsageError


class _Classes(MutableMapping[str, type[Any]]):
    """Classes by name, each imported when it is asked for: a command that uses one policy loads one."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes
        """Name to module and class."""
        self._loaded: dict[str, type[Any]] = {}

    def __getitem__(self, name: str) -> type[Any]:
        if name not in self._loaded:
            module, _, kind = self._homes[name].partition(":")
            self._loaded[name] = getattr(importlib.import_module(f"recrawl.choose.{module}"), kind)
        return self._loaded[name]

    def __setitem__(self, name: str, kind: type[Any]) -> None:
        self._homes[name], self._loaded[name] = "", kind

    def __delitem__(self, name: str) -> None:
        del self._homes[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


POLICIES = _Classes(
    {
        "round-robin": "papers.round_robin:RoundRobin",
        "random": "papers.random_sampling:Random",
        "fixed-interval": "crawlers.fixed_interval:FixedInterval",
        "explore": "papers.explore:Explore",
        "proportional": "papers.by_site.proportional:Proportional",
        "greedy": "papers.by_site.greedy:Greedy",
        "adaptive-sampling": "papers.by_site.adaptive_sampling:AdaptiveSampling",
        "grouped": "papers.by_site.grouped:Grouped",
        "frequency-greedy": "papers.by_site.frequency_greedy:FrequencyGreedy",
        "frequency-adaptive": "papers.by_site.frequency_adaptive:FrequencyAdaptive",
        "change-frequency": "papers.change_frequency:ChangeFrequency",
        "optimal-freshness": "optimal.optimal_index:OptimalFreshness",
        "optimal-age": "optimal.optimal_index:OptimalAge",
        "lambda-crawl": "optimal.lambda_crawl:LambdaCrawl",
        "ncis": "optimal.ncis:Ncis",
        "sampling": "papers.sampling:Sampling",
        "anchor-depth": "papers.anchor_depth:AnchorDepth",
        "shock": "shock.policy:Shock",
        "predicted": "papers.predicted:Predicted",
        "nutch": "crawlers.nutch:Nutch",
        "stormcrawler": "crawlers.stormcrawler:StormCrawler",
        "norconex": "crawlers.norconex:Norconex",
        "heritrix1": "crawlers.heritrix1:Heritrix1",
        "manifoldcf": "crawlers.manifoldcf:ManifoldCF",
        "marginalia": "crawlers.marginalia:Marginalia",
    }
)
"""Policy classes by name, in the order of the documentation."""

_SYNTAX = re.compile(r"\s*([A-Za-z0-9-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_COMMA = re.compile(r",(?![^()]*\))")
"""A comma outside of parentheses: `grouped(inner=greedy(sample=5, level=directory), groups=2)` has two parameters."""


def make_policy(text: str, *, imports: bool = True) -> Policy:
    """Build a policy from its text; without `imports`, refuse `module:Class`, as text from the network must not import.

    >>> make_policy("fixed-interval(days=3)").days
    3
    >>> make_policy("round-robin(order=shuffled)").order
    'shuffled'
    """
    if is_custom(text):
        if not imports:
            raise UsageError(f"the policy '{text}' imports a module: set it on this machine, in recrawl.toml")
        return make_custom(text)
    match = _SYNTAX.fullmatch(text)
    if not match:
        raise UsageError(f"invalid policy '{text}': expected name, name(param=value) or module:Class(param=value)")
    name, inside = match[1], match[2] or ""
    kind = kind_of(name)
    if kind is None:
        raise UnknownName("policy", name, [*POLICIES, *plugins.names("policies")])
    known = parameters(name)
    values = {}
    for part in filter(None, (piece.strip() for piece in _COMMA.split(inside))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise UsageError(f"invalid parameter '{part}' in '{text}': expected name=value")
        if key in values:
            raise UsageError(f"parameter {key} is given twice in '{text}'")
        if key not in known:
            raise (
                UnknownName(f"parameter of {name}", key, known) if known else UsageError(f"{name} takes no parameters")
            )
        values[key] = _parse(value, known[key], f"{name}'s {key}")
    policy: Policy = kind(**values)
    return policy


def policy_of(policy: str | Policy) -> Policy:
    """The policy that a text names; a policy itself is checked to be one that can be named again."""
    return make_policy(policy if isinstance(policy, str) else describe(policy))


def usable_policies() -> dict[str, type[Any]]:
    """Policies by name: ours, then those of plug-ins that can be loaded."""
    usable = [plugin.name for plugin in plugins.found("policies") if not plugin.problem]
    return {**POLICIES, **{name: kind for name in usable if name not in POLICIES and (kind := kind_of(name))}}


def kind_of(name: str) -> type[Any] | None:
    """Return the class of a policy by its name: ours, or that of a plug-in; None if there is none."""
    return POLICIES.get(name) or plugins.load("policies", name)


def parameters(policy: str | Policy) -> dict[str, Any]:
    """Return the parameters of a policy, or of the one with this name, with their defaults."""
    kind = (kind_of(policy) or POLICIES[policy]) if isinstance(policy, str) else type(policy)
    if kind.__init__ is object.__init__:
        return {}
    return {key: parameter.default for key, parameter in inspect.signature(kind).parameters.items()}


def parameter_texts(text: str) -> dict[str, str]:
    """Return the parameters that the docstring of a policy documents, with their meaning.

    >>> parameter_texts("Does.\\n\\nParameters\\n----------\\ndays\\n    The\\n    interval.\\n\\nExample\\n")
    {'days': 'The interval.'}
    """
    lines = text.partition("\nParameters\n")[2].partition("\nExample\n")[0].splitlines()[1:]
    texts: dict[str, str] = {}
    name = ""
    for line in filter(str.strip, lines):
        if line.startswith(" "):
            texts[name] = f"{texts[name]} {line.strip()}".strip()
        else:
            name = line.strip()
            texts[name] = ""
    return texts


def describe(policy: Policy) -> str:
    """Return the text from which `make_policy` builds an equal policy; it omits parameters at their defaults.

    >>> describe(make_policy("fixed-interval( days = 3 )"))
    'fixed-interval(days=3)'
    """
    if kind_of(getattr(policy, "name", "")) is not type(policy):
        return describe_custom(policy)
    changed = [
        f"{key}={_format(getattr(policy, key))}"
        for key, default in parameters(policy).items()
        if getattr(policy, key) != default
    ]
    return f"{policy.name}({', '.join(changed)})" if changed else policy.name


def _format(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(text: str, default: Any, what: str) -> Any:
    """Convert the text of a parameter's value to the type of its default."""
    if isinstance(default, str):
        return text.strip("'\"")
    message = f"invalid value '{text}' of {what}: expected a value such as {default!r}"
    try:
        value = ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (SyntaxError, ValueError) as error:
        raise UsageError(message) from error
    if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(message)
    return value
