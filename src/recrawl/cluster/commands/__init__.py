"""Commands that do more in a cluster than to ask for a run and to wait for it.

division    a repository that exists divided into shards, as by `recrawl move --shards`
checking    all shards checked, or repaired by their workers, as by `recrawl check`
imports     URLs and histories divided by shard, and handed over to the workers by the object store
planning    what a cycle would visit, as by `recrawl cycle --dry-run`
"""
