"""Where work runs: the live web as a world that answers visits.

live         the event loop: pace, download, read, record; on one screen
servers      what is known of each server: robots.txt, trust in its validators, its redirect habits
discovery    from links and sitemap entries to pages
verdicts     from an answer to the rows that record it
readers      processes that parse pages, each page with a deadline
reader       what such a process does
cycles       begin, resume and end a crawl or a cycle
mending      bring the index up to date after a crash
"""
