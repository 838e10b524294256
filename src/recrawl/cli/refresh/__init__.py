"""Commands that visit pages, and services: crawl, cycle, run, serve, mcp, demo, recheck."""
