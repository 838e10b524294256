"""Suggest noise filters (spec C8) for a page that changes at every visit.

`propose` finds the smallest filters that make consecutive versions of the page equal where their difference is no news,
and that leave all news. The user decides whether to apply them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from recrawl.compare.divergence import distance
from recrawl.compare.noise import candidates
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.text import visible
from recrawl.errors import Unreadable

__all__ = ["NO_NOISE", "Noise", "Proposal", "propose"]

_MAX_VERSIONS = 10
_MAX_FILTERS = 6
_MAX_HIDDEN = 0.3
_MIN_GAIN = 0.05
_MIN_SHARE = 0.2
"""A filter that hides a smaller share of the changes likely hides news, not noise."""
_MAX_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A filter and its effect: without it, `hides` of the `of` changes would show again."""

    kind: Literal["selector", "pattern"]
    value: str
    hides: int
    of: int
    example: str
    """What it removes from the newest version that contains any."""


@dataclass(frozen=True, slots=True)
class _View:
    """The versions' texts under a filter, and the remaining share of each change, from 1 (all) to 0 (hidden)."""

    noise: Noise
    texts: tuple[str, ...]
    left: tuple[float, ...]

    @property
    def hidden(self) -> int:
        return self.left.count(0.0)


def readable(versions: Sequence[str]) -> list[str]:
    """The newest versions that can be parsed, cut where `propose` stops reading."""
    pages = []
    for html in versions[-_MAX_VERSIONS:]:
        try:
            parse(html[:_MAX_CHARACTERS])
        except Unreadable:
            continue
        pages.append(html[:_MAX_CHARACTERS])
    return pages


def propose(pages: Sequence[str], news: Sequence[bool], spares: Callable[[Noise], bool]) -> list[Proposal]:
    """Return filters that together hide most of a page's changes that are no news.

    `pages` are `readable` versions, oldest first, `news` says which of their changes are news, and `spares` whether a
    filter leaves all of them. Greedy: the filter that leaves the least of the changes comes first, and of equals the
    one that hides less text. All filters together hide at most 30 % of the text.
    """
    bare = _texts(pages, NO_NOISE)
    changes = [i for i in range(len(bare) - 1) if bare[i] != bare[i + 1] and not news[i]]
    if not changes:
        return []
    named = [p for p in candidates.patterns(bare) if p != candidates.ANY_NUMBER]
    options = [Noise(patterns=(p,)) for p in named] + [Noise(selectors=(s,)) for s in candidates.selectors(pages)]
    view = _View(NO_NOISE, bare, (1.0,) * len(changes))
    # The pattern for any number is coarse: it is tried only on what the others leave.
    for choice in (options, [*options, Noise(patterns=(candidates.ANY_NUMBER,))]):
        view = _greedy(pages, bare, changes, view, choice, spares)
    return _proposals(pages, bare, changes, view)


def _greedy(
    pages: Sequence[str],
    bare: tuple[str, ...],
    changes: Sequence[int],
    view: _View,
    options: Sequence[Noise],
    spares: Callable[[Noise], bool],
) -> _View:
    """Add the best filter that spares all news, until the changes are hidden or the next filter gains too little."""
    while view.hidden < len(changes) and len(_parts(view.noise)) < _MAX_FILTERS:
        views = [_view(pages, bare, changes, _joined(view.noise, option)) for option in options]
        enough = sum(view.left) - _MIN_GAIN * len(changes)
        better = sorted((v for v in views if sum(v.left) <= enough and _modest(bare, v.texts)), key=_cost)
        best = next((v for v in better if spares(v.noise)), None)
        if best is None:
            break
        view = best
    return view


def _texts(pages: Sequence[str], noise: Noise) -> tuple[str, ...]:
    return tuple(visible(parse(html), noise) for html in pages)


def _joined(*parts: Noise) -> Noise:
    return Noise(sum((p.selectors for p in parts), ()), sum((p.patterns for p in parts), ()))


def _parts(noise: Noise) -> list[Noise]:
    return [Noise(selectors=(s,)) for s in noise.selectors] + [Noise(patterns=(p,)) for p in noise.patterns]


def _view(pages: Sequence[str], bare: tuple[str, ...], changes: Sequence[int], noise: Noise) -> _View:
    texts = bare
    if noise.selectors:
        texts = _texts(pages, noise)
    elif noise.patterns:
        texts = tuple(" ".join(noise.erase(text).split()) for text in bare)
    left = []
    for i in changes:
        full = max(1, distance(bare[i], bare[i + 1])[0])
        now = distance(texts[i], texts[i + 1])[0]
        # If only punctuation or order differs, no word does, but the change still shows.
        left.append(0.0 if texts[i] == texts[i + 1] else min(1.0, max(now, 0.5) / full))
    return _View(noise, texts, tuple(left))


def _modest(bare: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return all(len(b) - len(t) <= _MAX_HIDDEN * len(b) for b, t in zip(bare, texts, strict=True))


def _cost(view: _View) -> tuple[float, int]:
    """Rank by the remaining changes, in steps of 1 %, then by the text kept."""
    return round(sum(view.left) / len(view.left), 2), -sum(map(len, view.texts))


def _proposals(pages: Sequence[str], bare: tuple[str, ...], changes: Sequence[int], view: _View) -> list[Proposal]:
    """Return the filters that are needed, each with the number of changes that would show again without it."""
    while parts := _parts(view.noise):
        others = [_joined(*(p for p in parts if p != part)) for part in parts]
        shown = [_view(pages, bare, changes, other) for other in others]
        hides = [sum(n == 0.0 < t for n, t in zip(view.left, s.left, strict=True)) for s in shown]
        weakest = hides.index(min(hides))
        if hides[weakest] >= max(_MIN_SHARE * len(changes), min(2, len(changes))):
            found = [_proposal(pages, bare, *pair, len(changes)) for pair in zip(parts, hides, strict=True)]
            return sorted(found, key=lambda p: (-p.hides, p.value))
        view = shown[weakest]
    return []


def _proposal(pages: Sequence[str], bare: tuple[str, ...], part: Noise, hides: int, of: int) -> Proposal:
    value = (part.selectors + part.patterns)[0]
    return Proposal("selector" if part.selectors else "pattern", value, hides, of, _example(pages, bare, part))


def _example(pages: Sequence[str], bare: tuple[str, ...], part: Noise) -> str:
    """Return the first text that the filter removes from the newest version that contains any."""
    for html, text in zip(reversed(pages), reversed(bare), strict=True):
        if part.patterns:
            found = candidates.first(part.patterns[0], text)
        else:
            node = parse(html).select_one(part.selectors[0])
            found = " ".join(" ".join(node.strings).split()) if node is not None else ""
        if found:
            return found[:100]
    return ""
