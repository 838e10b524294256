"""Export: what the archive and the store hold, in formats that other programs read.

files.py       writes a file in the format that its name asks for
histories.py   all versions of all pages as a Parquet archive
tables.py      pages, visits, versions and changes as Parquet tables
warc.py        one WARC file of all records, or of those since a time
cdxj.py        CDXJ: the index of captures in which replay tools look records up
chunks.py      chunks of pages for retrieval corpora, and what changed in them
wacz.py        WACZ: records, index and page list in one ZIP file
"""
