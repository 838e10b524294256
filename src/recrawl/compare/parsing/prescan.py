"""The encoding that an HTML document declares in its own bytes (HTML Standard, "prescan a byte stream").

A page declares its encoding in `<meta charset=x>`, `<meta http-equiv=content-type content="...; charset=x">` or an XML
declaration. The standard's prescan reads the first 1,024 bytes without regard to scripts. Browsers also obey a `meta`
that comes later, when they have built the tree that far; so does this scan, up to `_MAX_BYTES`, except within elements
whose contents are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PRESCAN = 1024
_MAX_BYTES = 131_072
_CHARSET = re.compile(rb"(?i)charset")
_MARKUP = re.compile(rb"(?i)<(?:(!--)|(meta(?=[\t\n\f\r /]))|/?([a-z][^\t\n\f\r >]*+)|[!/?])")
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r /=>]*+)"""
    rb"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"([^"]*+)"|'([^']*+)'|(["'])|([^\t\n\f\r >]*+)))?"""
)
_TAG_END = re.compile(rb"[\t\n\f\r /]*+>")
_CONTENT = re.compile(rb"""(?i)charset[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"([^"]*+)"|'([^']*+)'|(["'])|([^\t\n\f\r ;]*+))""")
_XML = re.compile(rb"""<\?xml[^>]*?encoding[\x00-\x20]*+=[\x00-\x20]*+(?:"([^"\x00-\x20>]*+)"|'([^'\x00-\x20>]*+)')""")
_TEXT_ELEMENTS = frozenset({b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"})


def declared_encoding(body: bytes, name_of: Callable[[str], str]) -> str:
    """The name of the declared encoding, '' for none. `name_of` turns a label into a name, '' if it is unknown.

    >>> declared_encoding(b"<meta charset=bogus><meta charset=koi8-r>", {"koi8-r": "koi8-r"}.get)
    'koi8-r'
    """
    if body.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16le" if body[0] else "utf-16be"
    found = _of_meta(body[:_MAX_BYTES], name_of) if _CHARSET.search(body, 0, _MAX_BYTES) else ""
    if not found and (xml := _XML.match(body[:_PRESCAN])):
        found = _label(xml[1] or xml[2], name_of)
    # A document whose declaration is readable as ASCII is not in UTF-16.
    return "utf-8" if found.startswith("utf-16") else found


def _of_meta(data: bytes, name_of: Callable[[str], str]) -> str:
    at = text_until = 0
    while markup := _MARKUP.search(data, at):
        at = markup.end()
        if markup[1]:
            at = data.find(b"-->", markup.start() + 2) + 3
            if at < 3:
                return ""
        elif markup[2] or markup[3]:
            attributes, at = _attributes(data, at, wanted=bool(markup[2]))
            if at < 0:
                return ""
            visible = markup.start() < _PRESCAN or markup.start() >= text_until
            if attributes and visible and (name := _encoding_of(attributes, name_of)):
                return name
            element = (markup[3] or b"").lower()
            if element in _TEXT_ELEMENTS and at > text_until and data[markup.start() + 1] != 0x2F:
                end = re.compile(rb"(?i)</%s(?=[\t\n\f\r />])" % element).search(data, at)
                text_until = end.start() if end else len(data)
        else:
            at = data.find(b">", at) + 1
            if at < 1:
                return ""
    return ""


def _attributes(data: bytes, at: int, *, wanted: bool) -> tuple[dict[bytes, bytes], int]:
    """The first value of each attribute, if `wanted`, and the position after the tag; -1 if the tag does not end."""
    found: dict[bytes, bytes] = {}
    while attribute := _ATTRIBUTE.match(data, at):
        name, double, single, unclosed, plain = attribute.groups()
        at = attribute.end()
        if unclosed:
            return {}, -1
        if wanted:
            found.setdefault(name.lower(), double or single or plain or b"")
    end = _TAG_END.match(data, at)
    return (found, end.end()) if end else ({}, -1)


def _encoding_of(attributes: dict[bytes, bytes], name_of: Callable[[str], str]) -> str:
    """The encoding that a `meta` element declares; `charset` counts before `content`, which needs the `http-equiv`."""
    if b"charset" in attributes:
        return _label(attributes[b"charset"], name_of)
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return ""
    found = _CONTENT.search(attributes.get(b"content", b""))
    return _label(found[1] or found[2] or found[4] or b"", name_of) if found else ""


def _label(label: bytes, name_of: Callable[[str], str]) -> str:
    return name_of(label.decode("ascii", "replace").strip("\t\n\f\r ")) or ""
