"""The shards of a cluster read as one repository.

Each table of the shards is a view over all of them, so that the shared queries run unchanged. The number of a page,
visit, version, site or archive file is that of the shard times the number of shards, plus the shard.

views       the views, and the indexes in the shards that make them fast
connection  a connection that sees the views before the tables of the whole
order       the order in which visits of all shards were recorded, for readers that go on where they stopped
tables      the methods that differ, most of all writes that must reach a shard
store       `GatheredStore`: opening, numbers, counts
"""
