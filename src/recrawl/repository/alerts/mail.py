"""Messages by SMTP: `smtp://user:${PASSWORD}@mail.example.org/?to=me@example.org`, without any extra package.

`smtp` begins in the clear and changes to TLS where the server offers it, and must with a password; `smtps` is TLS from
the start. `from` is the sender; by default the first receiver. The address rules for webhooks hold here too.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from recrawl.errors import UsageError
from recrawl.repository.outgoing import SECONDS, NotSent, refusal, refused_address
from recrawl.secrets import has_reference, reveal

SCHEMES = ("smtp", "smtps")
_PORTS = {"smtp": 25, "smtps": 465}
_SUBMISSION = 587


@dataclass(frozen=True, slots=True)
class MailTarget:
    """A server and who gets the mail."""

    host: str
    port: int
    tls: bool
    user: str
    password: str
    """A reference, not the secret itself."""
    sender: str
    receivers: tuple[str, ...]


def parse_target(target: str) -> MailTarget:
    """Read the URL of a target.

    >>> parse_target("smtp://localhost:2525/?to=me@example.org").receivers
    ('me@example.org',)
    """
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"invalid target: {error}") from None
    given = parse_qs(parts.query)
    receivers = tuple(part.strip() for text in given.get("to", []) for part in text.split(",") if part.strip())
    if not parts.hostname or not receivers:
        raise UsageError("a mail target names a server and who gets it: smtp://mail.example.org/?to=me@example.org")
    sender = given.get("from", [receivers[0]])[0]
    for address in (sender, *receivers):
        if "@" not in address or not address.isprintable() or any(sign in address for sign in " <>,"):
            raise UsageError(f"invalid mail address '{address}'")
    unknown = set(given) - {"to", "from"}
    if unknown:
        raise UsageError(f"unknown part '{min(unknown)}' of a mail target; use to and from")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password and not has_reference(password):
        raise UsageError("a password is not stored in a target: refer to it as ${NAME} or ${file:PATH}")
    default = _SUBMISSION if user and parts.scheme == "smtp" else _PORTS[parts.scheme]
    return MailTarget(parts.hostname, port or default, parts.scheme == "smtps", user, password, sender, receivers)


def send_mail(order: dict[str, Any]) -> None:
    """Send a message: `target`, `title`, `body`, and `private` if private addresses are allowed."""
    target = parse_target(order["target"])
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = target.sender, ", ".join(target.receivers), order["title"]
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain=target.sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(order["body"])
    try:
        _deliver(target, mail, order)
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        raise NotSent(f"the mail server said {error.smtp_code} {said}", permanent=error.smtp_code >= 500) from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = {code for code, _ in error.recipients.values()}
        raise NotSent("the mail server refused all receivers", permanent=min(codes) >= 500) from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"the mail server could not be used: {error}") from None


def _deliver(target: MailTarget, mail: EmailMessage, order: dict[str, Any]) -> None:
    secure = ssl.create_default_context()
    with _Checked(target, order, secure) as server:
        server.ehlo()
        if not target.tls and server.has_extn("starttls"):
            server.starttls(context=secure)
            server.ehlo()
        elif target.password and not target.tls:
            raise NotSent("the mail server offers no TLS: the password is not sent in the clear", permanent=True)
        if target.user:
            server.login(target.user, reveal(target.password, "the target of an alert"))
        server.send_message(mail, target.sender, list(target.receivers))


class _Checked(smtplib.SMTP):
    """A connection to a mail server whose address was checked when it was opened."""

    def __init__(self, target: MailTarget, order: dict[str, Any], secure: ssl.SSLContext) -> None:
        self._order, self._target, self._secure = order, target, secure
        super().__init__(target.host, target.port, timeout=SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        opened = socket.create_connection((host, port), timeout)
        reason = "" if self._order["private"] else refused_address(opened.getpeername())
        if reason:
            opened.close()
            raise NotSent(refusal(reason, self._order["target"]))
        return self._secure.wrap_socket(opened, server_hostname=host) if self._target.tls else opened
