"""Sends deliveries: as a signed POST to a webhook, or through Apprise.

A webhook gets JSON and these headers:

    Idempotency-Key       the same for every attempt of the same delivery
    X-Recrawl-Timestamp   seconds since 1970
    X-Recrawl-Signature   sha256=HMAC-SHA256(secret, timestamp + "." + body) in hexadecimal; only with a secret
"""

from __future__ import annotations

import importlib.util
import json
from urllib.parse import urlsplit

from recrawl.errors import UsageError
from recrawl.repository.alerts.outbox import Delivery
from recrawl.repository.outgoing import NotSent, allows_private, post, signature
from recrawl.serve.jobs.processes import run_module
from recrawl.settings import Alert, Settings

_APPRISE_SECONDS = 30.0


def send(rule: Alert, delivery: Delivery, now: float, settings: Settings) -> None:
    """Send a delivery; raise NotSent unless the receiver confirmed it."""
    if urlsplit(rule.target).scheme in ("http", "https"):
        _post(rule, delivery, now, settings)
    else:
        _notify(rule, delivery, settings)


def _post(rule: Alert, delivery: Delivery, now: float, settings: Settings) -> None:
    body = json.dumps({"alert": rule.name, "key": delivery.key, "items": delivery.items}).encode()
    timestamp = str(int(now))
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": delivery.key,
        "X-Recrawl-Timestamp": timestamp,
    }
    if rule.secret:
        headers["X-Recrawl-Signature"] = signature(rule.secret, timestamp, body)
    status = post(rule.target, body, headers, settings)
    if not 200 <= status < 300:
        raise NotSent(f"the receiver returned HTTP {status}")


def _notify(rule: Alert, delivery: Delivery, settings: Settings) -> None:
    if importlib.util.find_spec("apprise") is None:
        raise NotSent("this target requires Apprise: pip install 'recrawl[alerts]'")
    count = len(delivery.items)
    title = f"{rule.name}: {count} pages changed" if count > 1 else f"{rule.name}: {delivery.items[0]['outcome']}"
    lines = [f"{item['outcome']}: {item['url']} {item['title']}\n{item['quote']}".strip() for item in delivery.items]
    order = {
        "target": rule.target,
        "title": title,
        "body": "\n\n".join(lines)[:20_000],
        "allow_private": allows_private(settings, rule.target),
    }
    try:
        run_module("recrawl.serve.alerts.apprise_process", stdin=json.dumps(order), seconds=_APPRISE_SECONDS)
    except UsageError as error:
        raise NotSent(str(error)) from error
    except TimeoutError:
        raise NotSent(f"Apprise took more than {_APPRISE_SECONDS:g} s") from None
