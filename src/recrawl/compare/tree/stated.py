"""What a page says about itself in its head and its structured data (JSON-LD), beside the text that it shows.

`page_fields` is what is kept of each version, read at each visit. The first source that says something counts: meta
elements, then JSON-LD. Dates and the image are as written; the caller reads them. No language is guessed: a page that
declares none has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from turbohtml import Document

from recrawl.characters import storable

_LD = "application/ld+json"
_STATING = ("meta", "script")
_MAX_SCRIPTS = 12
_MAX_SCRIPT = 1_000_000
"""Characters of a JSON-LD script that is read."""
_MAX_NODES = 2_000
_TEXTS = ("articleBody", "text", "description", "reviewBody", "headline", "name")
_MAX_STATED = 200_000
_MAX_TEXT = 500
_MAX_URL = 2_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
PUBLISHED_META = (
    "article:published_time", "og:article:published_time", "article:published", "og:published_time", "og:pubdate",
    "datepublished", "date_published", "publish_date", "publish-date", "publishdate", "publicationdate",
    "publication_date", "pubdate", "publishtime", "rnews:datepublished", "parsely-pub-date", "sailthru.date",
    "citation_publication_date", "citation_date", "citation_online_date", "dcterms.created", "dcterms.issued",
    "dc.date.issued", "dc.date.created", "dc.date.publication", "dc.date", "dcterms.date", "dc.created",
    "cxenseparse:recs:publishtime", "article.published", "article:post_date", "displaydate", "originalpublicationdate",
    "date", "created", "timestamp", "bt:pubdate", "shareaholic:article_published_time", "article_date_original",
    "last-published", "release_date", "published", "ms.date", "pub_date", "dateposted", "content_create_date",
    "gtm-publish-date",
)  # fmt: skip
MODIFIED_META = (
    "article:modified_time", "og:updated_time", "og:article:modified_time", "article:modified", "datemodified",
    "date_modified", "dcterms.modified", "dc.date.modified", "dc.modified", "lastmod", "last-modified", "modified",
    "revised", "updated_time", "shareaholic:article_modified_time", "parsely-updated-date",
)  # fmt: skip
_Names = Mapping[str, int]
"""Names of meta elements, with their place: the first of them counts."""


def _ranked(*names: str) -> _Names:
    return {name: place for place, name in enumerate(names)}


_LANGUAGE_META = _ranked("content-language", "og:locale")
_DESCRIPTION_META = _ranked("og:description", "description")
_IMAGE_META = _ranked("og:image", "og:image:url")
_TITLE_META = _ranked("og:title")
_PUBLISHED_META, _MODIFIED_META = _ranked(*PUBLISHED_META), _ranked(*MODIFIED_META)


class Statements(NamedTuple):
    """Meta elements by name (the first of each counts), and the objects of the page's JSON-LD."""

    meta: dict[str, str]
    objects: list[dict[str, Any]]

    @property
    def types(self) -> frozenset[str]:
        """The types of the objects, in lower case."""
        found = set()
        for item in self.objects:
            kind = item.get("@type")
            for name in kind if isinstance(kind, list) else [kind]:
                if isinstance(name, str):
                    found.add(name.rpartition("/")[2].lower())
        return frozenset(found)

    @property
    def texts(self) -> str:
        """The texts of the objects."""
        found, size = [], 0
        for item in self.objects:
            for key in _TEXTS:
                text = item.get(key)
                if isinstance(text, str) and size < _MAX_STATED:
                    found.append(storable(text))
                    size += len(text)
        return "\n".join(found)[:_MAX_STATED]


def statements(page: Document) -> Statements:
    """What a page states; read it before its text, as that removes the scripts."""
    meta: dict[str, str] = {}
    scripts: list[str] = []
    for node in page.iter_elements(_STATING):
        if node.tag == "meta":
            key = node.attr("property") or node.attr("name") or node.attr("http-equiv") or node.attr("itemprop")
            content = node.attr("content")
            if key and content:
                meta.setdefault(key.strip().lower(), content)
        elif (node.attr("type") or "").lower() == _LD:
            scripts.append(node.text)
    return Statements(meta, list(_objects(scripts)) if scripts else [])


def _objects(scripts: list[str]) -> Iterator[dict[str, Any]]:
    """The objects of the scripts, outer ones before those that they hold."""
    left = _MAX_NODES
    for text in scripts[:_MAX_SCRIPTS]:
        try:
            waiting: list[Any] = [json.loads(text, strict=False)] if len(text) <= _MAX_SCRIPT else []
        except (ValueError, RecursionError):
            continue
        while waiting and left:
            left -= 1
            item = waiting.pop(0)
            if isinstance(item, list):
                waiting += item[:_MAX_NODES]
            elif isinstance(item, dict):
                yield item
                waiting += [value for value in item.values() if isinstance(value, dict | list)]


class PageFields(NamedTuple):
    """What is kept of what a page says about itself; empty where it says nothing."""

    language: str = ""
    description: str = ""
    image: str = ""
    published: str = ""
    updated: str = ""
    title: str = ""


def page_fields(page: Document, header_language: str = "") -> PageFields:
    """The fields of a page; read them before its text, as that removes the scripts.

    >>> import turbohtml
    >>> page_fields(turbohtml.parse('<html lang=de-AT><meta property="og:description" content="Ein  Tag">'))[:2]
    ('de-at', 'Ein Tag')
    """
    meta, objects = statements(page)

    def first(names: _Names, key: str) -> str:
        if found := meta.keys() & names.keys():
            return meta[min(found, key=names.__getitem__)]
        return next((text for item in objects if (text := _said(item.get(key)))), "") if objects else ""

    declared = (page.root.attr("lang") if page.root is not None else "") or ""
    stated = first(_LANGUAGE_META, "inLanguage")
    image = first(_IMAGE_META, "image").strip()
    return PageFields(
        language_tag(declared) or language_tag(header_language) or language_tag(stated),
        _folded(first(_DESCRIPTION_META, "description")),
        image if len(image) <= _MAX_URL else "",
        first(_PUBLISHED_META, "datePublished")[:_MAX_TEXT],
        first(_MODIFIED_META, "dateModified")[:_MAX_TEXT],
        _folded(first(_TITLE_META, "headline")),
    )


def language_tag(text: str) -> str:
    """A language tag in lower case, of a list the first; empty for anything else.

    >>> language_tag("en_US"), language_tag("de, en"), language_tag("deutsch!")
    ('en-us', 'de', '')
    """
    first = text.split(",", maxsplit=1)[0].strip()
    return first.replace("_", "-").lower() if _LANGUAGE.fullmatch(first) and len(first) <= 35 else ""


def _said(value: Any) -> str:
    """A text of JSON-LD: of a list the first, of an object its URL or name."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("url") or value.get("name") or ""
    return storable(value) if isinstance(value, str) else ""


def _folded(text: str) -> str:
    return " ".join(text[: 4 * _MAX_TEXT].split())[:_MAX_TEXT]
