"""Alerts: rules select updates, the outbox stores them, and they are delivered at least once with a stable key.

rules.py        which updates a rule applies to
outbox.py       updates to deliver, stored so that a crash loses nothing
delivery.py     webhooks and Apprise
apprise_process.py   one message through Apprise, in a child process
dispatcher.py   the thread that matches new visits, fills the outbox and delivers it
feed.py         the same updates as an Atom feed
"""
