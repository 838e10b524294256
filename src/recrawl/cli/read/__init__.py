"""Commands that list what is stored: status, sites, pages, changes, log, show, diff, search."""
