"""Which pages exist: addresses and where they are found.

    urls.py       one canonical spelling for each address (spec K4), its origin, directory and key
    links.py      the links, feeds and robots words of a parsed page
    sitemaps.py   sitemaps and feeds, and what they say about change (spec H2, H3)
    known.py      address key -> page number, for millions of pages, in arrays
    traps.py      calendars, growing paths and other endless address spaces (spec K3)
    scope.py      what the user asked for: sites, depth, include and exclude patterns (spec K1)

An address goes through them in that order: spelled, looked up, guarded, and only then made a page. Nothing
here opens a connection or reads a clock.
"""
