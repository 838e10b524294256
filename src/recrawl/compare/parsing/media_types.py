"""Media types that are told apart. A module of its own: the crawler asks for types without loading what parses them."""

from __future__ import annotations

import importlib.util

HTML = ("text/html", "application/xhtml+xml")
MARKDOWN = ("text/markdown", "text/x-markdown")
PDF = "application/pdf"


def is_xml(mime: str) -> bool:
    """Whether a media type is XML that is not HTML."""
    return mime in ("application/xml", "text/xml") or (mime.endswith("+xml") and mime not in HTML)


def is_json(mime: str) -> bool:
    """Whether a media type is JSON."""
    return mime == "application/json" or mime.endswith("+json")


def has_pdf() -> bool:
    """Whether the extra `pdf` is installed."""
    return importlib.util.find_spec("pypdfium2") is not None
