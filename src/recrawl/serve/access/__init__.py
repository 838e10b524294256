"""Who may connect, and who is let in.

connections.py   time limits and number of client connections, throttled log
security.py      middleware: host check, rate limits, token, CSRF, body size, response headers; /login and /logout
sessions.py      access token, signed session cookies, CSRF tokens, sessions that were logged out
"""
