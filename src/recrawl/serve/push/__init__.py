"""Routes for other servers that announce changes, and the thread that renews subscriptions; see `repository.push`.

receivers.py   /indexnow and /websub/NAME
renewals.py    renewal of WebSub subscriptions
"""
