"""Noise filters (spec C8): elements and text that, by the user's choice, do not count as change.

Separate from `proposals`, because `text` imports this module and `proposals` imports `text`.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from recrawl.errors import UsageError
from recrawl.patterns import Pattern, compiled

if TYPE_CHECKING:
    from turbohtml import Document

PATTERN_CHARACTERS = 200_000
"""Patterns apply to the first characters of a text only; the rest stays as it is."""
XPATH, JMESPATH = "xpath:", "jmespath:"
"""Prefixes of selectors that are not CSS."""


@dataclass(frozen=True, slots=True)
class Noise:
    """CSS selectors of elements, and regular expressions of text, that do not count as change. Selectors may also be
    XPath (`xpath:...`, for HTML and XML) and JMESPath (`jmespath:...`, for JSON).

    `frame` and `content` are selectors that overrule what is learned about a site's frame (`compare.content`): their
    elements stay in the text, and never or always count as content.

    A pattern comes from the user and may take Python's engine exponential time (`(a+)+$`); `recrawl.patterns` takes
    time proportional to the text. A pattern applies to the first `PATTERN_CHARACTERS` of a text only.
    """

    selectors: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    content: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.selectors or self.patterns)

    def check(self) -> None:
        """Raise `UsageError` for the first invalid selector or pattern."""
        if paths := self.expressions(XPATH):
            from recrawl.compare.noise.xpath import compiled_xpath  # lazy: loads lxml

            for expression in paths:
                compiled_xpath(expression)
        if paths := self.expressions(JMESPATH):
            from recrawl.compare.noise.json_filter import compiled_jmespath  # lazy: loads jmespath

            for expression in paths:
                compiled_jmespath(expression)
        _check_css((*self._css, *self.frame, *self.content))
        for pattern in self.patterns:
            try:
                compiled(pattern)
            except UsageError as error:
                raise UsageError(f"invalid noise pattern {pattern!r}: {error}") from None

    @property
    def fingerprint(self) -> bytes:
        """Eight bytes that identify the filter; digests are comparable only under the same filter.

        >>> NO_NOISE.fingerprint != Noise(("#ad",)).fingerprint != Noise((), ("#ad",)).fingerprint
        True
        """
        parts = [f"s{len(s)}:{s}" for s in self.selectors] + [f"p{len(p)}:{p}" for p in self.patterns]
        return hashlib.blake2b("".join(parts).encode("utf-8", "replace"), digest_size=8).digest()

    def expressions(self, prefix: str) -> list[str]:
        """The selectors with this prefix, without it."""
        return [selector.removeprefix(prefix).strip() for selector in self.selectors if selector.startswith(prefix)]

    @property
    def _css(self) -> list[str]:
        return [selector for selector in self.selectors if not selector.startswith((XPATH, JMESPATH))]

    def prune(self, tree: Document) -> None:
        """Remove the selected elements from the tree; an invalid selector selects nothing."""
        paths = self.expressions(XPATH)
        if paths:
            from recrawl.compare.noise.xpath import nodes_by_xpath  # lazy: loads lxml

            for node in nodes_by_xpath(tree, paths):
                node.decompose()
        for selector in self._css:
            with contextlib.suppress(ValueError):
                tree.remove(selector)

    def erase(self, text: str) -> str:
        """Return the text with every match of the patterns replaced by a space."""
        head, tail = text[:PATTERN_CHARACTERS], text[PATTERN_CHARACTERS:]
        for pattern in _valid(self.patterns):
            head = pattern.erase(head)
        return head + tail


NO_NOISE = Noise()


def _check_css(selectors: tuple[str, ...]) -> None:
    if not selectors:
        return
    import turbohtml  # lazy: few settings have selectors

    tree = turbohtml.parse("")
    for selector in selectors:
        try:
            tree.select(selector)
        except turbohtml.SelectorSyntaxError:
            raise UsageError(
                f"invalid noise selector {selector!r}; use a CSS selector such as '#clock' or 'div.ad'"
            ) from None


@lru_cache(maxsize=256)
def _valid(patterns: tuple[str, ...]) -> tuple[Pattern, ...]:
    """Return the valid patterns; `check` has reported the others to the user."""
    good = []
    for pattern in patterns:
        try:
            good.append(compiled(pattern))
        except UsageError:
            continue
    return tuple(good)
