"""The time-lapse server: serves an archive over HTTP on loopback, as of a virtual time that can be set.

- `clock`: virtual time
- `addresses`: from a request's host and path to a page of the archive, and back
- `bodies`: a row as a response: body, validators, charset; links rewritten to this server
- `site_documents`: robots.txt, sitemap, feed and start pages, generated from the live pages
- `app`: the ASGI application
- `server`: running it in the foreground, or in a thread for tests

Site `H` is served at `http://H.localhost:PORT/`; libcurl and browsers resolve every name under localhost to this
machine. An archive of one site is also served at `http://127.0.0.1:PORT/`.
"""

from recrawl.lab.timelapse.app import ServerOptions, TimeLapse, app
from recrawl.lab.timelapse.clock import Clock
from recrawl.lab.timelapse.server import TimeLapseServer, serve

__all__ = ["Clock", "ServerOptions", "TimeLapse", "TimeLapseServer", "app", "serve"]
