"""Preview of a noise filter (spec C8): which of a page's past changes it would have hidden."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recrawl.compare.noise import candidates
from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.text import visible
from recrawl.errors import Unreadable


def hidden(versions: Sequence[str], before: Noise, extra: Noise) -> tuple[int, int, str]:
    """Return the number of changes that the extra filter hides, the number without it, and an example.

    `versions` is HTML, oldest first; `before` are the existing filters.

    >>> days = [f"<p>news</p><i id=d>{day}</i>" for day in range(3)]
    >>> hidden(days, Noise(), Noise(("#d",)))
    (2, 2, '2')
    """
    both = Noise(before.selectors + extra.selectors, before.patterns + extra.patterns)
    pages = [html for html in versions if _readable(html)]
    shown = [visible(parse(html), before) for html in pages]
    left = [visible(parse(html), both) for html in pages]
    changes = [k for k, (old, new) in enumerate(pairwise(shown)) if old != new]
    hides = sum(left[k] == left[k + 1] for k in changes)
    return hides, len(changes), _example(pages, shown, extra)


def _example(pages: Sequence[str], texts: Sequence[str], extra: Noise) -> str:
    """Return the first text that the filter removes from the newest version."""
    for html, text in zip(reversed(pages), reversed(texts), strict=True):
        for selector in extra.selectors:
            node = parse(html).select_one(selector)
            if node is not None:
                return " ".join(" ".join(node.strings).split())[:100]
        for pattern in extra.patterns:
            if found := candidates.first(pattern, text):
                return found[:100]
    return ""


def _readable(html: str) -> bool:
    try:
        parse(html)
    except Unreadable:
        return False
    return True
