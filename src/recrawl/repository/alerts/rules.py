"""Alert rules: which updates they apply to. Bodies are read only for updates that pass all cheaper conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from recrawl.compare.common_ends import split_texts
from recrawl.compare.divergence import split_distance
from recrawl.compare.levels import Differences, parse_level, stored_level
from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.visits.stored_text import header, read_text
from recrawl.discover.links import LinkReader
from recrawl.discover.page_headers import header_links
from recrawl.discover.scope import Patterns
from recrawl.discover.urls import canonical, key, origin
from recrawl.errors import DamagedRecord, Unreadable, UsageError
from recrawl.extras import require
from recrawl.patterns import Pattern, compiled
from recrawl.record.rows import VersionRow
from recrawl.repository.alerts.conditions import all_hold, conditions
from recrawl.repository.alerts.elements import lines_of
from recrawl.repository.alerts.mail import SCHEMES, parse_target
from recrawl.repository.alerts.wording import check_templates, excerpt
from recrawl.repository.reader import Reader
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Alert
from recrawl.times import duration, quiet_hours

OUTCOMES = ("changed", "new", "gone")
_MAX_TEXT = 200_000
"""Characters of added text that are searched."""
_MAX_QUOTE = 300
_MAX_ALERTS = 200


@dataclass(frozen=True, slots=True)
class Update:
    """A visit that found a page new, changed or gone."""

    visit: int
    page: int
    url: str
    at: float
    outcome: str
    title: str
    divergence: float | None
    significant: bool
    significance: float | None
    version: VersionRow | None
    before: VersionRow | None
    tags: frozenset[str] = frozenset()
    """Of the page and of its site; only if a rule asks for one."""


@dataclass(frozen=True, slots=True)
class AlertQuote:
    """What an alert quotes of an update, in whole words."""

    added: str = ""
    """Added text; with a condition on text, around its match."""
    before: str = ""
    """What the chosen elements, or the page, said and do not say any more."""
    after: str = ""
    """What they say now and did not say before."""


def check_rule(rule: Alert) -> None:
    """Raise UsageError for an invalid rule."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", rule.name):
        raise UsageError(f"invalid alert name '{rule.name}'; use at most 64 letters, digits, dots, dashes, underscores")
    if rule.site:
        seed_url(rule.site)
    if rule.path:
        Patterns((rule.path,))
    if rule.page:
        seed_url(rule.page)
    Noise(tuple(filter(None, (rule.selector, rule.ignore))), ()).check()
    conditions(rule.when)
    check_templates(rule)
    if rule.quiet:
        quiet_hours(rule.quiet)
    _text_pattern(rule.text)
    for name in ("divergence", "significance"):
        if not 0 <= getattr(rule, name) <= 1:
            raise UsageError(f"invalid {name} {getattr(rule, name):g}; use a share from 0 to 1")
    if rule.change:
        parse_level(rule.change)
    unknown = [name for name in rule.outcomes if name not in OUTCOMES]
    if unknown:
        raise UsageError(f"unknown outcome '{unknown[0]}'; use {', '.join(OUTCOMES)}")
    if rule.digest and duration(rule.digest) < 60:
        raise UsageError(f"digest period '{rule.digest}' is too short; use at least 1m")
    _check_target(rule.target)


def _check_target(target: str) -> None:
    scheme = urlsplit(target).scheme
    if target != "feed" and not scheme:
        raise UsageError(
            f"invalid target '{target}'; use 'feed', the https:// URL of a webhook, "
            "smtp://mail.example.org/?to=me@example.org, or an Apprise URL"
        )
    if scheme in SCHEMES:
        parse_target(target)


def with_rule(before: tuple[Alert, ...], name: str, target: str, conditions: Mapping[str, Any]) -> tuple[Alert, ...]:
    """The rules with this one, which replaces one of its name; without a secret it keeps that."""
    values: dict[str, Any] = {key: value for key, value in conditions.items() if value is not None}
    old = next((rule for rule in before if rule.name == name), None)
    rule = Alert(name, target, **{**values, "outcomes": tuple(values.get("outcomes", ()))})
    if "secret" not in values and old is not None:
        rule = replace(rule, secret=old.secret)
    check_rule(rule)
    if urlsplit(target).scheme not in ("", "http", "https", *SCHEMES):
        require("apprise")
    if old is None and len(before) >= _MAX_ALERTS:
        raise UsageError(f"the limit is {_MAX_ALERTS} alerts; delete one first")
    return tuple(rule if row is old else row for row in before) if old else (*before, rule)


