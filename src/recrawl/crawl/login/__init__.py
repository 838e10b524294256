"""Form logins: a process fills in the form, and the crawler goes on with the cookies that it brings back.

messages   what the crawler and the login processes send each other
form       the login form of a page, filled in
process    the login process: the form by plain requests, or the requests of the browser
browser    the browser process: Chromium without a network, for forms that need JavaScript
stage      the login processes of a run
"""
