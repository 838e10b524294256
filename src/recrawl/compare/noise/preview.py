"""What a noise filter would have hidden (spec C8): the changes of a page, judged again with the filter in place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recrawl.compare.document import parse
from recrawl.compare.noise import candidates
from recrawl.compare.noise.filters import Noise
from recrawl.compare.text import visible
from recrawl.errors import Unreadable


def hidden(versions: Sequence[str], before: Noise, extra: Noise) -> tuple[int, int, str]:
    """How many of a page's changes the extra filter hides, of how many that show without it, and what it takes out.

    `versions` is HTML, oldest first; `before` are the filters that are there already.

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
    return hides, len(changes), _taken(pages, shown, extra)


def _taken(pages: Sequence[str], texts: Sequence[str], extra: Noise) -> str:
    """The first thing that the filter takes out of the newest version, for people to see."""
    for html, text in zip(reversed(pages), reversed(texts), strict=True):
        for selector in extra.selectors:
            node = parse(html).css_first(selector)
            if node is not None:
                return " ".join(node.text(separator=" ").split())[:100]
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
