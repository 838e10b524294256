"""An alert rule as a receiver of the delivery engine: a signed POST to a webhook, or a message to another target.

A webhook gets JSON and these headers:

    Idempotency-Key       the same for every attempt of the same delivery
    X-Recrawl-Timestamp   seconds since 1970
    X-Recrawl-Signature   sha256=HMAC-SHA256(secret, timestamp + "." + body) in hexadecimal; only with a secret

The updates of a digest are sent as one. If the receiver refuses it for good, it is sent again in halves, until the
update is found that is to blame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from urllib.parse import urlsplit

from recrawl.columns import DAY
from recrawl.repository.alerts.mail import SCHEMES, send_mail
from recrawl.repository.alerts.messages import notify
from recrawl.repository.alerts.wording import link_of, message, subject
from recrawl.repository.delivery.engine import CallReport, OutboxEntry, SendResult, entry_of, first_of_pages
from recrawl.repository.delivery.law import Health, deliver_apart
from recrawl.repository.outgoing import NotSent, allows_private, send, signature
from recrawl.repository.reader import Reader
from recrawl.settings import Alert, Settings
from recrawl.times import duration

_MAX_ITEMS = 200
"""Updates in a digest."""


class AlertReceiver:
    """Delivers the updates that a rule has found."""

    keeps_sent = True

    def __init__(self, rule: Alert, settings: Settings, clock: Callable[[], float], *, dashboard: str = "") -> None:
        """`dashboard` is the address of the dashboard, for links to differences."""
        self.rule = rule
        self.name = rule.name
        self.target = rule.target
        self._settings = settings
        self._clock = clock
        self._dashboard = settings["dashboard"] or dashboard

    def claim(self, held: ExitStack) -> None:
        """The service delivers alerts alone; there is one for each repository."""

    def take_up(self, repo: Reader) -> None:
        """The visits are matched for all rules at once."""

    def choose(self, repo: Reader, now: float, health: Health) -> list[OutboxEntry]:
        """The first update of each page; of a digest those that are sent together, as they were before if they failed.

        What reaches a feed has been delivered.
        """
        outbox = repo.storage.store.outbox
        latest = 3 * DAY + (duration(self.rule.digest) if self.rule.digest else 0.0)
        if self.rule.target == "feed":
            if read := [row["id"] for row in outbox.due(self.name, now, _MAX_ITEMS, latest)]:
                with repo.storage.store.transaction():
                    outbox.set_sent(read, now)
            return []
        if not self.rule.digest:
            return first_of_pages(repo, self.name, now, health)
        entries = [entry_of(row) for row in outbox.due(self.name, now, _MAX_ITEMS, latest)]
        parcel = next((entry.parcel for entry in entries if entry.parcel), "")
        together = [entry for entry in entries if entry.parcel == parcel]
        if together and not parcel:
            with repo.storage.store.transaction():
                outbox.set_parcel([entry.id for entry in together], key_of(together))
        return together

    def call(self, entries: Sequence[OutboxEntry], report: CallReport, over: Callable[[], bool]) -> None:
        """Send a digest, or update by update until one fails."""
        for group in [entries] if self.rule.digest else [[entry] for entry in entries]:
            if over():
                return
            report.under_way = group
            try:
                report.results += [SendResult(*found) for found in deliver_apart(group, self._deliver, _without_quote)]
            except NotSent as error:
                done = {result.entry.id for result in report.results}
                report.results += [SendResult(entry, error) for entry in group if entry.id not in done]
            if any(error is not None and not error.permanent for _, error in report.results):
                return

    def tell(self, repo: Reader, problem: str) -> None:
        """The entries say why they failed."""

    def told(self, repo: Reader) -> str:
        """Nothing is stored."""
        del repo
        return ""

    def _deliver(self, entries: Sequence[OutboxEntry]) -> Mapping[int, NotSent]:
        if urlsplit(self.rule.target).scheme in ("http", "https"):
            self._post(entries)
        else:
            self._message(entries)
        return {}

    def _post(self, entries: Sequence[OutboxEntry]) -> None:
        key, now = key_of(entries), self._clock()
        items = [{**entry.body, "link": link_of(entry.body, self._dashboard)} for entry in entries]
        body = json.dumps({"alert": self.name, "key": key, "items": items}).encode()
        timestamp = str(int(now))
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "X-Recrawl-Timestamp": timestamp}
        if self.rule.secret:
            headers["X-Recrawl-Signature"] = signature(self.rule.secret, timestamp, body)
        send(self.rule.target, body, headers, self._settings, now)

    def _message(self, entries: Sequence[OutboxEntry]) -> None:
        items = [entry.body for entry in entries]
        send_message = send_mail if urlsplit(self.rule.target).scheme in SCHEMES else notify
        send_message(
            {
                "target": self.rule.target,
                "title": subject(self.rule, items, self._dashboard),
                "body": message(self.rule, items, self._dashboard),
                "private": allows_private(self._settings, self.rule.target),
            }
        )

    def test(self) -> None:
        """Send a message that says that it is a test; raises `NotSent`."""
        body = {
            "alert": self.name,
            "url": "https://example.org/",
            "outcome": "changed",
            "at": self._clock(),
            "title": "A test of recrawl",
            "divergence": 0.1,
            "significant": True,
            "significance": None,
            "quote": "This alert is a test.",
            "before": "",
            "after": "",
            "page": 0,
            "visit": -1,
            "version": None,
        }
        if self.rule.target == "feed":
            return
        self._deliver([OutboxEntry(-1, f"{self.name}:test:{self._clock():.0f}", 0, "", 0, body)])


def key_of(entries: Sequence[OutboxEntry]) -> str:
    """The key of updates that are sent together."""
    return entries[0].key if len(entries) == 1 else f"{entries[0].key}-{entries[-1].key}"


def _without_quote(entry: OutboxEntry) -> OutboxEntry | None:
    return entry._replace(body=entry.body | {"quote": ""}) if entry.body["quote"] else None
