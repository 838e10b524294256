"""How the records of archive files are compressed: gzip is written in `record.warc`, the alternative is here.

- `zstd_records`: `.warc.zst` files, with a dictionary for each file
"""
