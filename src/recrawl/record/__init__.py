"""Everything that outlives a command: one folder per repository, with a database, an archive and a search index.

storage          the folder: open, lock and repair it; one commit writes to archive, store and index
refusals         what the database refuses of a commit: one page's rows, found by halving it
store/           the facts (sites, pages, visits, versions, links, cycles) behind one protocol; all SQL
rows             rows of the store as named tuples, and the batch that is committed at once
listings         iterate over tables that grow, block by block
schema/          the tables of the store, as named steps that are each applied once
archive          bodies in rolling *.warc.gz or *.warc.zst files
blobs/           archive files and models in an object store
shards/          the shards of a cluster, seen from one folder
captures         the records of the archive, as replay tools index them
warc             single WARC records as bytes
packing          other compression than gzip: *.warc.zst
index            full-text index (tantivy)
search_words     the words of pages in it: folded, in pairs of letters where no spaces are, stems
search_query     a query in these words
quotes           the part of a text that answers a query
unindexable      pages that the index cannot have
index_files      are the files of the index as they were written
check            database, archive and index against each other, and repairs
archive_rewriting  archive files without the records that are to go
tombstones       what was erased and must not come back
traces           URLs in bytes of any kind
archive_check    an archive file record by record
change_table     a table of changes in PostgreSQL, which a sink fills
chunk_state      what a retrieval corpus has been told of the chunks of each page
lock             one writer at a time
"""
