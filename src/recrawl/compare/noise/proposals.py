"""What must not count as change, and proposals of such filters (spec C8).

`propose` looks at the versions of one page that changes at every visit and finds the smallest filters that
make consecutive versions equal. The user decides: nothing is applied by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recrawl.compare.divergence import distance
from recrawl.compare.document import parse
from recrawl.compare.noise import candidates
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.text import visible
from recrawl.errors import Unreadable

__all__ = ["NO_NOISE", "Noise", "Proposal", "propose"]

_MOST_VERSIONS = 10
_MOST_FILTERS = 6
_MOST_HIDDEN = 0.3
_LEAST_GAIN = 0.05
_LEAST_SHARE = 0.2
"""What hides fewer of the changes is likelier to be news than noise."""
_MOST_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A filter, and what it is good for: without it, `hides` of the `of` changes would show again."""

    kind: Literal["selector", "pattern"]
    value: str
    hides: int
    of: int
    example: str
    """What it takes out of the newest version that has any."""


@dataclass(frozen=True, slots=True)
class _View:
    """The versions' texts under some filter, and what is left of each change, from 1 (all) to 0 (hidden)."""

    noise: Noise
    texts: tuple[str, ...]
    left: tuple[float, ...]

    @property
    def hidden(self) -> int:
        return self.left.count(0.0)


def propose(versions: Sequence[str]) -> list[Proposal]:
    """Filters that together hide the most of a page's changes, given its versions' HTML, oldest first.

    Greedy: the filter that leaves least of the changes comes first; of equals the one that hides less
    text. None hides more than 30 % of the text, alone or with the others.
    """
    pages = _readable(versions)
    bare = _texts(pages, NO_NOISE)
    changes = [i for i in range(len(bare) - 1) if bare[i] != bare[i + 1]]
    if not changes:
        return []
    named = [p for p in candidates.patterns(bare) if p != candidates.ANY_NUMBER]
    options = [Noise(patterns=(p,)) for p in named] + [Noise(selectors=(s,)) for s in candidates.selectors(pages)]
    view = _View(NO_NOISE, bare, (1.0,) * len(changes))
    # Any number at all is a coarse filter: it is tried only on what the others leave.
    for choice in (options, [*options, Noise(patterns=(candidates.ANY_NUMBER,))]):
        view = _greedy(pages, bare, changes, view, choice)
    return _explained(pages, bare, changes, view)


def _greedy(
    pages: Sequence[str], bare: tuple[str, ...], changes: Sequence[int], view: _View, options: Sequence[Noise]
) -> _View:
    """Add the best filter again and again, until all is hidden or the next one gains too little."""
    while view.hidden < len(changes) and len(_parts(view.noise)) < _MOST_FILTERS:
        views = [_look(pages, bare, changes, _joined(view.noise, option)) for option in options]
        best = min((v for v in views if _modest(bare, v.texts)), key=_cost, default=view)
        if sum(view.left) - sum(best.left) < _LEAST_GAIN * len(changes):
            break
        view = best
    return view


def _readable(versions: Sequence[str]) -> list[str]:
    pages = []
    for html in versions[-_MOST_VERSIONS:]:
        try:
            parse(html[:_MOST_CHARACTERS])
        except Unreadable:
            continue
        pages.append(html[:_MOST_CHARACTERS])
    return pages


def _texts(pages: Sequence[str], noise: Noise) -> tuple[str, ...]:
    return tuple(visible(parse(html), noise) for html in pages)


def _joined(*parts: Noise) -> Noise:
    return Noise(sum((p.selectors for p in parts), ()), sum((p.patterns for p in parts), ()))


def _parts(noise: Noise) -> list[Noise]:
    return [Noise(selectors=(s,)) for s in noise.selectors] + [Noise(patterns=(p,)) for p in noise.patterns]


def _look(pages: Sequence[str], bare: tuple[str, ...], changes: Sequence[int], noise: Noise) -> _View:
    texts = bare
    if noise.selectors:
        texts = _texts(pages, noise)
    elif noise.patterns:
        texts = tuple(" ".join(noise.erase(text).split()) for text in bare)
    left = []
    for i in changes:
        full = max(1, distance(bare[i], bare[i + 1])[0])
        now = distance(texts[i], texts[i + 1])[0]
        # Punctuation or order alone may differ: then no word does, but the change still shows.
        left.append(0.0 if texts[i] == texts[i + 1] else min(1.0, max(now, 0.5) / full))
    return _View(noise, texts, tuple(left))


def _modest(bare: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return all(len(b) - len(t) <= _MOST_HIDDEN * len(b) for b, t in zip(bare, texts, strict=True))


def _cost(view: _View) -> tuple[float, int]:
    """What is left of the changes, in steps of a per cent, then how much text is kept."""
    return round(sum(view.left) / len(view.left), 2), -sum(map(len, view.texts))


def _explained(pages: Sequence[str], bare: tuple[str, ...], changes: Sequence[int], view: _View) -> list[Proposal]:
    """The filters that are needed, each with the changes that would show again without it."""
    while parts := _parts(view.noise):
        others = [_joined(*(p for p in parts if p != part)) for part in parts]
        shown = [_look(pages, bare, changes, other) for other in others]
        hides = [sum(n == 0.0 < t for n, t in zip(view.left, s.left, strict=True)) for s in shown]
        weakest = hides.index(min(hides))
        if hides[weakest] >= max(_LEAST_SHARE * len(changes), min(2, len(changes))):
            found = [_proposal(pages, bare, *pair, len(changes)) for pair in zip(parts, hides, strict=True)]
            return sorted(found, key=lambda p: (-p.hides, p.value))
        view = shown[weakest]
    return []


def _proposal(pages: Sequence[str], bare: tuple[str, ...], part: Noise, hides: int, of: int) -> Proposal:
    value = (part.selectors + part.patterns)[0]
    return Proposal("selector" if part.selectors else "pattern", value, hides, of, _example(pages, bare, part))


def _example(pages: Sequence[str], bare: tuple[str, ...], part: Noise) -> str:
    """The first stretch that the filter takes out of the newest version in which there is any."""
    for html, text in zip(reversed(pages), reversed(bare), strict=True):
        if part.patterns:
            found = candidates.first(part.patterns[0], text)
        else:
            node = parse(html).css_first(part.selectors[0])
            found = " ".join(node.text(separator=" ").split()) if node is not None else ""
        if found:
            return found[:100]
    return ""
