"""Remember: everything that outlives a command lies in one folder, like git's.

repository   the folder: opens, locks and mends it; one commit joins the three stores below
store        SQLite: sites, pages, visits, versions, links, cycles
migrations   the store's shape, as named steps that are applied once
questions    what people ask of the store
archive      bodies in rolling *.warc.gz files
warc         single WARC records, as bytes
index        full text (tantivy)
lock         one writer at a time
"""
