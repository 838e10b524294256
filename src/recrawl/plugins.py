"""Plug-ins: policies, fetchers, parsers, change levels and sinks of other packages, found by their entry points.

    [project.entry-points."recrawl.policies"]
    newest-first = "my_package:NewestFirst"

A group is read when a name that recrawl does not know is used in it, and a plug-in is imported when it is used: one
that cannot be imported costs only itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from recrawl.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "policies": "a class: see docs/concepts/policies.md",
    "fetchers": "a class with the methods of recrawl.fetch.http.Client",
    "parsers": "a function of body and content type that returns the text; its name is the content type",
    "levels": "a function of recrawl.compare.levels.Differences and an argument that says whether the change counts",
    "sinks": "a function of target, secret and repository that returns a recrawl.repository.sinks.protocol.Sink",
}
"""Group, without `recrawl.`, and what its entry points refer to."""


ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What foreign code raises; it concerns the plug-in alone."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package."""

    group: str
    name: str
    package: str
    version: str
    target: str
    problem: str
    """Why it cannot be used; empty if it can."""

    def as_dict(self) -> dict[str, str]:
        """As `recrawl plugins --json` prints it."""
        return asdict(self)


def names(group: str) -> list[str]:
    """The names of the plug-ins of a group; nothing is imported."""
    return sorted(_entries(group))


def load(group: str, name: str) -> Any:
    """Import a plug-in; None if there is none of this name, `UsageError` if it cannot be imported."""
    entry = _entries(group).get(name)
    if entry is None:
        return None
    try:
        value = entry.load()
    except ERRORS as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"the plug-in '{name}' ({entry.value}) cannot be loaded: {problem}") from error
    if not callable(value):
        raise UsageError(f"the plug-in '{name}' ({entry.value}) is not {GROUPS[group]}")
    return value


def found(*groups: str) -> list[Plugin]:
    """All plug-ins, or those of these groups; each is imported, to see whether it can be used."""
    return [_checked(group, entry) for group in groups or GROUPS for entry in _entries(group).values()]


def _checked(group: str, entry: EntryPoint) -> Plugin:
    problem = ""
    try:
        load(group, entry.name)
    except UsageError as error:
        problem = str(error)
    package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
    return Plugin(group, entry.name, package, version, entry.value, problem)


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two with one name, the first that is found counts."""
    from importlib.metadata import entry_points  # lazy: most commands use no plug-in, and it takes time to load

    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"recrawl.{group}"):
        entries.setdefault(entry.name, entry)
    return entries