def applies(rule: Alert, update: Update) -> bool:
    """Return whether a rule applies to an update, as far as that is known without reading the page."""
    if rule.site and origin(update.url) != origin(seed_url(rule.site)):
        return False
    if rule.page and key(canonical(seed_url(rule.page)) or rule.page) != key(update.url):
        return False
    if rule.tag and rule.tag not in update.tags:
        return False
    if rule.path and not Patterns((rule.path,)).match(update.url):
        return False
    # A rule with a level of its own looks at every new version, whatever counts as a change of the site.
    outcome = "changed" if rule.change and update.outcome == "unchanged" else update.outcome
    if outcome not in (rule.outcomes or OUTCOMES):
        return False
    if outcome != "changed":
        return True
    if update.significance is not None and update.significance < rule.significance:
        return False
    return (update.divergence or 0.0) >= rule.divergence and (update.significant or not rule.significant)


def matching_quote(rule: Alert, update: Update, repo: Reader) -> AlertQuote | None:
    """Return what a rule quotes of an update; None if its text, elements or conditions do not match."""
    asks = bool(rule.text or rule.selector or rule.when or rule.ignore)
    if update.version is None:
        return None if asks else AlertQuote()
    noise = repo.noise_filter(origin(update.url))
    try:
        after = lines_of(repo, update.version, noise, rule.selector, rule.ignore)
        before = lines_of(repo, update.before, noise, rule.selector, rule.ignore) if update.before else []
    except (OSError, ValueError, KeyError, Unreadable):
        return None if asks else AlertQuote()
    if (rule.selector or rule.ignore) and before == after:
        return None
    old = "\n".join(before)[:_MAX_TEXT] if update.before else None
    if rule.when and not all_hold(conditions(rule.when), old, "\n".join(after)[:_MAX_TEXT]):
        return None
    known, left = set(before), set(after)
    added = "\n".join(line for line in after if line not in known)[:_MAX_TEXT]
    removed = "\n".join(line for line in before if line not in left)[:_MAX_TEXT]
    found = _text_pattern(rule.text).search(added) if rule.text else None
    if rule.text and found is None:
        return None
    quote = excerpt(added, _MAX_QUOTE, max(0, found.start() - _MAX_QUOTE // 3) if found else 0)
    return AlertQuote(quote, excerpt(removed, _MAX_QUOTE), excerpt(added, _MAX_QUOTE))


def counts_for(rule: Alert, update: Update, repo: Reader) -> bool:
    """Return whether an update is a change by the rule's own level; without one, and for new and gone pages, it is."""
    if not rule.change or update.outcome not in ("changed", "unchanged"):
        return True
    level, after, before = stored_level(rule.change), update.version, update.before
    if after is None or not (after.changed or level.of_links):
        return False
    noise = repo.noise_filter(origin(update.url))
    differs = Differences(
        content=None if after.content is None else bool(after.content),
        significant=None if after.significant is None else bool(after.significant),
        divergence=after.divergence,
        new_links=after.new_links,
    )
    if before is not None and (level.queries or level.kind in ("words", "out-link") or level.plugin):
        try:
            old, new = repo.storage.body(before), repo.storage.body(after)
            texts = [read_text(body, headers, noise) for _, headers, body in (old, new)]
            links = [_links(body, headers, update.url) for _, headers, body in (old, new)]
        except (OSError, ValueError, KeyError, Unreadable, DamagedRecord):
            return False
        differs = replace(
            differs,
            words=split_distance(split_texts(*texts))[0],
            relevance=level.differs_in_relevance(*texts),
            out_links=len(links[1] - links[0]),
        )
    return level.counts(differs)


def _links(body: bytes, headers: tuple[tuple[str, str], ...], url: str) -> set[str]:
    """Return the targets of the links of a page."""
    tree = parse(decode(body, header(headers, "content-type")).text)
    return set(LinkReader().read(tree, url, header_links(headers).refreshes).urls)


def payload(rule: Alert, update: Update, quote: AlertQuote) -> dict[str, Any]:
    """Return an update in the form in which it is sent."""
    return {
        "alert": rule.name,
        "url": update.url,
        "outcome": "changed" if update.outcome == "unchanged" else update.outcome,
        "at": update.at,
        "title": update.title,
        "divergence": update.divergence,
        "significant": update.significant,
        "significance": update.significance,
        "quote": quote.added,
        "before": quote.before,
        "after": quote.after,
        "page": update.page,
        "visit": update.visit,
        "version": None if update.version is None else update.version.id,
    }


def _text_pattern(text: str) -> Pattern:
    """Return the pattern of literal text, or of a regular expression after `re:`."""
    try:
        return compiled(text[3:] if text.startswith("re:") else re.escape(text), ignore_case=True)
    except UsageError as error:
        raise UsageError(f"invalid regular expression '{text}': {error}") from error
