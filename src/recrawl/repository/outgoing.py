"""POST requests to servers that users name: webhooks of alerts, sinks, WebSub hubs.

Each has a total time limit and follows no redirect, which could lead to servers that nobody named. The address rules of
the crawler apply when the connection opens: a private address is refused, unless the setting `private_targets` names
the server.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from recrawl.errors import RecrawlError
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.http import fetch_one
from recrawl.fetch.ip_filter import refuses
from recrawl.fetch.lanes import parse_retry_after
from recrawl.model import Answer, Failure
from recrawl.settings import Settings
from recrawl.version import __version__

SECONDS = 10.0
"""Longest time of a request, from the name lookup to the status of the response."""
_LIMITS = FetchLimits(max_bytes=1, connect_seconds=SECONDS, total_seconds=SECONDS, stall_seconds=SECONDS)
"""Of the body nothing is read."""
_PORTS = {"http": 80, "https": 443}


class NotSent(RecrawlError):
    """A request did not arrive, or was not accepted. The message says why.

    >>> NotSent("HTTP 404", permanent=True).permanent, NotSent("timed out").permanent
    (True, False)
    """

    def __init__(self, message: str, *, permanent: bool = False, too_large: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.permanent = permanent
        """The same request would fail again."""
        self.too_large = too_large
        """A smaller body may be accepted."""
        self.wait = wait
        """For how many seconds the receiver asks not to be asked again; 0 if it does not say."""


def post(target: str, body: bytes, headers: Mapping[str, str], settings: Settings) -> int:
    """Return the status of the response; raise NotSent if there is none."""
    return _exchange(target, body, headers, settings, _LIMITS).status


def send(
    target: str,
    body: bytes,
    headers: Mapping[str, str],
    settings: Settings,
    now: float,
    limits: FetchLimits | None = None,
) -> bytes:
    """Return the body of a response with a status of 2xx, within the limits; raise NotSent without one."""
    answer = _exchange(target, body, headers, settings, limits or _LIMITS)
    if 200 <= answer.status < 300:
        return answer.body
    raise not_accepted(answer.status, answer.header("retry-after"), now)


def not_accepted(status: int, retry_after: str = "", now: float = 0.0) -> NotSent:
    """What a status other than 2xx means.

    A status of 4xx is permanent, but for 408, 425 and 429; so is a redirect that says so, since none is followed. With
    413 a smaller body may be accepted. Everything else is temporary.

    >>> [not_accepted(status).permanent for status in (404, 413, 308, 408, 425, 429, 302, 500)]
    [True, True, True, False, False, False, False, False]
    """
    moved = 300 <= status < 400
    message = f"the receiver returned HTTP {status}" + ("; redirects are not followed: correct the target" * moved)
    return NotSent(
        message,
        permanent=status in (301, 308) or (400 <= status < 500 and status not in (408, 425, 429)),
        too_large=status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        wait=parse_retry_after(retry_after, now) or 0.0,
    )


def _exchange(target: str, body: bytes, headers: Mapping[str, str], settings: Settings, limits: FetchLimits) -> Answer:
    answer = fetch_one(
        Request(
            target,
            private=allows_private(settings, target),
            cut=True,
            post=body,
            headers=tuple(f"{name}: {value}" for name, value in headers.items()),
        ),
        agent=f"recrawl/{__version__}",
        limits=limits,
    )
    if answer.failure is Failure.ADDRESS:
        raise NotSent(refusal(answer.detail, target))
    if answer.failure is not None:
        raise NotSent(answer.detail)
    return answer


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the value of X-Recrawl-Signature.

    >>> signature("secret", "0", b"{}")[:20]
    'sha256=4bbe8d39de1ff'
    """
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def allows_private(settings: Settings, target: str) -> bool:
    """Return whether the setting `private_targets` names the server of a target."""
    return server_of(target) in {server_of(named) for named in settings["private_targets"]}


def refusal(detail: str, target: str) -> str:
    """Return why a target is refused, and what to do."""
    return f"{detail}; to allow it, add {server_of(target)} to the setting private_targets"


def refused_address(address: Any) -> str:
    """Return why the address rules refuse the address of a socket; empty if they do not.

    >>> refused_address(("10.0.0.5", 80)), refused_address(("1.1.1.1", 80)), refused_address("/run/socket")
    ('10.0.0.5 is private', '', '/run/socket is local')
    """
    if not isinstance(address, tuple):
        return f"{address} is local"
    reason = refuses(str(address[0]))
    return f"{address[0]} is {reason}" if reason else ""


def server_of(url: str) -> str:
    """Return scheme, host and port of a URL, in the form in which they are compared.

    >>> server_of("HTTP://Hooks.Local:80/x?y"), server_of("json://user:secret@10.0.0.5:8080/"), server_of("http://[::1")
    ('http://hooks.local', 'json://10.0.0.5:8080', 'http://[::1')
    """
    try:
        parts = urlsplit(url.strip())
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    except ValueError:
        return url
    return f"{parts.scheme}://{host}{port}"
