"""The tables of a cluster: a schema beside those of its shards. They are the channel between its processes.

store       `ClusterStore`: opening, facts, leases, the clock of the database
schema      the tables and their migrations
channels    how its processes wake each other up
runs        crawls and cycles of all shards, and how far each shard is
rounds      the journal of a cycle: what shards offer, what they are asked for, what they may take
links       URLs that one shard has found and another one owns
nodes       machines and workers, and where shards shall be
copying     copy a cluster into another database
moves       what a move writes: divided archive files, the order of visits, the next run
"""
