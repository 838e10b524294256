"""Alerts: rules select updates, and the outbox stores them until they are delivered.

`serve` delivers them with the engine of `repository.delivery`; a script can match and read them with these functions.

rules.py            which updates a rule applies to
conditions.py       conditions as people write them: "below 100", "contains sold out"; numbers in texts
elements.py         the text of chosen elements of a version
matching.py         new visits matched against the rules, into the outbox
trial.py            a rule tried on what is recorded, and the history of the value that it watches
wording.py          subject and text of a message
receiver.py         where a rule sends its alerts
mail.py             messages by SMTP
messages.py         messages through Apprise, by apprise_process.py in a child process
sending.py          alerts of new visits, sent without a service
outbox.py           alerts in the outbox: added, held, listed
"""
