"""The time-lapse server: an archive served over real HTTP on loopback, at a time that can be turned.

    clock.py      virtual time
    addresses.py  from a request's host and path to a page of the archive, and back
    bodies.py     a row as an answer: body, validators, charset; links led back to this server
    documents.py  robots.txt, sitemap, feed and start pages, made from what is alive now
    dating.py     the dates that sitemaps name, true or not
    app.py        the ASGI application
    server.py     running it, in the foreground or beside a test

Site `H` is served at `http://H.localhost:PORT/`; libcurl and browsers take every name under localhost for
this machine. An archive of one site is served at `http://127.0.0.1:PORT/` too.
"""

from recrawl.lab.timelapse.app import ServerOptions, TimeLapse, app
from recrawl.lab.timelapse.clock import Clock
from recrawl.lab.timelapse.server import TimeLapseServer, serve

__all__ = ["Clock", "ServerOptions", "TimeLapse", "TimeLapseServer", "app", "serve"]
