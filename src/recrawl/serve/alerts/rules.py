"""Which updates a rule is about. Cheap conditions first: bodies are read only for what has passed all others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.compare.noise.filters import Noise
from recrawl.crawl.visits.stored_text import header, read_lines
from recrawl.discover.scope import Patterns
from recrawl.discover.urls import origin
from recrawl.errors import Unreadable, UsageError
from recrawl.patterns import Pattern, compiled
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.opening import seed_url
from recrawl.repository.times import duration
from recrawl.settings import Alert

OUTCOMES = ("changed", "new", "gone")
_TEXT = 200_000
"""Characters of a text that are looked at."""
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class Update:
    """A page that was found new, changed or gone."""

    visit: int
    page: int
    url: str
    at: float
    outcome: str
    title: str
    divergence: float | None
    significant: bool
    version: VersionRow | None
    before: VersionRow | None


def check(rule: Alert) -> None:
    """Complain about a rule that can never work."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", rule.name):
        raise UsageError("an alert's name is of letters, digits, dots and dashes, at most 64")
    if rule.site:
        seed_url(rule.site)
    if rule.path:
        Patterns((rule.path,))
    Noise((rule.selector,) if rule.selector else (), ()).check()
    _searched(rule.text)
    if not 0 <= rule.divergence <= 1:
        raise UsageError("an alert's divergence is a share from 0 to 1")
    unknown = [name for name in rule.outcomes if name not in OUTCOMES]
    if unknown:
        raise UsageError(f"an alert is about {', '.join(OUTCOMES)}, not '{unknown[0]}'")
    if rule.digest and duration(rule.digest) < 60:
        raise UsageError("a digest is sent once a minute at most")
    scheme = urlsplit(rule.target).scheme
    if rule.target != "feed" and not scheme:
        raise UsageError("an alert's target is 'feed', the https:// address of a webhook, or an Apprise address")


def wanted(rule: Alert, update: Update) -> bool:
    """Whether a rule is about an update, as far as that can be told without reading it."""
    if rule.site and origin(update.url) != origin(seed_url(rule.site)):
        return False
    if rule.path and not Patterns((rule.path,)).match(update.url):
        return False
    if update.outcome not in (rule.outcomes or OUTCOMES):
        return False
    if update.outcome != "changed":
        return True
    return (update.divergence or 0.0) >= rule.divergence and (update.significant or not rule.significant)


def matches(rule: Alert, update: Update, repository: Storage, noise: Noise) -> str | None:
    """What a rule quotes of an update, None when it is not about it after all."""
    if update.version is None:
        return "" if not (rule.text or rule.selector) else None
    try:
        after = _lines(repository, update.version, noise)
        before = _lines(repository, update.before, noise) if update.before else []
        if rule.selector:
            one, other = (_selected(repository, row, rule.selector) for row in (update.before, update.version))
            if one == other:
                return None
    except (OSError, ValueError, KeyError, Unreadable):
        return None if rule.text or rule.selector else ""
    old = set(before)
    added = "\n".join(line for line in after if line not in old)[:_TEXT]
    if rule.text:
        found = _searched(rule.text).search(added)
        if found is None:
            return None
        start = max(0, found.start() - _QUOTED // 3)
        return added[start : start + _QUOTED]
    return added[:_QUOTED]


def told(rule: Alert, update: Update, quote: str) -> dict[str, Any]:
    """An update as it is sent."""
    return {
        "alert": rule.name,
        "url": update.url,
        "outcome": update.outcome,
        "at": update.at,
        "title": update.title,
        "divergence": update.divergence,
        "significant": update.significant,
        "quote": quote,
        "page": update.page,
        "visit": update.visit,
    }


def _searched(text: str) -> Pattern:
    """Words as they are, or a regular expression after `re:`."""
    try:
        return compiled(text[3:] if text.startswith("re:") else re.escape(text), ignore_case=True)
    except UsageError as error:
        raise UsageError(f"'{text}' is no regular expression: {error}") from error


def _lines(repository: Storage, row: VersionRow, noise: Noise) -> list[str]:
    _, headers, body = repository.body(row)
    return read_lines(body, headers, noise)


def _selected(repository: Storage, row: VersionRow | None, selector: str) -> list[str]:
    """The text of what a selector names."""
    if row is None:
        return []
    _, headers, body = repository.body(row)
    tree = parse(decode(body, header(headers, "content-type")).text)
    return [" ".join(node.text(separator=" ").split()) for node in tree.css(selector)]
