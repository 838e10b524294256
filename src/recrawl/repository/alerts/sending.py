"""Alerts without a service: new visits matched and sent, after a crawl or cycle of the command line."""

from __future__ import annotations

import threading
from collections.abc import Callable

from recrawl.errors import RecrawlError, RepositoryBusy
from recrawl.repository.alerts.matching import match_visits
from recrawl.repository.alerts.receiver import AlertReceiver
from recrawl.repository.alerts.rules import check_rule
from recrawl.repository.delivery.engine import Engine
from recrawl.repository.opening import service_lock
from recrawl.repository.reader import Reader

_POLL = 0.2
_LAST_SECONDS = 3.0


def send_alerts(repo: Reader, notify: Callable[[str], None], stop: Callable[[], bool]) -> None:
    """Match the new visits and send what is due; a failure is told, and what failed is tried again later."""
    try:
        with service_lock(repo.folder):
            _send(repo, notify, stop)
    except RepositoryBusy:
        return  # the service sends them
    except RecrawlError as error:
        notify(f"alerts: {error}")


def _send(repo: Reader, notify: Callable[[str], None], stop: Callable[[], bool]) -> None:
    rules, more, wake = repo.settings.alerts, True, threading.Event()
    for rule in rules:
        check_rule(rule)
    while more and not stop():
        _, more = match_visits(repo, rules, repo.now())
    receivers = [AlertReceiver(rule, repo.settings, repo.now) for rule in rules]
    engine = Engine(repo.now, wake.set)
    while not stop() and (engine.start(repo, receivers) or engine.busy):
        wake.wait(_POLL)
        wake.clear()
        engine.settle(repo, 0.0)
    engine.end()
    engine.settle(repo, _LAST_SECONDS)
    for name, counts in engine.counts.items():
        if counts.error is not None:
            notify(f"alert {name}: {counts.error}; it is tried again later")
