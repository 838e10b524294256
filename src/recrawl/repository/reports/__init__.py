"""Bounded read-only reports, for the dashboard and the HTTP API.

No report but `usage` scans all pages or visits: lists use an index and a limit, and totals come from the summary
tables written at the end of each cycle. Reports on very large sites cover a part of the pages, and say so.

    overview.py         freshness, age and the results of the last cycles
    sites.py            all sites: rate, freshness, budget share, health; one as a tree, and when its pages changed
    seeds.py            each site or page that was added: stored, waiting, or why it cannot be read
    shocks.py           shocks recorded by the policy `shock`
    changes.py          new, changed and removed pages, with filters and a cursor
    marks.py            tags and intervals of a page or site
    usage.py            what takes space, how it grows, when the disk will be full
    activity.py         the newest visits and cycles
    lists.py            bounded parts of lists as answers, with cursors
    pages.py            one page: versions, text, source, difference
"""
