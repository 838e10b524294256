"""A repository on many machines: shards that workers own by leases, and a coordinator that divides each budget.

Each shard is an ordinary repository: a schema in PostgreSQL, a prefix in the object store, a working folder on the
machine that runs it. The tables of the cluster, in a schema beside those of the shards, are the only channel between
its processes: whatever is killed is resumed from them.

layout        where a cluster and its shards are; a new cluster
"""
