"""Candidate filters for what changes in every version of a page (spec C8); `proposals` chooses among them.

Patterns come from a fixed list, most specific first. Selectors come from the page: an element whose text differs from
one version to the next, identified by its id, or by its tag and classes below the nearest id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice, pairwise

from turbohtml import Document, Element

from recrawl.compare.noise import date_words
from recrawl.compare.parsing.document import parse

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DAY = r"(?:(?:Mon|Tue|Tues|Wed|Wednes|Thu|Thurs|Fri|Sat|Satur|Sun)(?:day)?,?\s+)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_COUNTED = (
    "views?|visits?|visitors?|hits?|users?|guests?|members?|comments?|likes?|shares?|followers?|downloads?|stars?"
    "|votes?|reads?|replies|online|times"
)
ANY_NUMBER = r"\d+"
_NEVER_NEWS = (
    r"(?i)\b\d[\d.,]*[km]?\s(?:views?|visits?|visitors?|hits?|guests?)\b",
    r"(?i)\b(?:views?|visits?|visitors?|hits?|guests?|sessions?|requests?)\s?[:#=]?\s?\d[\d.,]*",
    r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?)\b",
    r"\b(?:\d+|an?|one)\s(?:second|sec|minute|min|hour)s?\sago\b",
    r"(?i)\b(?:sid|sessionid|phpsessid|jsessionid|token|nonce|csrf)\s?[=:]\s?[\w-]+",
)


@cache
def never_news() -> tuple[str, ...]:
    """Patterns of text that is about the visit, not about what the page says."""
    return (*_NEVER_NEWS, *date_words.never_news())


PATTERNS = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK}(?:Z|\s?[+-]\d{{2}}:?\d{{2}})?)?",
    rf"\b{_DAY}\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH},?\s+\d{{4}}\b",
    rf"\b{_DAY}{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b",
    r"\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b",
    rf"\b{_CLOCK}(?:\s(?:UTC|GMT|[A-Z]{{2,4}}T))?",
    r"\b(?:\d+|an?|one)\s(?:second|sec|minute|min|hour|day|week|month|year)s?\sago\b",
    r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?|seconds?|secs?|s)\b",
    rf"\b\d[\d.,]*[KkMm]?\s(?:{_COUNTED})\b",
    rf"(?i:\b(?:{_COUNTED}|rev(?:ision)?|build|version|session|request)s?\s?[:#=]\s?)[\w.,-]+",
    r"(?i:\b(?:sid|sessionid|phpsessid|jsessionid|token|nonce|csrf)\s?[=:]\s?)[\w-]+",
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    r"\b[0-9a-fA-F]{12,}\b",
    r"\b1\d{9}(?:\d{3})?\b",
    r"\b\d{1,3}(?:[.,]\d{3})+\b",
    ANY_NUMBER,
)

_NAME = re.compile(r"-?[A-Za-z_][\w-]{0,60}\Z")
# An id or class that contains a long number or hexadecimal run likely differs at the next visit.
_UNSTABLE = re.compile(r"\d{4}|[0-9a-f]{8}")
_NEVER = frozenset(("html", "head", "body", "main", "script", "style", "noscript", "template"))
_DESCRIPTIVE = frozenset(("time", "footer", "aside", "nav", "iframe", "small", "address", "form", "header", "figure"))
_MAX_ELEMENTS = 5_000
_MAX_SELECTORS = 24


def patterns(texts: Sequence[str]) -> list[str]:
    """Return the patterns whose matches differ between consecutive texts."""
    found = []
    for pattern in (*date_words.patterns(texts[-1] if texts else ""), *PATTERNS):
        compiled = re.compile(pattern)
        seen = [compiled.findall(text) for text in texts]
        if any(a != b for a, b in pairwise(seen)):
            found.append(pattern)
    return found


def selectors(versions: Sequence[str]) -> list[str]:
    """Return the selectors whose elements' text differs between consecutive versions, most frequent first."""
    differs: Counter[str] = Counter()
    size: Counter[str] = Counter()
    before: dict[str, str] | None = None
    for html in versions:
        after = _texts(parse(html))
        if before is not None:
            for name in before.keys() | after.keys():
                a, b = before.get(name, ""), after.get(name, "")
                if a != b:
                    differs[name] += 1
                    size[name] += len(a) + len(b)
        before = after
    ranked = sorted(differs, key=lambda name: (-differs[name], size[name] / differs[name], name))
    return ranked[:_MAX_SELECTORS]


def _texts(tree: Document) -> dict[str, str]:
    """Return the text under each selector of the page's elements."""
    texts: dict[str, str] = {}
    body = tree.find("body")
    if body is None:
        return texts
    for node in islice(body.iter_elements(), _MAX_ELEMENTS):
        name = _selector(node)
        if name:
            texts[name] = texts.get(name, "") + " " + " ".join(" ".join(node.strings).split())
    return texts


def _selector(node: Element) -> str:
    """Return a selector that the element's next version likely matches too; empty if there is none."""
    tag = node.tag
    if tag in _NEVER or not _NAME.match(tag):
        return ""
    own = _id(node)
    if own:
        return own
    classes = [c for c in (node.attr("class") or "").split() if _stable(c)][:2]
    if not classes and tag not in _DESCRIPTIVE:
        return ""
    name = tag + "".join(f".{c}" for c in classes)
    above = node.parent
    for _ in range(20):
        if not isinstance(above, Element) or above.tag in ("body", "html"):
            break
        anchor = _id(above)
        if anchor:
            return f"{anchor} {name}"
        above = above.parent
    return name


def _id(node: Element) -> str:
    own = node.attr("id") or ""
    return f"#{own}" if node.tag not in _NEVER and _stable(own) else ""


def _stable(name: str) -> bool:
    return bool(_NAME.match(name)) and name.isascii() and not _UNSTABLE.search(name)


def first(pattern: str, text: str) -> str:
    """Return the first match of a pattern; empty if there is none."""
    found = re.search(pattern, text)
    return found[0] if found else ""
