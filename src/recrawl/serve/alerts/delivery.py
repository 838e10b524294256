"""How parcels go out: as a signed POST to a webhook, or through Apprise to wherever that reaches.

A webhook gets JSON and these headers:

    Idempotency-Key       the same for every try of the same parcel
    X-Recrawl-Timestamp   seconds since 1970
    X-Recrawl-Signature   sha256=HMAC-SHA256(secret, timestamp + "." + body), in hexadecimal digits; with a secret only
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
from urllib.parse import urlsplit

from recrawl import __version__
from recrawl.errors import RecrawlError
from recrawl.serve.alerts.outbox import Parcel
from recrawl.serve.push.webhooks import NoAnswer, post
from recrawl.settings import Alert


class NotSent(RecrawlError):
    """A parcel did not arrive; says why."""


def send(rule: Alert, parcel: Parcel, now: float) -> None:
    """Send a parcel; NotSent when it has not arrived for certain."""
    if rule.target == "feed":
        return  # it is there: the feed is made from the outbox
    if urlsplit(rule.target).scheme in ("http", "https"):
        _post(rule, parcel, now)
    else:
        _notify(rule, parcel)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What proves that it comes from here.

    >>> signature("secret", "0", b"{}")[:20]
    'sha256=4bbe8d39de1ff'
    """
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def _post(rule: Alert, parcel: Parcel, now: float) -> None:
    body = json.dumps({"alert": rule.name, "key": parcel.key, "items": parcel.items}).encode()
    timestamp = str(int(now))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"recrawl/{__version__}",
        "Idempotency-Key": parcel.key,
        "X-Recrawl-Timestamp": timestamp,
    }
    if rule.secret:
        headers["X-Recrawl-Signature"] = signature(rule.secret, timestamp, body)
    try:
        status = post(rule.target, body, headers)
    except NoAnswer as error:
        raise NotSent(str(error)) from error
    if not 200 <= status < 300:
        raise NotSent(f"the receiver answered with HTTP {status}")


def _notify(rule: Alert, parcel: Parcel) -> None:
    if importlib.util.find_spec("apprise") is None:
        raise NotSent("this target needs Apprise: pip install 'recrawl[alerts]'")
    import apprise  # lazy: loads much, and is seldom needed

    sender = apprise.Apprise()
    if not sender.add(rule.target):
        raise NotSent("Apprise does not know such an address")
    count = len(parcel.items)
    title = f"{rule.name}: {count} pages changed" if count > 1 else f"{rule.name}: {parcel.items[0]['outcome']}"
    lines = [f"{item['outcome']}: {item['url']} {item['title']}\n{item['quote']}".strip() for item in parcel.items]
    if not sender.notify(title=title, body="\n\n".join(lines)[:20_000]):
        raise NotSent("Apprise could not deliver it")
