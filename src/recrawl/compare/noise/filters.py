"""The filter value of spec C8: what the user says must not count as change.

It lies apart from `noise`, which proposes such filters, because `text` needs the value and `noise` needs
`text`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from recrawl.errors import UsageError
from recrawl.patterns import Pattern, compiled

PATTERN_CHARACTERS = 200_000
"""Patterns see this much of a text; the rest is kept as it is."""
_EMPTY = LexborHTMLParser("<html>")


@dataclass(frozen=True, slots=True)
class Noise:
    """CSS selectors of elements, and regular expressions of text, that do not count as change.

    A pattern comes from the user and may be catastrophic for Python's engine (`(a+)+$`); so another one is used, whose
    cost is in proportion to the text (`patterns`). It is applied to the first `PATTERN_CHARACTERS` of a text only.
    """

    selectors: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.selectors or self.patterns)

    def check(self) -> None:
        """Raise `UsageError` for the first selector or pattern that cannot be used."""
        for selector in self.selectors:
            try:
                _EMPTY.css(selector)
            except SelectolaxError:
                raise UsageError(
                    f"the noise selector {selector!r} is not a CSS selector; write '#clock' or 'div.ad'"
                ) from None
        for pattern in self.patterns:
            try:
                compiled(pattern)
            except UsageError as error:
                raise UsageError(f"the noise pattern {pattern!r} is not a regular expression: {error}") from None

    @property
    def fingerprint(self) -> bytes:
        """Eight bytes that change when the filter does; a digest is only comparable under the same filter.

        >>> NO_NOISE.fingerprint != Noise(("#ad",)).fingerprint != Noise((), ("#ad",)).fingerprint
        True
        """
        parts = [f"s{len(s)}:{s}" for s in self.selectors] + [f"p{len(p)}:{p}" for p in self.patterns]
        return hashlib.blake2b("".join(parts).encode("utf-8", "replace"), digest_size=8).digest()

    def prune(self, tree: LexborHTMLParser) -> None:
        """Take the selected elements out of the tree; a selector that cannot be used selects nothing."""
        for selector in self.selectors:
            try:
                remove(tree.css(selector))
            except SelectolaxError:
                continue

    def erase(self, text: str) -> str:
        """The text with every match of the patterns replaced by a space."""
        head, tail = text[:PATTERN_CHARACTERS], text[PATTERN_CHARACTERS:]
        for pattern in _usable(self.patterns):
            head = pattern.erase(head)
        return head + tail


NO_NOISE = Noise()


def remove(nodes: list[LexborNode]) -> None:
    """Take nodes out of their tree. They are only detached, not freed, so one inside another does no harm."""
    for node in nodes:
        node.decompose()


@lru_cache(maxsize=256)
def _usable(patterns: tuple[str, ...]) -> tuple[Pattern, ...]:
    """The usable ones among the patterns; `check` has told the user of the others."""
    good = []
    for pattern in patterns:
        try:
            good.append(compiled(pattern))
        except UsageError:
            continue
    return tuple(good)
