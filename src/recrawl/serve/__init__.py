"""The service behind `recrawl serve`: a scheduler, an HTTP API, a dashboard, push receivers and alerts.

The web server and the crawl run in separate processes and share only the store, so neither waits for the other.

    service.py        start and stop of the whole service; binds the socket
    app.py            the ASGI application: routes, middleware, error handlers
    context.py        the objects that request handlers use
    pool.py           a bounded pool of open repositories for reading
    scheduler.py      starts a turn at each multiple of the cycle period
    turn_process.py   runs a turn in a child process and reads its progress
    turn_worker.py    the child process of a turn
    events.py         event bus, and a thread that publishes new visits and cycles
    connections.py    time limits and number of client connections, throttled log
    senders.py        threads that send to other servers
    security.py       middleware: host check, rate limits, token, CSRF, body size, response headers
    sessions.py       access token, signed session cookies, CSRF tokens
    login.py          /login and /logout
    problems.py       errors as RFC 9457 problem documents or HTML
    memento.py        /timegate, /timemap and /memento (RFC 7089)
    metrics.py        /metrics for Prometheus
    stored_files.py   stored pages as downloads
    api/              the JSON API under /api/v1
    dashboard/        the HTML pages
    alerts/           alert rules, outbox and delivery
    jobs/             long commands and queries in child processes, uploaded files
    push/             IndexNow and WebSub receivers, outgoing POST requests
"""
