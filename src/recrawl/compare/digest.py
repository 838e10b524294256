"""Digests that identify content: MD5 of a text (spec C1), SHA-1 of a payload as in WARC. Neither is for security."""

from __future__ import annotations

import hashlib


def of_text(text: str) -> bytes:
    """Return the MD5 of a text, 16 bytes; two versions with the same digest have the same text (spec C1).

    >>> of_text("").hex()
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


def of_payload(body: bytes) -> bytes:
    """Return the SHA-1 of a body as received, 20 bytes; equal bytes need no parsing.

    >>> of_payload(b"").hex()
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    return hashlib.sha1(body, usedforsecurity=False).digest()
