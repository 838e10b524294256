"""Commands that list what is stored: status, usage, sites, pages, changes, log, show, diff, search."""
