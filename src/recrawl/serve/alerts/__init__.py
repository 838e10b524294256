"""Delivery of alerts: at least once, with a stable key. Rules and outbox are in `repository.alerts`.

dispatcher.py        the thread that matches new visits, fills the outbox and starts deliveries
delivery.py          webhooks and Apprise
apprise_process.py   one message through Apprise, in a child process
feed.py              the same updates as an Atom feed
"""
