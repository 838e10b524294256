"""A repository on many machines: shards that workers own by leases, and a coordinator that divides each budget.

Each shard is an ordinary repository: a schema in PostgreSQL, a prefix in the object store, a working folder on the
machine that runs it. The tables of the cluster, in a schema beside those of the shards, are the only channel between
its processes: whatever is killed is resumed from them.

layout             where a cluster and its shards are; a new cluster
lease_keeper       a lease that is renewed in the background
worker             the worker of a shard
reader_server      the process from which the readers of a worker are forked
shard_parts        a shard's part of a crawl, cycle or recheck
shard_links        links and requisites of other shards for a shard
shard_rounds       the rounds of a cycle as a shard sees them
coordinator        starts and finishes runs
cycle_coordinator  settles the rounds of a cycle
run_requests       runs asked for and followed by a command
repository         `ClusterRepository`: what the commands use
commands/          commands that do more than to ask for a run
overview           what a cluster is doing; shards moved, nodes drained
opening            open a repository as what it is
search_server      searches in the index of a shard, answered by its worker
searching          searches in all shards at once
nodes              machines: shards balanced over them, processes started by Ray
"""
