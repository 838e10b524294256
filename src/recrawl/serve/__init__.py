"""The service behind `recrawl serve`: a scheduler, an HTTP API, a dashboard and alerts.

    app.py        which address is answered by what
    context.py    what every answer may use
    pool.py       repositories open for reading, a few for all requests
    scheduler.py  cycles by the clock, each in a process of its own (worker.py)
    events.py     what happens, as it happens, for whoever listens
    security.py   who may ask, and what a browser may do with the answer
    running.py    the server itself

The crawl never waits for the web server and the web server never for the crawl: they share nothing but the store.
"""
