"""Formats of site histories: what the lab reads and converts.

- `archive`: Archive Parquet, the lab's own format, read and written
- `page_facts`: digests, links and word counts of every version of an archive
- `word_counts`: hashed word counts of every version of an archive, cached
- `cached_columns`: the cache of columns that are computed from files
- `source_kinds`: which format a file or folder has
- `version_rows`: versions on their way into an archive, shared by the importers
- `git_history`: import of a web site's git repository
- `git_pages`: which files of a repository are pages, their URLs, the rows that an archive keeps
- `git_program`: calls of the git program
- `warc_files`: import of WARC, WACZ and ARC files
- `warc_records`: single records of them
- `warc_digests`: the digests that records claim, compared with their own
- `arc_files`: ARC files as WARC records
- `url_lists`: whether a file is a list of URLs
- `hint_files`: what the sitemaps and feeds of sites said over time
- `capture_listings`: histories from CDX and CDXJ listings
- `cdx`: the lines of such listings
"""
