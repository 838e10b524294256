"""Names for content. MD5 names a text (spec C1), SHA-1 a payload, as in WARC files; neither is a guard."""

from __future__ import annotations

import hashlib


def of_text(text: str) -> bytes:
    """MD5 of the text, 16 bytes; two versions with the same digest have the same text (spec C1).

    >>> of_text("").hex()
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


def of_payload(body: bytes) -> bytes:
    """SHA-1 of the body as it came, 20 bytes; the same bytes need no parsing.

    >>> of_payload(b"").hex()
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    return hashlib.sha1(body, usedforsecurity=False).digest()
