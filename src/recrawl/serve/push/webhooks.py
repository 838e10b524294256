"""POST to a server that the settings name: bounded in time and size, and without following redirects.

A redirect could lead where the one who wrote the settings never wanted to send anything.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import certifi

_SECONDS = 10.0
_ANSWER = 65_536


class NoAnswer(OSError):
    """The server could not be reached, or what it said made no sense."""


def post(target: str, body: bytes, headers: Mapping[str, str]) -> int:
    """The status that the server answered with; NoAnswer when it did not."""
    parts = urlsplit(target)
    connection: http.client.HTTPConnection
    try:
        if parts.scheme == "https":
            safe = ssl.create_default_context(cafile=certifi.where())
            connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_SECONDS, context=safe)
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            answer.read(_ANSWER)
            return answer.status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from error
