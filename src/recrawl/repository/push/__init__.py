"""Pushes: other servers announce changes (IndexNow, WebSub). `serve` receives them; the next cycle uses them.

receiving.py       announced URLs, and feeds that hubs send
indexnow_keys.py   checks that a host owns the IndexNow key that was sent for it
websub.py          WebSub subscriptions: request, confirm, renew, end
"""
