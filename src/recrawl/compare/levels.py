"""What counts as a change of a page.

text             the text differs (spec C1)
content          the page's own text differs, not only the frame of its site (`compare.content`)
significant      the word counts differ by the chi-squared test (spec C2)
divergence:X     at least the share X of the words differs (spec C7)
words:N          at least N words differ (Ali and Williams 2003 use about 20)
NAME:ARGUMENT    what the plug-in NAME says (see `recrawl.plugins`)
relevance:FILE   it begins or ceases to match one of the queries in FILE (spec C4)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from recrawl import plugins
from recrawl.errors import UsageError

_WORD = re.compile(r"\w+")
NAMES = "text, content, significant, divergence:X (X from 0 to 1), words:N or relevance:FILE (one query per line)"


@dataclass(frozen=True, slots=True)
class ChangeLevel:
    """A definition of change."""

    kind: str = "content"
    least: float = 0.0
    """For `divergence`: the smallest share of words; for `words`: the smallest number of them."""
    queries: tuple[tuple[str, ...], ...] = ()
    """For `relevance`: the words of each query."""
    plugin: bool = False
    """Whether `kind` is the name of a plug-in."""
    argument: str = ""
    """For a plug-in."""

    def check(self) -> None:
        """Raise `UsageError` if its plug-in cannot be used."""
        if self.plugin:
            parse_level(f"{self.kind}:{self.argument}" if self.argument else self.kind)

    def counts(self, differs: Differences) -> bool:
        """Whether the change counts; the text differs. What could not be measured counts."""
        if self.plugin:
            return bool(plugins.load("levels", self.kind)(differs, self.argument))
        if self.kind == "content":
            return differs.content is not False
        if self.kind == "significant":
            return differs.significant is not False
        if self.kind == "divergence":
            return differs.divergence is None or differs.divergence >= self.least
        if self.kind == "words":
            return differs.words is None or differs.words >= self.least
        return self.kind == "text" or differs.relevance is not False

    def matching(self, text: str) -> frozenset[int]:
        """The queries all of whose words the text has."""
        words = set(_WORD.findall(text.casefold()))
        return frozenset(n for n, query in enumerate(self.queries) if words.issuperset(query))


@dataclass(frozen=True, slots=True)
class Differences:
    """How two versions whose texts differ compare at the other levels; None where it was not measured."""

    content: bool | None = None
    significant: bool | None = None
    divergence: float | None = None
    relevance: bool | None = None
    words: int | None = None
    """Words that only one of the texts has, counted as often as they occur."""


def parse_level(text: str) -> ChangeLevel:
    """The level of a setting or option; raises `UsageError` for an invalid one.

    >>> parse_level("divergence:0.1").least, parse_level("words:20").least
    (0.1, 20.0)
    """
    level = _own_level(text)
    if level is None and plugins.load("levels", text.partition(":")[0]) is None:
        raise UsageError(f"invalid change '{text}'; use {NAMES}")
    return level or _plugin_level(text)


def stored_level(text: str) -> ChangeLevel:
    """The level of a setting that was stored: whatever is not ours is taken for a plug-in, and loaded when it is used.

    So one that is broken or was removed does not stop commands that only read; `ChangeLevel.check` finds it.
    """
    return _own_level(text) or _plugin_level(text)


def _plugin_level(text: str) -> ChangeLevel:
    kind, _, rest = text.partition(":")
    return ChangeLevel(kind, plugin=True, argument=rest)


def _own_level(text: str) -> ChangeLevel | None:
    kind, _, rest = text.partition(":")
    if text in ("text", "content", "significant"):
        return ChangeLevel(text)
    if kind == "divergence":
        try:
            least = float(rest)
        except ValueError:
            least = -1.0
        if 0 < least <= 1:
            return ChangeLevel(kind, least)
    if kind == "words" and rest.isdecimal() and int(rest) > 0:
        return ChangeLevel(kind, float(rest))
    if kind == "relevance" and rest:
        return ChangeLevel(kind, queries=_queries(Path(rest)))
    return None


def _queries(path: Path) -> tuple[tuple[str, ...], ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the queries of relevance:{path}: {error}") from error
    queries = tuple(filter(None, (tuple(_WORD.findall(line.casefold())) for line in lines)))
    if not queries:
        raise UsageError(f"{path} has no query; write one per line")
    return queries


CONTENT = ChangeLevel()
"""The default: the page's own text."""
