"""The access token, signed session cookies and CSRF tokens. All comparisons take constant time.

Two files in the repository, readable by their owner only: `serve.key` signs cookies; `serve.token` is the access token
that clients must send when the service is reachable from other machines. `serve.ended` names the sessions that were
logged out; a name without its signature opens nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recrawl.durable_files import locked, replace_file
from recrawl.times import remaining

COOKIE = "recrawl_session"
SESSION_SECONDS = 30 * 86400
"""Lifetime of a session."""
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Session:
    """A browser session; `authenticated` after it sent the access token."""

    name: str
    authenticated: bool
    expires: int


def new_session(now: float, *, authenticated: bool) -> Session:
    """Return a new session with a random name."""
    return Session(secrets.token_urlsafe(18), authenticated, int(now) + SESSION_SECONDS)


def encode_session(session: Session, secret: bytes) -> str:
    """Return a session as a signed cookie value."""
    text = f"{session.name}.{int(session.authenticated)}.{session.expires}"
    return f"{text}.{signature(secret, 'session', text)}"


def decode_session(cookie: str, secret: bytes, now: float) -> Session | None:
    """Return the session of a cookie; None if its signature is wrong or it has expired.

    >>> key = b"k" * 32
    >>> session = new_session(0.0, authenticated=True)
    >>> cookie = encode_session(session, key)
    >>> decode_session(cookie, key, 1.0) == session, decode_session(cookie, b"other", 1.0)
    (True, None)
    """
    text, _, given = cookie.rpartition(".")
    if not hmac.compare_digest(signature(secret, "session", text).encode(), given.encode("utf-8", "replace")):
        return None
    name, authenticated, expires = text.split(".")
    return Session(name, authenticated == "1", int(expires)) if remaining(int(expires), now, SESSION_SECONDS) else None


def form_token(session: Session, secret: bytes) -> str:
    """Return the CSRF token of a session."""
    return signature(secret, "form", session.name)


def constant_time_equal(one: str, other: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def signature(secret: bytes, purpose: str, text: str) -> str:
    """Return the signature of a text for one purpose."""
    return hmac.new(secret, f"{purpose}:{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def session_key(folder: Path, token: str) -> bytes:
    """Return the key that signs cookies; it depends on the access token, so that a new token ends all sessions."""
    kept = read_or_create(folder / "serve.key", lambda: secrets.token_hex(32))[0].encode()
    return hmac.new(kept, token.encode("utf-8", "replace"), hashlib.sha256).digest()


class LoggedOut:
    """Sessions that were logged out before they expired; kept in a file, so that a restart does not revive them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "serve.ended"
        self._lock = threading.Lock()
        self._expires: dict[str, int] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            kept = dict(json.loads(self._path.read_text(encoding="utf-8")))
            self._expires = {name: expires for name, expires in kept.items() if isinstance(expires, int)}

    def add(self, session: Session, now: float) -> None:
        """End a session."""
        with self._lock:
            kept = {name: expires for name, expires in self._expires.items() if expires > now}
            self._expires = {**kept, session.name: session.expires}
            replace_file(self._path, json.dumps(self._expires))

    def __contains__(self, session: Session) -> bool:
        return session.name in self._expires


def access_token(folder: Path) -> tuple[str, bool]:
    """Return the access token, and whether it was just created."""
    return read_or_create(folder / "serve.token", lambda: secrets.token_urlsafe(24))


def read_or_create(path: Path, make: Callable[[], str]) -> tuple[str, bool]:
    """Return the text of a file readable by its owner only, creating it if missing; and whether it was created."""
    with locked(path):
        kept = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        if kept:
            return kept, False
        text = make()
        replace_file(path, text + "\n", mode=0o600)
        return text, True


def is_strong(token: str) -> bool:
    """Return whether a user-chosen token is long enough."""
    return len(token) >= _SHORTEST_TOKEN
