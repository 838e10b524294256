"""A webhook: one POST request for each change, as a CloudEvent 1.0 in structured JSON.

With a secret, the request is signed as those of alerts are: `X-Recrawl-Signature` is the HMAC-SHA256 of
`X-Recrawl-Timestamp`, a dot and the body.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from recrawl.repository.outgoing import send, signature
from recrawl.repository.results.values import iso
from recrawl.repository.sinks.protocol import Event
from recrawl.settings import Settings


class Webhook:
    """Sends CloudEvents to a URL."""

    max_events = 1
    """Each change is acknowledged by itself."""

    def __init__(self, target: str, secret: str, settings: Settings, clock: Callable[[], float]) -> None:
        self._target = target
        self._secret = secret
        self._settings = settings
        self._clock = clock

    def deliver(self, events: Sequence[Event]) -> None:
        """Send the changes one by one; each is acknowledged by a status of 2xx."""
        for event in events:
            body = json.dumps(cloud_event(event), ensure_ascii=False).encode("utf-8", "replace")
            headers = {"Content-Type": "application/cloudevents+json"}
            if self._secret:
                timestamp = str(int(self._clock()))
                headers["X-Recrawl-Timestamp"] = timestamp
                headers["X-Recrawl-Signature"] = signature(self._secret, timestamp, body)
            send(self._target, body, headers, self._settings, self._clock())

    def close(self) -> None:
        """Nothing is open between requests."""


def cloud_event(event: Event) -> dict[str, object]:
    """A change as a CloudEvent; `source` and `id` are the same whenever it is sent again."""
    kind = {"new": "created", "changed": "changed", "gone": "removed"}[event.outcome]
    return {
        "specversion": "1.0",
        "id": str(event.id),
        "source": event.source,
        "type": f"recrawl.page.{kind}",
        "subject": event.url,
        "time": iso(event.time),
        "datacontenttype": "application/json",
        "data": event.as_dict(),
    }
