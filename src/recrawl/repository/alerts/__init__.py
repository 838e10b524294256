"""Alerts: rules select updates, and the outbox stores them until they are delivered.

`serve` delivers them with the engine of `repository.delivery`; a script can match and read them with these functions.

rules.py      which updates a rule applies to
matching.py   new visits matched against the rules, into the outbox
receiver.py   where a rule sends its alerts
outbox.py     alerts in the outbox: added, held, listed
"""
