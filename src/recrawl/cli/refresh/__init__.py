"""Commands that visit pages: crawl, cycle, run, serve, demo, recheck."""
