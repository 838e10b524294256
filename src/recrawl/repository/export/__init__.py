"""Export: what the archive and the store hold, in formats that other programs read.

files.py       writes a file in the format that its name asks for; tables and lists itself
histories.py   all versions of all pages as a Parquet archive
warc.py        one WARC file of all records, or of those since a time
cdxj.py        CDXJ: the index of captures in which replay tools look records up
chunks.py      chunks of pages for retrieval corpora, and what changed in them
wacz.py        WACZ: records, index and page list in one ZIP file
"""
