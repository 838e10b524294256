"""The Python API over one repository: what the command line, the service and scripts call.

`Repository` is the class; the other modules are what it is made of. Nothing here prints, and nothing above this package
needs to look beneath it.

repository.py  Repository: writing (add, remove, crawl, cycle, run, import, export)
reader.py      Reader: its base, reading (pages, changes, search, why, predict, rates, ...)
results/       what its methods return: Page, Version, Difference, Change, Status, lazy rows
opening.py     settings as the crawler's options; a repository held for writing
lookup.py      pages, sites and versions by what people write
seeds.py       seeds added and removed
seed_rules.py  scopes and limits of sites, joined from their seeds
access.py      access rules: how to get in to sites
turns.py       crawls, cycles and the turns of a run
marks.py       tags, read marks, saved filters, requests for a visit
running.py     what runs now, and how far it is
status.py      totals and sites
exchange.py    import
checking.py    database, archive and index verified against each other, and repaired
erasing.py     pages, sites and old versions taken out with all traces
thinning.py    records of old versions taken out by rules
room.py        a limit of the size: thin out before it, end at it
erased_check.py  every file read to prove that nothing is left of them
truth.py       versions, changes and search verified against the WARC records alone
processes.py   child processes: priority, output, end; one-shot commands with a time limit
outgoing.py    POST requests to webhooks and hubs, under the address rules
sinks/         every change, delivered to other systems
delivery/      the engine that delivers to sinks and sends alerts
export/        files for other programs: Parquet, WARC, WACZ, CDXJ, URL lists
explain/       what was learned of pages and sites, and why pages are visited
alerts/        alert rules, and the outbox of what they found
push.py        what other servers announce: IndexNow, WebSub
replay.py      stored pages as they looked, made inert for a browser
reports/       bounded read-only reports, for the dashboard and the HTTP API
"""
