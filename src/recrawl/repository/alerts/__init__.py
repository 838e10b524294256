"""Alerts: rules select updates, and the outbox stores them until they are delivered.

`serve` delivers them; a script can match and read them with the same functions.

rules.py      which updates a rule applies to
matching.py   new visits matched against the rules, into the outbox
outbox.py     updates to deliver, stored so that a crash loses nothing
"""
