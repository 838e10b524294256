"""What a page says about itself: language, description, image and dates, from its head, OpenGraph and JSON-LD.

The first source that says something counts: OpenGraph and other meta elements, then JSON-LD. Dates and the image are as
written; the caller reads them. No language is guessed: a page that declares none has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

_LD = "application/ld+json"
_MAX_SCRIPTS = 4
_MAX_SCRIPT = 200_000
"""Characters of a JSON-LD script that is read."""
_MAX_NODES = 200
_MAX_TEXT = 500
_MAX_URL = 2_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
_META = {
    "og:title": "title",
    "og:description": "description",
    "description": "description",
    "og:image": "image",
    "og:image:url": "image",
    "og:locale": "language",
    "article:published_time": "published",
    "og:article:published_time": "published",
    "dc.date": "published",
    "article:modified_time": "updated",
    "og:updated_time": "updated",
    "last-modified": "updated",
    "content-language": "language",
}
_JSON_LD = {
    "headline": "title",
    "description": "description",
    "image": "image",
    "datePublished": "published",
    "dateModified": "updated",
    "inLanguage": "language",
}


class PageFields(NamedTuple):
    """What a page says about itself; empty where it says nothing."""

    language: str = ""
    description: str = ""
    image: str = ""
    published: str = ""
    updated: str = ""
    title: str = ""


def page_fields(tree: LexborHTMLParser, html: str, header_language: str = "") -> PageFields:
    """The fields of a page; read them before its text, as that removes the scripts.

    >>> page = '<html lang=de-AT><meta property="og:description" content="Ein  Tag">'
    >>> page_fields(LexborHTMLParser(page), page)[:2]
    ('de-at', 'Ein Tag')
    """
    found: dict[str, str] = {}
    head = tree.head
    for child in head.iter() if head is not None else ():
        if child.tag == "meta":
            said = child.attributes
            key = said.get("property") or said.get("name") or said.get("http-equiv")
            name = _META.get(key.lower()) if key else None
            if name and not found.get(name):
                found[name] = said.get("content") or ""
    # A search in the whole page takes longer than this walk by tag.
    scripts = [script for script in tree.tags("script") if script.attributes.get("type") == _LD]
    if scripts and "ld+json" in html:
        for node in _nodes(scripts):
            found |= {name: _said(node.get(key)) for key, name in _JSON_LD.items() if not found.get(name)}
    declared = (tree.root.attributes.get("lang") if tree.root is not None else "") or ""
    language = _language(declared) or _language(header_language) or _language(found.get("language", ""))
    image = found.get("image", "").strip()
    return PageFields(
        language,
        _folded(found.get("description", "")),
        image if len(image) <= _MAX_URL else "",
        found.get("published", "")[:_MAX_TEXT],
        found.get("updated", "")[:_MAX_TEXT],
        _folded(found.get("title", "")),
    )


def _language(text: str) -> str:
    """A language tag in lower case, of a list the first; empty for anything else.

    >>> _language("en_US"), _language("de, en"), _language("deutsch!")
    ('en-us', 'de', '')
    """
    first = text.split(",", maxsplit=1)[0].strip()
    return first.replace("_", "-").lower() if _LANGUAGE.fullmatch(first) and len(first) <= 35 else ""


def _nodes(scripts: list[LexborNode]) -> Iterator[dict[str, Any]]:
    """The objects of the page's JSON-LD scripts, those of a graph one by one."""
    left = _MAX_NODES
    for script in scripts[:_MAX_SCRIPTS]:
        text = script.text()
        try:
            waiting = [json.loads(text)] if len(text) <= _MAX_SCRIPT else []
        except (ValueError, RecursionError):
            continue
        while waiting and left:
            left -= 1
            item = waiting.pop(0)
            if isinstance(item, list):
                waiting += item[:_MAX_NODES]
            elif isinstance(item, dict):
                yield item
                waiting.append(item.get("@graph"))


def _said(value: Any) -> str:
    """A text of JSON-LD: of a list the first, of an object its URL or name."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("url") or value.get("name") or ""
    return value if isinstance(value, str) else ""


def _folded(text: str) -> str:
    return " ".join(text[: 4 * _MAX_TEXT].split())[:_MAX_TEXT]
