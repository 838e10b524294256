"""Formats of site histories: what the lab reads and converts.

- `archive`: Archive Parquet, the lab's own format, read and written
- `page_facts`: digests, links and word counts of every version of an archive
- `source_kinds`: which format a file or folder has
- `version_rows`: versions on their way into an archive, shared by the importers
- `git_history`: import of a web site's git repository
- `warc_files`: import of WARC, WACZ and ARC files
- `url_lists`: whether a file is a list of URLs
- `hint_files`: what the sitemaps and feeds of sites said over time
- `capture_listings`: histories from CDX and CDXJ listings
"""
