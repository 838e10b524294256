"""Where work runs: the live web as a world that answers visits.

live         the event loop: pace, download, read, record; on one screen
servers      what is known of each server: robots.txt, trust in its validators, its redirect habits
discovery    from links and sitemap entries to pages
judge        what an answer means for a page
verdicts     ... as the rows that record it
readers      processes that parse pages, each page with a deadline
reader       what such a process does
reading      text and links of a page
texts        the text of stored pages
rescope      when the user wants other pages than before
importing    pages and histories from elsewhere
books        the book as the store has it
cycles       begin, resume and end a crawl or a cycle
mending      bring the index up to date after a crash
"""
