"""Alerts go out: with a stable key. Rules and outbox are in `repository.alerts`, the engine in `repository.delivery`.

messages.py          messages through Apprise
apprise_process.py   one message through Apprise, in a child process
feed.py              the same updates as an Atom feed
"""
