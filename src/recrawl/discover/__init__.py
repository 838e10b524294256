"""Which pages exist: URLs and where they are found.

    urls              the canonical form of a URL (spec K4), its origin, directory and key
    links             links, feeds and robots directives of a parsed page
    requisites        stylesheets, images, fonts and scripts that a page needs to be shown
    page_headers      robots directives and refreshes in HTTP headers
    sitemaps          sitemaps and feeds, with their hints about change (spec H2, H3)
    dates             dates in sitemaps, feeds and HTTP headers
    registrable_domains  the part of a host's name that its owner registered
    endless_spaces    URL spaces whose pages bring nothing new, known by behaviour (spec K3)
    known_urls        URL key to page number, for millions of pages, in arrays
    redirect_habits   trailing slashes and index files, learned from a server's redirects (spec K4)
    traps             calendars, growing paths and other endless URL spaces (spec K3)
    scope             what the user asked for: sites, depth, include and exclude patterns (spec K1)
    weight_files      files of page weights and click logs

A URL is canonicalised, looked up, checked against scopes and traps, and only then becomes a page. Nothing here opens
a connection or reads a clock.
"""
