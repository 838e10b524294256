"""Secrets and sessions: the access token, signed cookies, tokens for forms. All comparisons take constant time.

Two files in the repository, readable by their owner only: `serve.key` signs cookies, `serve.token` is what clients must
show when the service can be reached from other machines.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

COOKIE = "recrawl_session"
LASTS = 30 * 86400
"""Seconds that a session lasts."""
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that has been here; `known` when it has shown the token."""

    name: str
    known: bool
    expires: int


def new_session(now: float, *, known: bool) -> Session:
    """A session for a browser without one."""
    return Session(secrets.token_urlsafe(18), known, int(now) + LASTS)


def sealed(session: Session, secret: bytes) -> str:
    """A session as the cookie's value."""
    text = f"{session.name}.{int(session.known)}.{session.expires}"
    return f"{text}.{_signature(secret, 'session', text)}"


def opened(cookie: str, secret: bytes, now: float) -> Session | None:
    """The session of a cookie, if it is one of ours and not too old.

    >>> key = b"k" * 32
    >>> session = new_session(0.0, known=True)
    >>> opened(sealed(session, key), key, 1.0) == session, opened(sealed(session, key), b"other", 1.0)
    (True, None)
    """
    text, _, signature = cookie.rpartition(".")
    if not hmac.compare_digest(_signature(secret, "session", text).encode(), signature.encode("utf-8", "replace")):
        return None
    name, known, expires = text.split(".")
    return Session(name, known == "1", int(expires)) if int(expires) > now else None


def form_token(session: Session, secret: bytes) -> str:
    """What a form must carry, so that we know that it is one of ours."""
    return _signature(secret, "form", session.name)


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _signature(secret: bytes, purpose: str, text: str) -> str:
    return hmac.new(secret, f"{purpose}:{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def kept_secret(folder: Path) -> bytes:
    """The key that signs; made when it is first needed."""
    return kept(folder / "serve.key", lambda: secrets.token_hex(32))[0].encode()


def kept_token(folder: Path) -> tuple[str, bool]:
    """The access token, and whether it was made just now."""
    return kept(folder / "serve.token", lambda: secrets.token_urlsafe(24))


def kept(path: Path, make: Callable[[], str]) -> tuple[str, bool]:
    """The text of a file that only its owner may read; made if there is none, and whether it was."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip(), False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        text = make()
        file.write(text + "\n")
    return text, True


def strong_enough(token: str) -> bool:
    """Whether a token that somebody chose is long enough to be one."""
    return len(token) >= _SHORTEST_TOKEN
