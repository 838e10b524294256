"""POST to a configured server, with limits on time and size.

Redirects are not followed: they could lead to servers that the settings do not name.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import certifi

_TIMEOUT = 10.0
_MAX_RESPONSE = 65_536


class NoAnswer(OSError):
    """The server could not be reached, or its response is not valid HTTP."""


def post(target: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Return the status of the response; raise NoAnswer if there is none."""
    parts = urlsplit(target)
    connection: http.client.HTTPConnection
    try:
        if parts.scheme == "https":
            tls = ssl.create_default_context(cafile=certifi.where())
            connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT, context=tls)
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            response.read(_MAX_RESPONSE)
            return response.status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from error
