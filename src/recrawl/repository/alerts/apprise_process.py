"""Sends one message through Apprise, in a child process: `python -m recrawl.repository.alerts.apprise_process`.

Apprise and its many services have no common time limit and no address rules. A process can be killed, and an audit hook
sees every address that a Python program connects to.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import apprise

from recrawl.repository.outgoing import refusal, refused_address

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


def main(order: dict[str, Any]) -> str:
    """Send the message; return what went wrong, or nothing."""
    refused: list[str] = []

    def check(event: str, values: tuple[Any, ...]) -> None:
        reason = refused_address(values[1]) if event in _CONNECTS else ""
        if reason:
            refused.append(reason)
            raise OSError(reason)

    if not order["private"]:
        sys.addaudithook(check)
    sender = apprise.Apprise()
    if not sender.add(order["target"]):
        return "Apprise does not support this target URL"
    if sender.notify(title=order["title"], body=order["body"]):
        return ""
    return refusal(refused[0], order["target"]) if refused else "Apprise could not deliver the message"


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)) or 0)
