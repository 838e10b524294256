"""Messages to targets that are no webhooks: through Apprise, in a child process."""

from __future__ import annotations

import json
from typing import Any

from recrawl.errors import UsageError
from recrawl.extras import MissingExtra, require
from recrawl.repository.outgoing import NotSent
from recrawl.repository.processes import run_module

_SECONDS = 30.0


def notify(order: dict[str, Any]) -> None:
    """Send a message; raise `NotSent` unless Apprise has delivered it."""
    try:
        require("apprise")
    except MissingExtra as missing:
        raise NotSent(str(missing)) from missing
    try:
        run_module("recrawl.repository.alerts.apprise_process", stdin=json.dumps(order), seconds=_SECONDS)
    except UsageError as error:
        raise NotSent(str(error)) from error
    except TimeoutError:
        raise NotSent(f"Apprise took more than {_SECONDS:g} s") from None
