"""Push: other servers announce changes to the service (IndexNow, WebSub); and WebSub requests to hubs.

receivers.py       /indexnow and /websub/NAME
indexnow_keys.py   checks that a host owns the IndexNow key that was sent for it
websub.py          WebSub subscriptions and their renewal
"""
