"""Alerts: what people want to be told of, and how they are told, nothing twice and nothing lost.

rules.py     which updates a rule is about
outbox.py    what is to be sent, in the store: a crash changes nothing about it
sending.py   webhooks, Apprise, and when to try again
desk.py      the thread that looks at new visits, fills the outbox and empties it
feed.py      the same as an Atom feed
"""
