"""Subject and text of a message: what changed, in whole words, before and after, with a link to the difference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recrawl.errors import UsageError
from recrawl.settings import Alert

FIELDS = ("title", "url", "outcome", "before", "after", "quote", "link", "alert")
"""What templates may name in braces."""
_FIELD = re.compile(r"\{(\w*)\}")
_MOST_SUBJECT, _MOST_TEXT = 120, 20_000
_SHORT = 40
"""Characters up to which a value before and after stands in the subject."""


def excerpt(text: str, most: int, start: int = 0) -> str:
    """Cut a text to a length, at the ends of words.

    >>> excerpt("one two three", 9), excerpt("one two three", 9, 5), excerpt("one", 9)
    ('one two …', '… three', 'one')
    """
    if start > 0:
        start = text.find(" ", max(0, start - 1)) + 1 if " " in text[max(0, start - 1) :] else start
    cut = text[start : start + most]
    if start + most < len(text) and not text[start + most].isspace() and " " in cut:
        cut = cut[: cut.rindex(" ")]
    return ("… " if start else "") + cut.strip() + (" …" if start + len(cut.rstrip()) < len(text.rstrip()) else "")


def check_templates(rule: Alert) -> None:
    """Raise UsageError if a template names what there is not."""
    for text in (rule.subject, rule.message):
        for name in _FIELD.findall(text):
            if name not in FIELDS:
                raise UsageError(
                    f"unknown field '{{{name}}}' in a template; use {', '.join(f'{{{it}}}' for it in FIELDS)}"
                )


def subject(rule: Alert, items: Sequence[Mapping[str, Any]], base: str) -> str:
    """The subject of a message: what changed."""
    if len(items) > 1 and not rule.subject:
        names = ", ".join(dict.fromkeys(str(item["title"] or item["url"]) for item in items))
        return _one_line(f"{len(items)} pages changed: {names}")
    first = items[0]
    if rule.subject:
        return _one_line(_filled(rule.subject, first, base))
    name = first["title"] or first["url"]
    before, after = first.get("before", ""), first.get("after", "")
    if first["outcome"] != "changed":
        return _one_line(f"{'New page' if first['outcome'] == 'new' else 'Gone'}: {name}")
    if before and after and len(before) <= _SHORT and len(after) <= _SHORT:
        return _one_line(f"{name}: {before} → {after}")
    return _one_line(f"{name}: {first['quote'] or after or 'text was removed'}")


def message(rule: Alert, items: Sequence[Mapping[str, Any]], base: str) -> str:
    """The text of a message."""
    return "\n\n".join(_filled(rule.message, item, base) if rule.message else _item(item, base) for item in items)[
        :_MOST_TEXT
    ]


def _item(item: Mapping[str, Any], base: str) -> str:
    lines = [f"{item['title'] or item['url']} ({item['outcome']})", str(item["url"])]
    before, after = item.get("before", ""), item.get("after", "")
    if before or after:
        lines += [f"before: {before or '(nothing)'}", f"after:  {after or '(nothing)'}"]
    elif item["quote"]:
        lines += ["", str(item["quote"])]
    if link := link_of(item, base):
        lines += ["", f"The difference: {link}"]
    return "\n".join(lines)


def link_of(item: Mapping[str, Any], base: str) -> str:
    """The address of the difference in the dashboard; empty if that is not known."""
    if not base:
        return ""
    version = item.get("version")
    path = f"/diff?new={version}" if item["outcome"] == "changed" and version is not None else ""
    return f"{base.rstrip('/')}/pages/{item['page']}{path}"


def _filled(template: str, item: Mapping[str, Any], base: str) -> str:
    values = {**item, "link": link_of(item, base) or item["url"], "title": item["title"] or item["url"]}
    return _FIELD.sub(lambda found: str(values.get(found[1], "")), template.replace("\\n", "\n"))


def _one_line(text: str) -> str:
    return excerpt(" ".join(text.split()), _MOST_SUBJECT)
