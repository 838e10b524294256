"""What counts as a change of a page.

text             the text differs (spec C1)
content          the page's own text differs, not only the frame of its site (`compare.content`)
significant      the word counts differ by the chi-squared test (spec C2)
divergence:X     at least the share X of the words differs (spec C7)
words:N          at least N words differ (Ali and Williams 2003 use about 20)
new-link         it links to a page that was not known (spec C3; R §3.1, type 3)
out-link         it links to a page that its last version did not link to (R §3.1, read literally)
relevance:FILE   it begins to match one of the queries in FILE (R §3.1, type 2: from not relevant to relevant)
relevance-both:FILE  it begins or ceases to match one of them (spec C4)
NAME:ARGUMENT    what the plug-in NAME says (see `recrawl.plugins`)

A text matches a query if it has all of its words. Links count even where the text is the same, since the target of a
link is no text; all other levels need another text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from recrawl import plugins
from recrawl.errors import UsageError

_WORD = re.compile(r"\w+")
NAMES = (
    "text, content, significant, divergence:X (X from 0 to 1), words:N, new-link, out-link, relevance:FILE or "
    "relevance-both:FILE (one query per line)"
)
_PLAIN = ("text", "content", "significant", "new-link", "out-link")
_LINKS = ("new-link", "out-link")
_RELEVANCE = ("relevance", "relevance-both")
FILE_PREFIXES = tuple(f"{kind}:" for kind in _RELEVANCE)
"""Levels that name a file begin so."""


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
        if self.of_links:
            return bool(differs.new_links if self.kind == "new-link" else differs.out_links)
        return self.kind == "text" or differs.relevance is not False

    @property
    def of_links(self) -> bool:
        """Whether links decide, even where the text is the same."""
        return not self.plugin and self.kind in _LINKS

    def differs_in_relevance(self, before: str, after: str) -> bool:
        """Whether a page with the text `before` begins, or for `relevance-both` ceases, to match a query by `after`.

        >>> level = ChangeLevel("relevance", queries=(("storm",), ("election", "result")))
        >>> level.differs_in_relevance("", "result of the election"), level.differs_in_relevance("storm", "")
        (True, False)
        """
        old, new = self.matching(before), self.matching(after)
        return bool(new - old) or (self.kind == "relevance-both" and bool(old - new))

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
    new_links: int = 0
    """Links to pages that were not known."""
    out_links: int | None = None
    """Links that the version before did not have."""


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
    if text in _PLAIN:
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
    if kind in _RELEVANCE and rest:
        return ChangeLevel(kind, queries=_queries(Path(rest)))
    return None


def _queries(path: Path) -> tuple[tuple[str, ...], ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the queries in {path}: {error}") from error
    queries = tuple(filter(None, (tuple(_WORD.findall(line.casefold())) for line in lines)))
    if not queries:
        raise UsageError(f"{path} holds no query; write one query per line")
    return queries


CONTENT = ChangeLevel()
"""The default: the page's own text."""
