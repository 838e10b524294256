"""Digests that WARC records claim: compared with those of what the records hold, never believed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

_KNOWN = {"sha1": 20, "sha256": 32, "sha512": 64, "md5": 16}


def claimed_digest(text: str) -> bytes:
    """A digest as bytes, its algorithm before it; empty if it is of no algorithm that can be computed here.

    >>> claimed_digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").hex(":", -4)
    '73686131:3ada39a3:ee5e6b4b:0d3255bf:ef956018:90afd807:09'
    >>> claimed_digest("SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709") == claimed_digest(
    ...     "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
    True
    >>> claimed_digest("xxh3:00")
    b''
    """
    name, _, value = text.strip().rpartition(":")
    name = name.lower().replace("-", "") or "sha1"
    size = _KNOWN.get(name)
    if size is None:
        return b""
    try:
        if len(value) == 2 * size:
            digest = bytes.fromhex(value)
        else:
            digest = base64.b32decode(value.upper() + "=" * (-len(value) % 8))
    except ValueError:
        return b""
    return name.encode() + b":" + digest if len(digest) == size else b""


def is_of(claimed: bytes, contents: Iterable[bytes]) -> bool:
    """Whether a claimed digest is that of any of these contents."""
    name, _, digest = claimed.partition(b":")
    return any(hashlib.new(name.decode(), content, usedforsecurity=False).digest() == digest for content in contents)
