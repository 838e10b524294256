"""The service behind `recrawl serve`: a scheduler, an HTTP API, a dashboard, push receivers and alerts.

The web server and the crawl run in separate processes and share only the repository, so neither waits for the other.
The service uses the Python API (`recrawl.repository`, `recrawl.lab`) and nothing beneath it: a script can do the same.

    service.py        start and stop of the whole service; binds the socket
    app.py            the ASGI application: routes, middleware, error handlers
    context.py        the objects that request handlers use
    pool.py           a bounded pool of open repositories for reading
    scheduler.py      starts a turn at each multiple of the cycle period
    turn_process.py   runs a turn in a child process and reads its progress
    turn_worker.py    the child process of a turn
    events.py         event bus, and a thread that publishes new visits and cycles
    cycle_log.py      the plan at start-up, and a line for each crawl and cycle
    dispatcher.py     the thread that matches alerts, and delivers them and the changes for sinks
    problems.py       errors as RFC 9457 problem documents or HTML
    alert_feed.py     the updates found by alert rules, as an Atom feed
    memento.py        /timegate, /timemap and /memento (RFC 7089)
    replay.py         stored pages as they looked, in a sandbox
    metrics.py        /metrics for Prometheus
    stored_files.py   stored pages as downloads
    access/           connections, middleware, sessions and login
    api/              the JSON API under /api/v1
    dashboard/        the HTML pages
    jobs/             long commands and queries in child processes, uploaded files
    push.py           IndexNow and WebSub receivers, renewal of subscriptions
"""
