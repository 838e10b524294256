"""Delivery: what is found goes out to receivers (sinks and alert rules), at least once, in order for each page.

A receiver's entries are in the outbox until they are settled: delivered, parked, or dropped. The next entry of a page
is sent after the one before is settled, so a page that a receiver refuses holds up nothing but itself, and only until
it is parked. Failures that would repeat (a status of 4xx) park an entry at once, others after 12 tries with growing
pauses. A receiver that accepts nothing is left alone for a while, and then asked with one entry at a time.

law.py      what follows from a failure; no clock, no I/O
engine.py   claims receivers, sends what is due in threads, records what came of it
parked.py   list, try again and drop what is parked
senders.py  threads that send to other servers
"""
